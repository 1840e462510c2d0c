/*! tagshelf container */
{{ library(36000) }}
["https://cdn.tallyboard.example/v3/a.js", "https://tags.adkiosk.example/tag.js"].forEach(function (url) {
  var script = document.createElement("script");
  script.async = true;
  script.src = url;
  document.head.appendChild(script);
});
