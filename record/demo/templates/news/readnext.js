/*! readnext loader 8 */
{{ library(48000) }}
(function () {
  "use strict";
  var place = document.querySelector(".readnext");
  fetch("https://www.readnext.example/api/related.json?site=" + place.dataset.site + "&count=6")
    .then(function (response) { return response.json(); })
    .then(function (related) {
      var row = document.createElement("div");
      related.items.forEach(function (item) {
        var link = document.createElement("a"), image = new Image(180, 120), source = document.createElement("small");
        link.href = item.url;
        image.alt = "";
        image.src = item.picture;
        source.textContent = item.source;
        link.appendChild(image);
        link.appendChild(document.createTextNode(item.headline));
        link.appendChild(source);
        row.appendChild(link);
      });
      place.appendChild(row);
    });
})();
