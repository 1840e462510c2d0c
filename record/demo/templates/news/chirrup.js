/*! chirrup embed {{ timeline }} */
{{ library(52000) }}
(function () {
  "use strict";
  [].forEach.call(document.querySelectorAll("[data-timeline]"), function (place) {
    var frame = document.createElement("iframe");
    frame.width = 300;
    frame.height = 500;
    frame.title = "Timeline";
    frame.src = "https://widgets.chirrup.example/timeline/" + place.dataset.timeline + ".html";
    place.appendChild(frame);
  });
})();
