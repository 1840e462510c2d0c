"""A grid beside an older study of object count and size, which is known from its slides.

Its controlled loads are in `controlled.csv`, its loads over the web in `uncontrolled.csv`. Each file is compared with
the preset of that name.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.statistics.outcomes import FASTER, SLOWER

CONTROLLED, UNCONTROLLED = "controlled", "uncontrolled"
PRESETS = (CONTROLLED, UNCONTROLLED)
UNCHANGED = "as then"
OLD_PROTOCOLS = ("tcp+", "quic")
# The older study tells means alone, so its numbers can be judged by their size alone. These words are no verdicts of
# this project, whose verdicts rest on tests (`analysis.statistics.outcomes`).
SIMILAR_WITHIN = 0.05
SIMILAR = "similar"


def read_old(preset: str) -> pd.DataFrame:
    """The old study's page load times beside `preset`; columns network, protocol, count, size_bytes, plt_ms."""
    return pd.read_csv(Path(__file__).with_name(f"{preset}.csv"), comment="#")


def beside(cells: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """`cells` (from `studies.grid.cells.cells`) of the old study's pages and networks, with its values.

    Further columns: old_reference and old_compared (ms), old_gain (of these) and mean_gain (of the means of the
    grid); old_word and word (`by_size` of both), and change.
    """
    times = old.pivot_table(index=["network", "count", "size_bytes"], columns="protocol", values="plt_ms").reset_index()
    names = dict(zip(OLD_PROTOCOLS, ("old_reference", "old_compared"), strict=True))
    rows = cells[(cells["reference"] == OLD_PROTOCOLS[0]) & (cells["compared"] == OLD_PROTOCOLS[1])]
    table = rows.merge(times.rename(columns=names), on=["network", "count", "size_bytes"], how="inner")
    table["old_gain"] = table["old_compared"] / table["old_reference"] - 1
    table["mean_gain"] = table["mean_compared"] / table["mean_reference"] - 1
    table["old_word"], table["word"] = (table[column].map(by_size) for column in ("old_gain", "mean_gain"))
    table["change"] = [change(*pair) for pair in zip(table["old_word"], table["word"], strict=True)]
    networks = list(dict.fromkeys(old["network"]))
    table = table.sort_values(["network"], key=lambda names: names.map(networks.index), kind="stable")
    return table.reset_index(drop=True)


def by_size(gain: float) -> str:
    """A gain of means in a word, by its size alone; empty where there is none."""
    if np.isnan(gain):
        return ""
    if abs(gain) < SIMILAR_WITHIN:
        return SIMILAR
    return FASTER if gain < 0 else SLOWER


def change(old: str, new: str) -> str:
    """How a word changed; empty without a new one."""
    if not new:
        return ""
    return UNCHANGED if old == new else f"{old} then, {new} now"
