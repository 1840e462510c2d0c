/*! threadbox embed */
{{ library(70000) }}
(function () {
  "use strict";
  var place = document.querySelector(".talk[data-thread]"), sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = "{{ talk }}/embed.css";
  document.head.appendChild(sheet);
  fetch("{{ talk }}/threads/" + place.dataset.thread + ".json")
    .then(function (response) { return response.json(); })
    .then(function (thread) {
      thread.comments.forEach(function (comment) {
        var entry = document.createElement("article"), face = new Image(48, 48), name = document.createElement("b");
        face.alt = "";
        face.src = comment.face;
        name.textContent = comment.name + ", " + comment.hours + " h";
        entry.appendChild(face);
        entry.appendChild(name);
        entry.appendChild(document.createTextNode(comment.text));
        place.appendChild(entry);
      });
    });
})();
