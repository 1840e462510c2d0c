"""The plays of a campaign as tables: every play, and what all plays of a video behind a network came to.

p is Welch's test of equal means, as in Kakhki et al. (IMC 2017).
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.samples import t_test_p
from base.errors import EyelevelError
from measure.run.visit import TIMINGS
from measure.table import valid_rows
from record.video import Video, page_named
from studies.video.play import MEASURES, Play, play_of

SETTING = ["network", "site"]
COLUMNS = [*SETTING, "protocol", "run", *(measure.name for measure in MEASURES)]
SUMMARY = [*SETTING, "measure", "protocol", "plays", "mean", "deviation", "p"]


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
    """The runs that count of the campaign in `folder`, if it is of `study`. Raises EyelevelError."""
    runs = []
    for row in valid_rows(folder, study):
        file = folder / row.folder / TIMINGS
        try:
            (page,) = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise EyelevelError(f"{file} cannot be read: {error}") from None
        video, play = page_named(row.site), play_of(page)
        if video is None or play is None:
            raise EyelevelError(f"{file} has no play of a video")
        runs.append(PlayedRun(row.network, row.site, row.protocol, row.run, video, play))
    return runs


def table(runs: list[PlayedRun]) -> pd.DataFrame:
    """A row for each run, with COLUMNS; what a play does not have is NaN."""
    rows = [
        [one.network, one.site, one.protocol, one.run]
        + [measure.read(one.play, one.video.segments) for measure in MEASURES]
        for one in runs
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.astype({measure.name: float for measure in MEASURES})


def summary(plays: pd.DataFrame) -> pd.DataFrame:
    """A row for each network, site, measure and protocol, with SUMMARY, of the table of `table`.

    `deviation` is that of the sample; `p` is against the protocol that comes first, and NaN for that or without two
    plays of both.
    """
    protocols = list(dict.fromkeys(plays["protocol"]))
    rows = []
    for (network, site), group in plays.groupby(SETTING, sort=False):
        for measure in MEASURES:
            values = {name: group.loc[group["protocol"] == name, measure.name].dropna() for name in protocols}
            reference = values[protocols[0]].to_numpy()
            for name, of_protocol in values.items():
                is_compared = name != protocols[0] and min(len(reference), len(of_protocol)) > 1
                p = float(t_test_p(reference, of_protocol.to_numpy(), equal_var=False)) if is_compared else np.nan
                mean, deviation = of_protocol.mean(), of_protocol.std()
                rows.append((network, site, measure.name, name, len(of_protocol), mean, deviation, p))
    return pd.DataFrame(rows, columns=SUMMARY)
