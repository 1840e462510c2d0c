/*! gazette-main 12.7.3 */
{{ library(310000) }}
(function () {
  "use strict";
  var settings = window.gazette;

  function element(name, text) {
    var made = document.createElement(name);
    if (text) made.textContent = text;
    return made;
  }

  function picture(url, width, height) {
    var made = new Image(width, height);
    made.alt = "";
    made.src = url;
    return made;
  }

  fetch(settings.api + "/v2/most-read.json?section=front&count=5", { headers: { "X-Client": "web/12.7.3" } })
    .then(function (response) { return response.json(); })
    .then(function (found) {
      var list = element("ol");
      found.stories.forEach(function (story) {
        var item = element("li"), link = element("a", story.headline);
        link.href = story.path;
        item.appendChild(link);
        item.appendChild(picture(story.thumbnail, 84, 56));
        list.appendChild(item);
      });
      document.getElementById("most-read").appendChild(list);
    });

  var request = new XMLHttpRequest();
  request.open("GET", settings.api + "/v2/weather.json?place=aldermouth");
  request.responseType = "json";
  request.onload = function () {
    var days = element("div");
    request.response.days.forEach(function (day) {
      var column = element("span", day.name);
      column.insertBefore(picture(settings.assets + "/img/weather/" + day.sky + ".svg", 56, 56), column.firstChild);
      column.appendChild(element("b", day.degrees + " C"));
      days.appendChild(column);
    });
    document.getElementById("weather").appendChild(days);
  };
  request.send();
})();
