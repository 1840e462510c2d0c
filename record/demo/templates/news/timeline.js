{{ library(30000) }}
[].forEach.call(document.querySelectorAll("footer[data-count]"), function (line) {
  line.textContent = line.dataset.count + " likes · reply · share";
});
