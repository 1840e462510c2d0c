/*! tallyboard 3.18 */
{{ library(60000) }}
(function () {
  "use strict";
  var collector = "https://collect.tallyboard.example/", request = new XMLHttpRequest();

  function count(settings) {
    new Image().src = collector + "hit?site=" + settings.site + "&event=view&path=" + encodeURIComponent(location.pathname);
    navigator.sendBeacon(collector + "session?site=" + settings.site, JSON.stringify({ images: document.images.length, scripts: document.scripts.length }));
  }

  request.open("GET", "https://cdn.tallyboard.example/v3/sites/{{ name }}.json");
  request.responseType = "json";
  request.onload = function () {
    if (document.readyState === "complete") count(request.response);
    else window.addEventListener("load", function () { count(request.response); });
  };
  request.send();
})();
