"""Compares a grid with an older study of object count and size, which is known from its slides.

`controlled.csv` has its controlled loads, `uncontrolled.csv` its loads over the web. Each file is compared with the
preset of that name.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.statistics.outcomes import FASTER, SLOWER

CONTROLLED, UNCONTROLLED = "controlled", "uncontrolled"
PRESETS = (CONTROLLED, UNCONTROLLED)
UNCHANGED = "as then"
OLD_PROTOCOLS = ("tcp+", "quic")
# The older study reports only means, so its numbers can only be judged by their size. These words are not verdicts of
# this project, which rest on tests (`analysis.statistics.outcomes`).
SIMILAR_WITHIN = 0.05
SIMILAR = "similar"


def read_old(preset: str) -> pd.DataFrame:
    """The old study's page load times for `preset`; columns network, protocol, count, size_bytes, plt_ms."""
    return pd.read_csv(Path(__file__).with_name(f"{preset}.csv"), comment="#")


def beside(cells: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """The `cells` (from `studies.grid.cells.cells`) of the old study's pages and networks, with the old study's values.

    Further columns: old_reference and old_compared (ms), old_gain (from these two) and mean_gain (from the grid's
    means); old_word and word (`by_size` of both gains), and change.
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
    """A word for the size of `gain`, a gain of means; empty if the gain is NaN."""
    if np.isnan(gain):
        return ""
    if abs(gain) < SIMILAR_WITHIN:
        return SIMILAR
    return FASTER if gain < 0 else SLOWER


def change(old: str, new: str) -> str:
    """The change from the word `old` to the word `new`; empty if there is no new word."""
    if not new:
        return ""
    return UNCHANGED if old == new else f"{old} then, {new} now"
