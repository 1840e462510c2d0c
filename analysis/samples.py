"""The valid runs of a campaign as one array, and the computation of a statistic over all of it at once.

A cell is a network, site, protocol and metric. Its values stand along the last axis, one place for each block of its
network and site, so that a place of two protocols holds two runs that were measured side by side; a run that is
missing, or has no such metric, is NaN.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from analysis.hypotheses import Pair
from analysis.runs import CampaignTable, network_and_browser
from base.errors import EyelevelError
from dataset.declaration import declaration_of
from dataset.table import read_given_up

Array = NDArray[np.float64]
# From a pair and the times over its reference and its compared protocol: column → values of its cells.
Statistics = Callable[[Pair, Array, Array], Mapping[str, NDArray[Any]]]
CELL = ["network", "site", "metric"]
# Runs that began further from each other than this were not measured side by side.
SIDE_BY_SIDE = pd.Timedelta(hours=1)
# What a statistic over all sites is of.
OVER_SITES = ["reference", "compared", "network", "metric"]


@dataclass(frozen=True)
class Samples:
    """`values` in ms, of shape networks x sites x protocols x metrics x blocks, and the names along its axes.

    `rounds`: how many blocks each network has been measured for at all its sites, whether their runs count or not; all
    places unless given. A site that was given up holds up nothing.
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
        """The times over both protocols of `pair`, those over its reference first."""
        return self.of(pair.reference), self.of(pair.compared)

    def behind(self, networks: Sequence[str]) -> "Samples":
        """The samples of these `networks` alone."""
        places = [self.networks.index(name) for name in networks]
        rounds = tuple(self.rounds[place] for place in places)
        return replace(self, values=self.values[places], networks=tuple(networks), rounds=rounds)

    def first(self, blocks: int) -> "Samples":
        """The samples of the first so many blocks of each network and site."""
        rounds = tuple(min(number, blocks) for number in self.rounds)
        return replace(self, values=self.values[..., :blocks], rounds=rounds)

    def frame(self, columns: Mapping[str, NDArray[Any] | str]) -> pd.DataFrame:
        """A table with a row for each network, site and metric, from arrays of that shape."""
        index = pd.MultiIndex.from_product([self.networks, self.sites, self.metrics], names=CELL)
        flat = {name: values if isinstance(values, str) else np.ravel(values) for name, values in columns.items()}
        return pd.DataFrame(flat, index=index).reset_index()

    def compare(self, pairs: Iterable[Pair], statistics: Statistics, columns: Sequence[str]) -> pd.DataFrame:
        """A row for each of `pairs`, network, site and metric that both protocols have a run of.

        `statistics` computes columns of a pair from its times; `columns` are those of a table without any pair.
        """
        tables = []
        for pair in pairs:
            reference, compared = self.of_pair(pair)
            table = self.frame({**pair._asdict(), **statistics(pair, reference, compared)})
            tables.append(table[((counts(reference) > 0) & (counts(compared) > 0)).ravel()])
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(columns))


def samples_of(campaign: CampaignTable, columns: Sequence[str] | None = None) -> Samples:
    """The valid runs of `campaign`, by its metrics or by these `columns`; sites in alphabetical order.

    Raises EyelevelError when a run counts twice.

    Blocks stand in the order in which they were planned; those of each network and site begin at the first place. Those
    of protocols alone that were added after the first run stand behind all others, and are no rounds.
    """
    runs, metrics = campaign.valid, campaign.metrics if columns is None else tuple(columns)
    if runs.empty:
        return Samples(np.empty((0, 0, 0, len(metrics), 0)), (), (), (), metrics)
    setting = ["network", "site", "protocol"]
    attempts = campaign.runs.assign(block=blocks_of(campaign.runs))
    runs = attempts[attempts["valid"]]
    for number in ("run", "block"):
        if (is_second := runs[[*setting, number]].duplicated()).any():
            run = " ".join(str(value) for value in runs.loc[is_second, [*setting, number]].iloc[0])
            raise EyelevelError(
                f"{campaign.folder / 'runs.csv'} has the {number} {run} as valid more than once; keep one"
            )
    networks = _in_order(set(runs["network"]), campaign.networks)
    protocols = _in_order(set(runs["protocol"]), campaign.protocols)
    sites = tuple(sorted(set(runs["site"])))
    added = declaration_of(campaign.document, campaign.folder).protocols
    of_block = attempts["protocol"].isin(list(added)).groupby([attempts[name] for name in ("network", "site", "block")])
    is_added = of_block.transform("all")
    # A block of which no run counts keeps its place, so that nothing after it moves.
    order = attempts["block"] + is_added * (attempts["block"].max() + 1)
    blocks = order.groupby([attempts["network"], attempts["site"]]).rank("dense").astype(int)[attempts["valid"]]
    values = np.full((len(networks), len(sites), len(protocols), len(metrics), blocks.max()), np.nan)
    places = [
        pd.Index(names).get_indexer(runs[column])
        for names, column in zip((networks, sites, protocols), setting, strict=True)
    ]
    values[*places, :, blocks - 1] = runs[list(metrics)].to_numpy(dtype=float)
    values[~np.isfinite(values)] = np.nan
    tried = attempts[~is_added].groupby(["network", "site"])["block"].nunique()
    return Samples(values, networks, sites, protocols, metrics, _rounds(campaign, networks, tried))


