"""Whether the machine was equally fast during live loads and during replays, according to its canary."""

from collections.abc import Mapping

import pandas as pd

from analysis.runs import CANARY_PREFIX
from measure.host.canary import DRIFT
from record.live import LiveLoads


def slowness(live: LiveLoads, runs: pd.DataFrame) -> float | None:
    """The ratio of the canary's median time before the `live` loads to that before the replays in `runs`, for the task
    in which they differ most. None if either is unknown."""
    ratios = []
    for task in sorted({task for load in live.loads for task in load.canary_ms}):
        column = f"{CANARY_PREFIX}_{task}_ms"
        before_live = pd.Series([load.canary_ms[task] for load in live.loads if task in load.canary_ms])
        before_replays = runs[column].dropna() if column in runs else pd.Series(dtype=float)
        if len(before_replays):
            ratios.append(float(before_live.median() / before_replays.median()))
    return max(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=None)


def sentences(live: Mapping[str, LiveLoads], runs: pd.DataFrame) -> list[str]:
    """A sentence for each site for which the machine was slower during its live loads, or during its replays in
    `runs`."""
    texts = []
    for name, loads in live.items():
        factor = slowness(loads, runs)
        if factor is not None and max(factor, 1 / factor) > DRIFT:
            slower, other = ("live loads", "replays") if factor > 1 else ("replays", "live loads")
            texts.append(
                f"{name}: before its {slower} the canary took {max(factor, 1 / factor):.2f} times as long as before "
                f"its {other}; the machine was slower then, or another one, which is part of the error."
            )
    return texts
