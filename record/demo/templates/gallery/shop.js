{{ library(30000) }}
document.documentElement.dataset.prints = String(document.querySelectorAll("li").length);
