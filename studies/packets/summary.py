"""Rows of loads or connections as means over runs, for the tables of the section."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.text import NOTHING, whole_number

SETTING = ["site", "network", "protocol"]


def summary(table: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """A row for each combination of `keys`, in the order of their first rows: runs, and mean and sd of each column."""
    groups = table.groupby(keys, sort=False)
    statistics = {"runs": groups.size()}
    for column in columns:
        values = groups[column]
        statistics |= {column: values.mean(), f"{column}_sd": values.std(), f"{column}_runs": values.count()}
    return pd.DataFrame(statistics).reset_index()


def means(column: str, heading: str, digits: int = 1) -> dict[Any, Any]:
    """A column of `summary` for `text_table`: mean ± sd, and the number of runs with a value if not all have one."""

    def text(mean: float, deviation: float, values: int, runs: int) -> str:
        if not values:
            return NOTHING
        spread = f" ± {deviation:.{digits}f}" if math.isfinite(deviation) else ""
        return f"{mean:.{digits}f}{spread}" + (f" ({values} of {runs})" if values < runs else "")

    return {(column, f"{column}_sd", f"{column}_runs", "runs"): (heading, text)}


RUNS = {"runs": ("runs", whole_number)}
