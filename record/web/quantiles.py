"""Numbers that have published percentiles."""

import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import exp, log
from pathlib import Path
from statistics import NormalDist

LEVELS = (10, 25, 50, 75, 90)
FILE = Path(__file__).with_name("marginals.toml")
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """A table of marginals.toml, which explains the fields."""

    title: str
    source: str
    address: str
    over: str = ""
    values: tuple[float, ...] = ()
    percentile: int = 0
    unit: float = 1
    least: float = 0
    most: float = float("inf")
    of: str = ""
    percent: float = 0
    guess: bool = False
    fit: bool = True

    @property
    def levels(self) -> tuple[int, ...]:
        """The percentiles of its `values`."""
        return (self.percentile,) if self.percentile else LEVELS

    def value(self, share: float) -> float:
        """The number that a share of 0 to 1 is below: linear between the percentiles on a normal scale, of the numbers'
        logarithms if none is 0. Beyond the outer percentiles it goes on as between the two next to it."""
        assert self.levels == LEVELS, f"{self.title} has too few percentiles"
        places = [_NORMAL.inv_cdf(level / 100) for level in LEVELS]
        heights = [log(value) for value in self.values] if self.values[0] > 0 else list(self.values)
        place = _NORMAL.inv_cdf(share)
        part = min(max(bisect_right(places, place) - 1, 0), len(places) - 2)
        (start, end), (low, high) = list(pairwise(places))[part], list(pairwise(heights))[part]
        height = low + (high - low) * (place - start) / (end - start)
        return min(self.most, max(self.least, exp(height) if self.values[0] > 0 else height))


@cache
def marginals() -> dict[str, Marginal]:
    """The tables of marginals.toml, by name."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {name: Marginal(**{**table, "values": tuple(table.get("values", ()))}) for name, table in tables.items()}
