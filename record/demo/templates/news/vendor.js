/*! gazette-vendor 4.1.0 | bundled 2019-09-30 */
{{ library(430000) }}
