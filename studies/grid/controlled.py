"""A grid beside an older study of object count and size, which is known from its slides."""

from pathlib import Path

import pandas as pd

from studies.grid.cells import verdict

REFERENCE = Path(__file__).with_name("controlled.csv")
PRESET = "controlled"
UNCHANGED = "as then"
OLD_PROTOCOLS = ("tcp+", "quic")


def read_old(path: Path = REFERENCE) -> pd.DataFrame:
    """The old study's page load times; columns network, protocol, count, size_bytes, plt_ms."""
    return pd.read_csv(path, comment="#")


def beside(cells: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """`cells` (from `studies.grid.cells.cells`) of the old study's pages and networks, with its values: columns
    old_reference and old_compared (ms), old_difference, old_verdict, and change.

    The old study gives means alone, so its verdict depends on the size of the difference only.
    """
    times = old.pivot_table(index=["network", "count", "size_bytes"], columns="protocol", values="plt_ms").reset_index()
    names = dict(zip(OLD_PROTOCOLS, ("old_reference", "old_compared"), strict=True))
    rows = cells[(cells["reference"] == OLD_PROTOCOLS[0]) & (cells["compared"] == OLD_PROTOCOLS[1])]
    table = rows.merge(times.rename(columns=names), on=["network", "count", "size_bytes"], how="inner")
    table["old_difference"] = (table["old_reference"] - table["old_compared"]) / table["old_reference"]
    table["old_verdict"] = [verdict(value) for value in table["old_difference"]]
    table["change"] = [change(*pair) for pair in zip(table["old_verdict"], table["verdict"], strict=True)]
    networks = list(dict.fromkeys(old["network"]))
    table = table.sort_values(["network"], key=lambda names: names.map(networks.index), kind="stable")
    return table.reset_index(drop=True)


def change(old: str, new: str) -> str:
    """How a verdict changed; empty without a new one."""
    if not new:
        return ""
    return UNCHANGED if old == new else f"{old} then, {new} now"
