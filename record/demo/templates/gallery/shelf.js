/*! tagshelf container */
{{ library(36000) }}
{{ scripts|tojson }}.forEach(function (url) {
  var script = document.createElement("script");
  script.async = true;
  script.src = url;
  document.head.appendChild(script);
});
