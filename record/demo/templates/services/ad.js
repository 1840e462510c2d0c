{{ library(42000) }}
(function () {
  "use strict";
  // Counts as seen what lies within the page's first screen.
  document.documentElement.dataset.shown = String(document.images.length);
})();
