{{ library(60000) }}
(function () {
  "use strict";
  var entries = [].slice.call(document.querySelectorAll("aside ol a"));
  var headings = entries.map(function (entry) { return document.querySelector(entry.hash); });

  function mark() {
    var reached = 0;
    headings.forEach(function (heading, index) {
      if (heading.getBoundingClientRect().top < 120) reached = index;
    });
    entries.forEach(function (entry, index) {
      entry.parentNode.classList.toggle("here", index === reached);
    });
  }

  [].forEach.call(document.querySelectorAll("th"), function (head, column) {
    head.addEventListener("click", function () {
      var body = head.closest("table").tBodies[0];
      [].slice.call(body.rows).sort(function (a, b) {
        var x = a.cells[column].textContent.replace(/,/g, ""), y = b.cells[column].textContent.replace(/,/g, "");
        return isNaN(x) ? x.localeCompare(y) : x - y;
      }).forEach(function (row) { body.appendChild(row); });
    });
  });

  window.addEventListener("scroll", mark, { passive: true });
  mark();
})();
