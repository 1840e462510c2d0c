"""How right the forecast of a campaign's time was: the attempts of a measured campaign are made again, on paper.

    PYTHONPATH=tests:. python -m support.forecasts data/reference docs/first-hour/near

prints a table: the forecast of the whole time after shares of the attempts, as a ratio of the real one, without pauses;
and the same for each round, as a campaign of its own.
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from dataset.durations import elapsed_seconds
from dataset.table import Row, read_rows, require_document
from measure.campaign.block import Judgement
from measure.campaign.forecast import Forecaster, RunModel
from measure.campaign.progress import ProgressDisplay

# The shares of a campaign's attempts after which its forecast is looked at.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75)


def ratios(rows: Sequence[Row], model: RunModel, shares: Sequence[float] = SHARES) -> list[float]:
    """The forecast of the whole time of a campaign as a ratio of the real one, after `shares` of its attempts, `rows`,
    which were made one after another. Its display is told of them, and of a forecast after each block, as in a
    campaign. A run is open until its last attempt, so what was rejected later was known from the beginning."""
    last = {row.of: place for place, row in enumerate(rows)}
    elapsed_s = {row.folder: seconds for row, seconds in elapsed_seconds(rows)}
    display = ProgressDisplay(Console(file=io.StringIO()), list(last), 0)
    places = [round(share * len(rows)) for share in shares]
    expected_s: list[float] = []
    spent_s = 0.0
    for place in range(len(rows)):
        if place == 0 or rows[place].block != rows[place - 1].block:
            open_runs = [run for run in last if last[run] >= place]
            display.expects(Forecaster(rows[:place], Path("no-such-folder"), model).run_seconds(open_runs))
        expected_s += [spent_s + (display.seconds_left() or 0.0)] * places.count(place)
        spent_s += elapsed_s[rows[place].folder]
        display.notify(Judgement(rows[place], given_up=last[rows[place].of] == place))
    return [seconds / spent_s for seconds in expected_s]


def main(folders: Sequence[str]) -> None:
    print("forecast / real time after", *(f"{share:>4.0%}" for share in SHARES), "of the attempts")
    for folder in map(Path, folders):
        rows, model = read_rows(folder), RunModel.of(require_document(folder))
        rounds = sorted({row.run for row in rows})
        parts = [(folder.name, rows)]
        if len(rounds) < 5:
            parts += [(f"{folder.name}, round {one}", [row for row in rows if row.run == one]) for one in rounds]
        for name, part in parts:
            print(f"{name:25}", *(f"{ratio:.2f}" for ratio in ratios(part, model)), f"({len(part)} attempts)")


if __name__ == "__main__":
    main(sys.argv[1:])
