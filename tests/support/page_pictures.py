"""The pictures of the first hour: first screens of reports, films and a waterfall, each for light and for dark pages.

PYTHONPATH=tests:. ~/.cache/eyelevel/venv/bin/python -m support.page_pictures results/far

draws them, from the campaigns in docs/first-hour/ and a campaign of the same command as `far` that still has its films.
"""

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from analysis.figures.films import strips, typical
from analysis.runs import load
from base.places import PROJECT
from support.browser import Browser, browsing
from support.readme_pictures import PICTURES, draw_films

EXAMPLES = PROJECT / "docs" / "first-hour"
SITE, NETWORK, PROTOCOLS = "demo-news", "dsl", ("tcp+", "quic")
FILM_INCHES, FILM_FRAMES = 5.6, 12
# The size of the pictures in pixels.
SCREEN, WATERFALL = (1000, 640), (1100, 964)
COLORS = 256


def write_pictures(folder: Path) -> None:
    """Write all pictures; `folder` has the campaign with films."""
    runs = load(folder).runs
    shots = [typical(runs, folder, SITE, NETWORK, protocol) for protocol in PROTOCOLS]
    films = strips([shot for shot in shots if shot], FILM_FRAMES)
    drawn = PICTURES / "films.png", PICTURES / "films-dark.png"
    draw_films(films, FILM_INCHES, *drawn)
    for path in drawn:
        Image.open(path).quantize(COLORS, Image.Quantize.FASTOCTREE).save(path, optimize=True)
    with TemporaryDirectory() as temporary, browsing(Path(temporary) / "profile") as browser:
        for name in ("near", "far"):
            report = Path(temporary) / name
            _eyelevel("report", EXAMPLES / name, "--into", report)
            _write_screens(browser, report / "index.html", f"answer-{name}", SCREEN)
        page = _eyelevel("waterfall", folder, "--proto", ",".join(PROTOCOLS)).splitlines()[-1]
        _write_screens(browser, Path(page), "waterfall", WATERFALL, ".legend")


def _eyelevel(*words: str | Path) -> str:
    command = [sys.executable, "-m", "eyelevel", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=PROJECT).stdout


def _write_screens(browser: Browser, page: Path, name: str, size: tuple[int, int], top: str = "html") -> None:
    """Write the screen of `page`, from the element `top` on, as the picture `name` and as one for dark pages."""
    width, height = size
    for scheme, ending in (("light", ""), ("dark", "-dark")):
        browser.prefer(scheme)
        browser.open(page.as_uri())
        picture = Image.open(BytesIO(browser.screenshot(width, height, top)))
        picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(
            PICTURES / f"{name}{ending}.png", optimize=True
        )


if __name__ == "__main__":
    write_pictures(Path(sys.argv[1]))
