"""The pages that are filmed: demo sites, pages that never stop moving, and pages that note when they change."""

from pathlib import Path

from record.demo import generate
from record.http1 import Response
from record.site import Exchange, Recording, write_site

URL = "https://films.example/"
# The number of changes of a page that notes their times.
MARKS = 80

SPINNER = """<style>
  #s { width: 60px; height: 60px; border: 8px solid #ccc; border-top-color: #06c; border-radius: 50%;
       animation: turn 1s linear infinite }
  @keyframes turn { to { transform: rotate(360deg) } }
</style><div id="s"></div>"""
WINDOW = """<style>
  body { margin: 0; height: 200vh; overflow: hidden; animation: slide 2s linear infinite;
         background: repeating-linear-gradient(45deg, #06c 0 40px, #fc0 40px 80px);
         background-size: 113px 113px }
  @keyframes slide { to { background-position: 113px 113px } }
</style>"""
NOISE = """<canvas id="c" width="1366" height="768" style="position:fixed;inset:0"></canvas><script>
  const context = c.getContext("2d");
  const picture = context.createImageData(1366, 768), words = new Uint32Array(picture.data.buffer);
  let seed = 1;
  function draw() {
    for (let place = 0; place < words.length; place++) {
      seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
      words[place] = seed | 0xff000000;
    }
    context.putImageData(picture, 0, 0);
    requestAnimationFrame(draw);
  }
  draw();
</script>"""
# Each change gives the box a colour that contains the change's number, and the page notes the time at which it set the
# colour.
MARKED = """<div id="box" style="position:fixed;right:0;bottom:0;{size}"></div><script>
  window.marks = [];
  function change() {{
    const number = window.marks.length + 1;
    box.style.background = "rgb(" + number + ",200," + (255 - number) + ")";
    window.marks.push(performance.timeOrigin + performance.now());
    if (number < {count}) setTimeout(change, {every_ms} - 1 + Math.random() * 2);
  }}
  addEventListener("load", () => setTimeout(change, 500));
</script>"""
SIZES = {"box": "width:100px;height:100px", "window": "left:0;top:0"}
EVERY_MS = (100, 250)

BODIES = {
    "spinner": SPINNER,
    "window": WINDOW,
    "noise": NOISE,
    **{
        f"{size}-{every_ms}": MARKED.format(size=style, count=MARKS, every_ms=every_ms)
        for size, style in SIZES.items()
        for every_ms in EVERY_MS
    },
}


def made_site(name: str, folder: Path) -> Path:
    """Make the site of this `name`, a demo site or one of BODIES, in `folder`; returns the site's folder."""
    if name not in BODIES:
        return write_site(generate(name), folder / name).folder
    page = f"<!doctype html><title>{name}</title><h1>{name}</h1>{BODIES[name]}"
    headers = (("Content-Type", "text/html; charset=utf-8"),)
    exchange = Exchange("GET", URL, Response(200, "OK", headers, page.encode()), "192.0.2.1")
    return write_site(Recording(URL, (exchange,), {"name": "benchmark"}), folder / name).folder
