"""A participant in a user study, who plays its films by keyboard alone, and answers by what is visible.

The participant sees the pictures on the page, and nothing that only the page's script knows:

PYTHONPATH=tests python -m support.participant http://127.0.0.1:8021/
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.browser import Browser, browsing

# WebDriver's codes (section 17.4.2).
TAB, ENTER, SPACE, HOME, RIGHT = "\ue004", "\ue007", " ", "\ue011", "\ue014"
# Pages that finish within this time of each other look equally fast (ms).
NOTICEABLE_MS = 100
# A script that returns when each picture on the page last changed while the film played (ms from its beginning), how
# often the film was played, and how long the longest of its pictures stood in the last play (ms). It is played at least
# as often as requested, and again if it did not play smoothly enough, for so long as a patient participant does that.
# Pictures are compared in large blocks.
WATCH = """
  const play = document.getElementById("play"), frame = () => new Promise(requestAnimationFrame);
  const canvases = [...document.querySelectorAll("canvas")].filter((canvas) => canvas.offsetWidth);
  const eye = new OffscreenCanvas(32, 18).getContext("2d", { willReadFrequently: true });
  const look = (canvas) => { eye.drawImage(canvas, 0, 0, 32, 18); return eye.getImageData(0, 0, 32, 18).data; };
  const arrived = performance.now();
  for (let plays = 1; ; plays++) {
    while (play.disabled) await frame();
    const times = canvases.map(() => 0);
    let over = false;
    // A machine that has no time may show no picture at all between the film's begin and its end.
    const watched = new MutationObserver(() => (over = !play.disabled));
    watched.observe(play, { attributes: true, attributeFilter: ["disabled"] });
    play.click();
    const begun = performance.now();
    let before = canvases.map(look), then = begun, longest = 0;
    while (!over) {
      const at = await frame(), now = canvases.map(look);
      now.forEach((picture, place) => {
        if (picture.some((value, block) => Math.abs(value - before[place][block]) > 12)) times[place] = at - begun;
      });
      longest = Math.max(longest, at - then);
      [before, then] = [now, at];
    }
    watched.disconnect();
    if (plays >= LEAST && (longest < SMOOTH || performance.now() - arrived > PATIENCE)) return [times, plays, longest];
  }
"""
SMOOTH_MS = 150
PATIENCE_MS = 60_000


def answer_pair(times_ms: list[float]) -> str:
    """The side that finished first, if that is visible."""
    first, second = times_ms
    if abs(first - second) < NOTICEABLE_MS:
        return "same"
    return "left" if first < second else "right"


def rate(times_ms: list[float]) -> int:
    """A rating from 70 down to 10: one point less for each tenth of a second."""
    return max(10, round(70 - times_ms[0] / 100))


def screen(browser: Browser) -> str:
    """The visible screen of the page."""
    part: str = browser.run("return document.querySelector('main > section:not([hidden])').id")
    return part


def wait_for(browser: Browser, condition: str) -> None:
    """Wait until `condition`, an expression in the page, is true."""
    browser.eventually(f"while (!({condition})) await new Promise((done) => setTimeout(done, 10)); return true;")


def begin(browser: Browser, url: str, see: Callable[[str], Any] = lambda _: None) -> None:
    """Open the study at `url`, and consent. `see` is called with the name of each screen before it is left."""
    browser.open(url)
    # The page's script must be loaded before any key is pressed.
    wait_for(browser, "document.querySelector('main').dataset.ready")
    see("welcome")
    browser.press(TAB, SPACE, TAB, ENTER)
    wait_for(browser, "document.getElementById('welcome').hidden")


def go_on(
    browser: Browser,
    films: int | None = None,
    pair: Callable[[list[float]], str] = answer_pair,
    rating: Callable[[list[float]], int] = rate,
    see: Callable[[str], Any] = lambda _: None,
    least_plays: int = 1,
    *,
    cares: bool = True,
) -> list[int]:
    """Answer the next questions, to the end or for this many `films`; returns how often each was played.

    If nobody `cares` about the answers, films that did not play smoothly are not played again.
    """
    watch = WATCH.replace("LEAST", str(least_plays)).replace("SMOOTH", str(SMOOTH_MS) if cares else "Infinity")
    watch = watch.replace("PATIENCE", str(PATIENCE_MS))
    plays: list[int] = []
    while (part := screen(browser)) != "end" and len(plays) != films:
        if part != "trial":
            see(part)
            browser.press(TAB, ENTER)
            wait_for(browser, "!document.getElementById('trial').hidden")
            continue
        before = browser.run("return document.getElementById('progress').textContent")
        times_ms, count, longest_ms = browser.eventually(watch)
        plays.append(count)
        if cares and longest_ms >= SMOOTH_MS:
            print(f"a film stood still for {longest_ms:.0f} ms in each of {count} plays or more: answers may be wrong")
        if len(times_ms) == 2:
            browser.press(SPACE, *[RIGHT] * ["left", "same", "right"].index(pair(times_ms)))
        else:
            browser.press(HOME, *[RIGHT] * (rating(times_ms) - 10))
        see("pair" if len(times_ms) == 2 else "rating")
        browser.press(TAB, ENTER)
        wait_for(
            browser,
            "document.getElementById('trial').hidden"
            f" || document.getElementById('progress').textContent !== {before!r}",
        )
    if films is None:
        # The last votes have been sent, or can be downloaded.
        wait_for(browser, "document.getElementById('end').dataset.done")
        see("end")
    return plays


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as profile, browsing(Path(profile)) as chromium:
        begin(chromium, sys.argv[1])
        print(len(go_on(chromium)), "films")
