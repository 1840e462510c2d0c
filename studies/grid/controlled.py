"""A grid beside the controlled study of object count and size that is known from its slides."""

from pathlib import Path

import pandas as pd

from studies.grid.cells import verdict

REFERENCE = Path(__file__).with_name("controlled.csv")
PRESET = "controlled"
OLD_PROTOCOLS = ("tcp+", "quic")


def read_old(path: Path = REFERENCE) -> pd.DataFrame:
    """The old study's page load times; columns network, protocol, count, size_bytes, plt_ms."""
    return pd.read_csv(path, comment="#")


def beside(cells: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """`cells` (of `grid_cells.cells`) of the old study's pages and networks, with its values: columns old_reference and
    old_compared (ms), old_difference, old_verdict, and `change`.

    The old study has a mean alone of each, so its verdict is by the size of the difference only.
    """
    times = old.pivot_table(index=["network", "count", "size_bytes"], columns="protocol", values="plt_ms").reset_index()
    names = dict(zip(OLD_PROTOCOLS, ("old_reference", "old_compared"), strict=True))
    own = cells[(cells["reference"] == OLD_PROTOCOLS[0]) & (cells["compared"] == OLD_PROTOCOLS[1])]
    found = own.merge(times.rename(columns=names), on=["network", "count", "size_bytes"], how="inner")
    found["old_difference"] = (found["old_reference"] - found["old_compared"]) / found["old_reference"]
    found["old_verdict"] = [verdict(value) for value in found["old_difference"]]
    found["change"] = [change(*pair) for pair in zip(found["old_verdict"], found["verdict"], strict=True)]
    networks = list(dict.fromkeys(old["network"]))
    found = found.sort_values(["network"], key=lambda names: names.map(networks.index), kind="stable")
    return found.reset_index(drop=True)


def change(old: str, new: str) -> str:
    """What became of a verdict."""
    if not new:
        return ""
    return "as then" if old == new else f"{old} then, {new} now"
