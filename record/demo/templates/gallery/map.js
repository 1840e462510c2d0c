/*! mapsheet 1.5 */
{{ library(120000) }}
(function () {
  "use strict";
  var hosts = {{ tiles|tojson }}, map = document.getElementById("map"), column, row, tile, place;
  for (row = 0; row < {{ map_rows }}; row++) {
    for (column = 0; column < {{ map_columns }}; column++) {
      tile = new Image(256, 256);
      tile.alt = "";
      tile.style.left = 3 + column * 256 + "px";
      tile.style.top = row * 256 - 36 + "px";
      tile.src = hosts[(row + column) % hosts.length] + "/12/" + (2140 + column) + "/" + (1370 + row) + ".png";
      map.appendChild(tile);
    }
  }
  [[140, 90], [380, 210], [610, 130], [700, 300], [905, 80], [1090, 260]].forEach(function (spot) {
    place = document.createElement("b");
    place.style.left = spot[0] + "px";
    place.style.top = spot[1] + "px";
    map.appendChild(place);
  });
})();
