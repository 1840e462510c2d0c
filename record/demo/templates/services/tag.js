/*! adkiosk publisher tag 2019.40 */
{{ library(130000) }}
(function () {
  "use strict";
  var slots = {};
  window.adkiosk = {
    fill: function (auction) {
      auction.winners.forEach(function (winner) {
        var slot = slots[winner.slot], frame = document.createElement("iframe");
        frame.width = slot.dataset.width;
        frame.height = slot.dataset.height;
        frame.scrolling = "no";
        frame.src = winner.frame;
        slot.appendChild(frame);
      });
    }
  };
  function ask() {
    [].forEach.call(document.querySelectorAll(".ad[data-slot]"), function (slot) { slots[slot.dataset.slot] = slot; });
    var script = document.createElement("script");
    script.src = "https://bids.adkiosk.example/auction.js?site=" + location.hostname + "&slots=" + Object.keys(slots).join(",");
    document.head.appendChild(script);
  }
  // Before the load event, so that the page waits for its advertisements.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ask);
  else ask();
})();
