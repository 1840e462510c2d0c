"""How much later than in the page changes are in the film. The page marks the time of each change, by the same
clock."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.films.loads import RECORDER, asked, load
from benchmarks.films.pages import MARKS
from benchmarks.films.text import table
from dataset.run_files import FILM_LOG
from films.decoding import Pixels, decode
from films.log import read_log

QUIET_MS = 1000
ASK = Path(__file__).with_name("marks.js")


def marks_table(folder: Path, loads: int) -> str:
    """A row for each interval between changes: how much later than the page's mark a change is in the film."""
    rows = []
    for every_ms in (100, 250):
        late_ms: list[float] = []
        for number in range(loads):
            quiet_ms = QUIET_MS + MARKS * (every_ms + 5)
            one = load(
                f"marks-{every_ms}",
                "dsl",
                RECORDER,
                folder / f"{every_ms}-{number}",
                quiet_ms=quiet_ms,
                script=str(ASK),
            )
            late_ms += lateness(one.folder, asked(one))
        median, high = np.percentile(late_ms, [50, 99])
        rows.append([f"every {every_ms} ms", f"{len(late_ms)}", f"{median:.1f}", f"{high:.1f}", f"{max(late_ms):.1f}"])
    return f"{table(['page changes', 'changes', 'median', '99 %', 'most'], rows)}\ngoal: median 3, 99 % 17"


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
