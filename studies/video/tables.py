"""The plays of a campaign as tables: every play, the summary of all plays of a video on a network, and how many
attempts do not count.

p is that of Welch's test of equal means, as in Kakhki et al. (IMC 2017).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.attempts import RUN, rejections
from analysis.statistics.contrasts import difference_interval
from analysis.statistics.samples import t_test_p
from base.bounded import read_json_value
from base.errors import EyelevelError
from dataset.run_files import TIMINGS
from dataset.table import valid_rows
from studies.video.pages import Video, page_named
from studies.video.play import MEASURES, Play, play_of

SETTING = ["network", "site"]
COLUMNS = [*SETTING, "protocol", "run", *(measure.name for measure in MEASURES)]
SUMMARY = [*SETTING, "measure", "protocol", "plays", "values", "mean", "deviation", "difference", "low", "high", "p"]
ATTEMPTS = [*SETTING, "protocol", "runs", "plays", "attempts", "rejected", "gates"]


@dataclass(frozen=True)
class PlayedRun:
    """A run, and its play of `video`."""

    network: str
    site: str
    protocol: str
    run: int
    video: Video
    play: Play


def read_runs(folder: Path, study: str) -> list[PlayedRun]:
    """The runs that count in the campaign in `folder`, if it is of `study`. Raises EyelevelError."""
    runs = []
    for row in valid_rows(folder, study):
        file = folder / row.folder / TIMINGS
        try:
            (page,) = read_json_value(file)
        except (OSError, ValueError) as error:
            raise EyelevelError(f"{file} cannot be read: {error}") from None
        video, play = page_named(row.site), play_of(page)
        if video is None or play is None:
            raise EyelevelError(f"{file} has no play of a video")
        runs.append(PlayedRun(row.network, row.site, row.protocol, row.run, video, play))
    return runs


def table(runs: list[PlayedRun]) -> pd.DataFrame:
    """A row for each run, with COLUMNS; a measure that a play lacks is NaN."""
    rows = [
        [one.network, one.site, one.protocol, one.run]
        + [measure.read(one.play, one.video.segments) for measure in MEASURES]
        for one in runs
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.astype({measure.name: float for measure in MEASURES})


def summary(plays: pd.DataFrame, protocols: Sequence[str], confidence: float) -> pd.DataFrame:
    """A row with SUMMARY for each network, site, measure and one of `protocols`, from the table of `table`.

    `values`: how many of the `plays` have the measure; `mean` and `deviation` (the sample's) are of these values.
    `difference`: the mean less the mean over the first protocol, with Welch's interval from `low` to `high`; `p` is
    Welch's. All of these are NaN for the first protocol itself; interval and p are NaN unless both have two values.
    """
    rows = []
    for (network, site), group in plays.groupby(SETTING, sort=False):
        for measure in MEASURES:
            reference, *_ = by_protocol = [group.loc[group["protocol"] == name, measure.name] for name in protocols]
            for name, of_protocol in zip(protocols, by_protocol, strict=True):
                row = [network, site, measure.name, name, len(of_protocol), of_protocol.count()]
                row += [of_protocol.mean(), of_protocol.std()]
                is_compared = name != protocols[0]
                rows.append(row + (_comparison(reference, of_protocol, confidence) if is_compared else [np.nan] * 4))
    return pd.DataFrame(rows, columns=SUMMARY)


def _comparison(reference: "pd.Series[float]", compared: "pd.Series[float]", confidence: float) -> list[float]:
    """The difference of the means, both ends of its interval, and p."""
    difference = compared.mean() - reference.mean()
    if min(reference.count(), compared.count()) < 2:
        return [difference, np.nan, np.nan, np.nan]
    x, y = (one.to_numpy()[None, :] for one in (reference, compared))
    low, high = difference_interval(x, y, confidence)
    return [difference, float(low[0]), float(high[0]), float(t_test_p(x, y, equal_var=False)[0])]


def attempts(runs: pd.DataFrame, protocols: Iterable[str]) -> pd.DataFrame:
    """A row with ATTEMPTS for each network, site and one of `protocols`: how many `runs` were tried, how many `plays`
    count, how many `attempts` were made, how many of these were `rejected`, and how many by each gate.

    `runs` has a row for each attempt.
    """
    all_attempts = rejections(runs)
    rows = []
    for (network, site), group in all_attempts.groupby(SETTING, sort=False):
        for name in protocols:
            some = group[group["protocol"] == name]
            gates = some.loc[~some["valid"], "gate"].value_counts(sort=False)
            text = ", ".join(f"{gate} {number}" for gate, number in gates.items())
            numbers = [some.groupby(RUN).ngroups, some["valid"].sum(), len(some), gates.sum(), text]
            rows.append([network, site, name, *numbers])
    return pd.DataFrame(rows, columns=ATTEMPTS)
