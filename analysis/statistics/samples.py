"""Runs as one array, and the computation of a statistic over the whole array at once.

A cell is a network, site, protocol and metric. Its values lie along the last axis, with one index for each block of its
network and site. So the values of two protocols at the same index were measured side by side. A run that is missing, or
lacks the metric, is NaN.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from analysis.statistics.hypotheses import Pair

Array = NDArray[np.float64]
# Takes a pair and the times over its reference and its compared protocol; returns column → values of its cells.
Statistics = Callable[[Pair, Array, Array], Mapping[str, NDArray[Any]]]
CELL = ["network", "site", "metric"]
# The columns that identify a statistic over all sites.
OVER_SITES = ["reference", "compared", "network", "metric"]


@dataclass(frozen=True)
class Samples:
    """`values` in ms, of shape networks x sites x protocols x metrics x blocks, and the names along its axes.

    `rounds`: the number of blocks for which each network has been measured at all its sites, whether their runs count
    or not; unless given, all blocks. A site that was given up, or has no attempt yet, does not reduce it.
    """

    values: Array
    networks: tuple[str, ...]
    sites: tuple[str, ...]
    protocols: tuple[str, ...]
    metrics: tuple[str, ...]
    rounds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.rounds:
            object.__setattr__(self, "rounds", (self.values.shape[-1],) * len(self.networks))

    def of(self, protocol: str) -> Array:
        """The times over `protocol`: networks x sites x metrics x blocks."""
        return self.values[:, :, self.protocols.index(protocol)]

    def of_pair(self, pair: Pair) -> tuple[Array, Array]:
        """The times over both protocols of `pair`, the reference's first."""
        return self.of(pair.reference), self.of(pair.compared)

    def measured(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs whose protocols both have runs."""
        return [pair for pair in pairs if pair.is_of(self.protocols)]

    def on(self, networks: Sequence[str]) -> "Samples":
        """The samples of only these `networks`."""
        places = [self.networks.index(name) for name in networks]
        rounds = tuple(self.rounds[place] for place in places)
        return replace(self, values=self.values[places], networks=tuple(networks), rounds=rounds)

    def frame(self, columns: Mapping[str, NDArray[Any] | str]) -> pd.DataFrame:
        """A table with a row for each network, site and metric, from arrays of that shape."""
        return frame(columns, network=self.networks, site=self.sites, metric=self.metrics)

    def compare(self, pairs: Iterable[Pair], statistics: Statistics, columns: Sequence[str]) -> pd.DataFrame:
        """A row for each of `pairs`, network, site and metric with a run of both protocols. `statistics` computes the
        columns of a pair from its times; `columns` are those of a table without pairs."""
        tables = []
        for pair in pairs:
            both = self.of_pair(pair)
            is_measured = np.minimum(*map(counts, both)).ravel() > 0
            tables.append(self.frame({**pair._asdict(), **statistics(pair, *both)})[is_measured])
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(columns))


def frame(columns: Mapping[str, NDArray[Any] | str], **axes: Sequence[str]) -> pd.DataFrame:
    """A table with a row for each cell of arrays with these `axes` (the name of an axis → the names along it)."""
    index = pd.MultiIndex.from_product(axes.values(), names=axes)
    flat = {name: values if isinstance(values, str) else np.ravel(values) for name, values in columns.items()}
    return pd.DataFrame(flat, index=index).reset_index()


def by_metric(values: Array) -> Array:
    """networks x sites x metrics (x blocks) → networks x metrics x sites (x blocks), for means over sites."""
    return np.swapaxes(values, 1, 2)


def counts(values: Array) -> NDArray[np.int64]:
    """The number of values in each cell."""
    return np.asarray(np.isfinite(values).sum(axis=-1))


def logarithms(times: Array) -> Array:
    """The natural logarithm of each of `times`; NaN if it has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(times)
    return np.asarray(np.where(np.isfinite(logs), logs, np.nan))


def by_count(statistic: Callable[..., Array], *values: Array, least: int = 2, outputs: tuple[int, ...] = ()) -> Array:
    """`statistic` of every cell, from arrays whose last axis is padded with NaN.

    `statistic` gets all cells with the same counts together: one array for each of `values`, of shape cells x count,
    without NaN and sorted along the last axis. It returns an array of shape cells x `outputs`. Its warnings about
    constant samples, whose results are NaN, are silenced. Cells with fewer than `least` values in any of `values` are
    NaN. A cell's result does not depend on other cells.
    """
    flat = [np.sort(array.reshape(-1, array.shape[-1]), axis=-1) for array in values]
    sizes = np.stack([counts(array) for array in flat], axis=-1)
    result = np.full((len(sizes), *outputs), np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for size in set(map(tuple, sizes.tolist())):
            if min(size) >= least:
                cells = np.flatnonzero((sizes == size).all(axis=1))
                result[cells] = statistic(*(array[cells, :count] for array, count in zip(flat, size, strict=True)))
    return result.reshape((*values[0].shape[:-1], *outputs))


def is_constant(x: Array) -> NDArray[np.bool_]:
    """Whether all values along the last axis are equal."""
    return np.asarray(np.ptp(x, axis=-1) == 0)


def t_test_p(reference: Array, compared: Array, *, equal_var: bool) -> Array:
    """The p value of a t test of equal means, along the last axis: Welch's, or with `equal_var` Student's. The latter
    is the one-way ANOVA of two samples, but scipy's f_oneway loses small differences to rounding.

    Times in whole frames can make both samples constant, so that they have no scatter. The p value is then that of the
    exact permutation test: the probability that chance separates equal runs like this, or 1 if the constants are equal.
    """

    def t_test(x: Array, y: Array) -> Array:
        from scipy import stats  # takes a second to load, which a campaign of one run need not

        p = stats.ttest_ind(x, y, axis=-1, equal_var=equal_var).pvalue
        separated = 2 / special.comb(x.shape[1] + y.shape[1], x.shape[1])
        constant_p = np.where(x[:, 0] == y[:, 0], 1.0, min(1.0, separated))
        return np.where(is_constant(x) & is_constant(y), constant_p, p)

    return by_count(t_test, np.asarray(reference, dtype=float), np.asarray(compared, dtype=float))