def _rounds(campaign: CampaignTable, networks: Iterable[str], tried: "pd.Series[int]") -> tuple[int, ...]:
    """The `rounds` of the samples of `campaign`; `tried`: how many blocks, by network and site."""
    given_up = {(entry.network, entry.site) for entry in read_given_up(campaign.folder)}
    of_network: dict[str, dict[str, int]] = {}
    for (network, site), number in tried.items():
        of_network.setdefault(network, {})[site] = int(number)
    rounds = []
    for network in networks:
        numbers = of_network.get(network, {})
        name, _ = network_and_browser(network, campaign.browsers)
        going_on = [number for site, number in numbers.items() if (name, site) not in given_up]
        rounds.append(min(going_on or numbers.values(), default=0))
    return tuple(rounds)


def blocks_of(runs: pd.DataFrame) -> "pd.Series[int]":
    """A number for each of `runs` (a row for each attempt): those of a network and site with the same one were measured
    side by side.

    A run whose block is unknown (0) has a block of its own. Where no block is known at all, runs of the same number are
    one, unless more than SIDE_BY_SIDE lies between the starts of two that follow each other; then a later attempt at a
    run, too, is of another block.
    """
    unknown = pd.Series(0, runs.index)
    block = runs.get("block", unknown)
    if (block > 0).any():
        # The attempts at one run stay together.
        of_run = block.max() + 1 + runs.groupby(["network", "site", "protocol", "run"]).ngroup()
        return block.where(block > 0, of_run).astype(int)
    of_number = ["network", "site", "run"]
    table = runs[of_number].assign(start=starts_of(runs)).reset_index(drop=True)
    is_later = table.sort_values("start", kind="stable").groupby(of_number)["start"].diff() > SIDE_BY_SIDE
    part = is_later.groupby([table[name] for name in of_number]).cumsum()
    # A second part comes after all first ones, as a protocol that was added does.
    numbers = table.assign(part=part).groupby(["part", "run"]).ngroup() + 1
    return pd.Series(numbers.to_numpy(), runs.index)


def starts_of(runs: pd.DataFrame) -> "pd.Series[pd.Timestamp]":
    """When each attempt began; NaT where that is unknown."""
    texts = runs["started_at"] if "started_at" in runs else pd.Series("", runs.index)
    return pd.to_datetime(texts, utc=True, errors="coerce", format="ISO8601")


def _in_order(names: set[str], order: Sequence[str]) -> tuple[str, ...]:
    """First those of `names` that are in `order`, in that order, then all others."""
    return tuple(name for name in order if name in names) + tuple(sorted(names.difference(order)))


def counts(values: Array) -> NDArray[np.int64]:
    """The number of values in each cell."""
    return np.asarray(np.isfinite(values).sum(axis=-1))


def logarithms(times: Array) -> Array:
    """The natural logarithm of each of `times`; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(times)
    return np.asarray(np.where(np.isfinite(logs), logs, np.nan))


def by_count(statistic: Callable[..., Array], *values: Array, least: int = 2, outputs: tuple[int, ...] = ()) -> Array:
    """`statistic` of every cell, from arrays whose last axis is padded with NaN.

    `statistic` gets all cells with the same counts together, as arrays of cells x count without NaN and sorted along
    the last axis, one for each of `values`; it returns an array whose first axis is the cells, followed by the shape
    `outputs`. Its warnings about constant samples, whose results are NaN, are silenced. The result has the shape of
    the cells, followed by `outputs`; it is NaN for cells with fewer than `least` values in any of `values`. A cell's
    result depends on no other cell.
    """
    flat = [np.sort(array.reshape(-1, array.shape[-1]), axis=-1) for array in values]
    sizes = np.stack([counts(array) for array in flat], axis=-1)
    result = np.full((len(sizes), *outputs), np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for size in np.unique(sizes[(sizes >= least).all(axis=1)], axis=0):
            cells = np.flatnonzero((sizes == size).all(axis=1))
            result[cells] = statistic(*(array[cells, :count] for array, count in zip(flat, size, strict=True)))
    return result.reshape((*values[0].shape[:-1], *outputs))


def is_constant(x: Array) -> NDArray[np.bool_]:
    """Whether all values along the last axis are the same."""
    return np.asarray(np.ptp(x, axis=-1) == 0)


def t_test_p(reference: Array, compared: Array, *, equal_var: bool) -> Array:
    """p value of a t test of equal means, along the last axis: Student's if `equal_var`, else Welch's.

    Where both samples are constant, as frames of a film make them, there is no scatter to go by. Then it is that of the
    exact permutation test: the probability that equal runs separate so by chance, or 1 where the constants are equal.
    """

    def t_test(x: Array, y: Array) -> Array:
        p = stats.ttest_ind(x, y, axis=-1, equal_var=equal_var).pvalue
        separated = 2 / special.comb(x.shape[1] + y.shape[1], x.shape[1])
        constant_p = np.where(x[:, 0] == y[:, 0], 1.0, min(1.0, separated))
        return np.where(is_constant(x) & is_constant(y), constant_p, p)

    return by_count(t_test, np.asarray(reference, dtype=float), np.asarray(compared, dtype=float))
