"""How much later a change appears in the film than in the page. The page notes the time of each change, by the same
clock."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.films.loads import RECORDER, asked, load
from benchmarks.films.pages import EVERY_MS, MARKS, SIZES
from benchmarks.films.text import table
from dataset.run_files import FILM_LOG
from films.decoding import Pixels, decode
from films.log import read_log

QUIET_MS = 1000
ASK = Path(__file__).with_name("marks.js")


def marks_table(folder: Path, loads: int) -> str:
    """A row for each size and interval of changes: how long after the page's mark they appear in the film."""
    rows = []
    for size, every_ms in product(SIZES, EVERY_MS):
        late_ms: list[float] = []
        for number in range(loads):
            quiet_ms, into = QUIET_MS + MARKS * (every_ms + 5), folder / f"{size}-{every_ms}-{number}"
            one = load(f"{size}-{every_ms}", "dsl", RECORDER, into, quiet_ms=quiet_ms, script=str(ASK))
            late_ms += lateness(one.folder, asked(one))
        median, high = np.percentile(late_ms, [50, 99])
        rows.append([size, f"{every_ms} ms", f"{len(late_ms)}", *(f"{ms:.1f}" for ms in (median, high, max(late_ms)))])
    return f"{table(['changes', 'every', 'count', 'median', '99 %', 'most'], rows)}\ngoal: median 3, 99 % 17"


def lateness(folder: Path, marks_ms: Sequence[float]) -> list[float]:
    """For each change: how many ms after its mark (one of `marks_ms`, in ms since 1970) the film in `folder` shows it.
    Changes that the film does not show are left out."""
    film = folder / FILM_LOG
    log, numbers = read_log(film), list[int]()

    def look(blocks: Pixels) -> None:
        red, green, _ = blocks[-1, -1]
        numbers.append(int(red) if green == 200 else 0)

    decode(film, log, {"blocks": look})
    shown_us = dict(reversed(list(zip(numbers, log.times_us, strict=True))))
    return [
        (shown_us[place] - log.monotonic_us(mark)) / 1000 for place, mark in enumerate(marks_ms, 1) if place in shown_us
    ]
