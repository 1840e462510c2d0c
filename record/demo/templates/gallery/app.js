/*! gallery app b71 */
{{ library(230000) }}
(function () {
  "use strict";
  var api = document.querySelector("script[data-api]").dataset.api, request = new XMLHttpRequest();
  request.open("GET", api + "/v1/photographers.json?featured=8");
  request.responseType = "json";
  request.onload = function () {
    var strip = document.createElement("div");
    request.response.people.forEach(function (person) {
      var link = document.createElement("a"), face = new Image(96, 96), count = document.createElement("small");
      link.href = "/people/" + encodeURIComponent(person.name);
      face.alt = "";
      face.src = person.face;
      count.textContent = person.shots + " photographs";
      link.appendChild(face);
      link.appendChild(document.createTextNode(person.name));
      link.appendChild(count);
      strip.appendChild(link);
    });
    document.getElementById("people").appendChild(strip);
  };
  request.send();
})();
