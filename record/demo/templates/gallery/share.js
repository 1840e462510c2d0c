{{ library(40000) }}
["chirrup", "pinnery"].forEach(function (name) {
  var button = new Image();
  button.alt = name;
  button.height = 36;
  button.src = "{{ chirrup_pictures }}/buttons/" + name + ".png";
  document.getElementById("share").appendChild(button);
});
