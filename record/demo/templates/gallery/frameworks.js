/*! frameworks b71: loaded before the page is laid out */
{{ library(360000) }}
