"""Films of a campaign for its figures and pages: the runs to show, and strips of their pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.runs import metrics_in, rows_of
from analysis.statistics.hypotheses import Pair
from films.kept import completeness, film_of, frames

# The most frames of a strip, and the possible steps between them, as multiples of a power of ten.
STRIP_FRAMES = 12
STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
# A run is typical of its setting by these metrics, unless others are named.
TYPICAL_BY = ("si", "plt")


@dataclass(frozen=True)
class Shot:
    """One run: its film, its setting and number, and its metrics (ms)."""

    film: Path
    site: str
    network: str
    protocol: str
    run: int
    metrics: dict[str, float]

    @property
    def end_ms(self) -> float:
        """When the page was done: its last visual change, or its load event if that came later."""
        return max(self.metrics[name] for name in ("lvc", "plt") if name in self.metrics)


@dataclass(frozen=True)
class Strip:
    """Frames of a run's film at `times_ms` after the navigation, and the visual completeness then, in percent."""

    shot: Shot
    times_ms: tuple[float, ...]
    complete: tuple[int, ...]
    frames: tuple[NDArray[np.uint8], ...]

    @property
    def first_complete(self) -> int | None:
        """The place of the first frame with the complete page."""
        return self.complete.index(100) if 100 in self.complete else None


def disagreement(gain_table: pd.DataFrame, network: str, pair: Pair) -> list[str]:
    """The sites on `network`, first the one whose gains in SI and PLT differ most; `gain_table` is from `gains`."""
    gains = rows_of(gain_table, network=network, **pair._asdict())
    gains = gains[gains["metric"].isin(["si", "plt"])]
    table = gains.pivot(index="site", columns="metric", values="gain").dropna()
    if table.empty or table.shape[1] < 2:
        return []
    return list((table["si"] - table["plt"]).abs().sort_values(ascending=False, kind="stable").index)


def nearest_to_medians(runs: pd.DataFrame, metrics: Sequence[str]) -> pd.Index:
    """The places of `runs`, which are of one setting, the most typical first: nearest to the medians of `metrics`, by
    the sum of the distances, each as a share of its median. The first of equals comes first."""
    times = runs[[*metrics]]
    medians = times.median()
    distance = ((times - medians).abs() / medians.where(medians > 0, 1)).sum(axis=1)
    return distance.sort_values(kind="stable").index


def typical(runs: pd.DataFrame, folder: Path, site: str, network: str, protocol: str) -> Shot | None:
    """The run nearest to the median SI and PLT of its setting, among the valid runs that still have their film."""
    if not {"folder", *TYPICAL_BY} <= set(runs):
        return None
    of_setting = rows_of(runs, valid=True, site=site, network=network, protocol=protocol).dropna(subset=[*TYPICAL_BY])
    for place in nearest_to_medians(of_setting, TYPICAL_BY):
        if film := film_of(folder / str(of_setting.at[place, "folder"]), folder):
            row = of_setting.loc[place]
            metrics = {name: float(row[name]) for name in metrics_in(runs)}
            return Shot(film, site, network, protocol, int(row["run"]), metrics)
    return None


def strips(shots: Sequence[Shot], count: int = STRIP_FRAMES, end_ms: float | None = None) -> list[Strip]:
    """Strips of the `shots`, all with at most `count` frames at the same times. These are in round steps until
    `end_ms`; unless that is given, until the pages of all shots are done. Raises EyelevelError.
    """
    end_ms = max([1.0, *(shot.end_ms for shot in shots)]) if end_ms is None else end_ms
    power = 10 ** math.floor(math.log10(end_ms / count))
    step_ms = next(factor * power for factor in STEPS if factor * power * count >= end_ms)
    times = [step_ms * (place + 1) for place in range(math.ceil(end_ms / step_ms))]
    return [
        Strip(shot, tuple(times), tuple(completeness(shot.film, times)), tuple(frames(shot.film, times)))
        for shot in shots
    ]
