{{ library(24000) }}
(function () {
  "use strict";
  var picture = new Image(728, 90);
  picture.alt = "";
  picture.src = "{{ banners }}/creative?zone=418&size=728x90";
  document.getElementById("banner").appendChild(picture);
})();
