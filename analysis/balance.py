"""Whether protocols were measured side by side: in the same blocks, at the same time, at all places of a block."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, product
from operator import itemgetter

import numpy as np
import pandas as pd
from scipy import stats

from analysis.attempts import BLOCK, in_places, tried_in
from analysis.runs import CampaignTable
from analysis.samples import SIDE_BY_SIDE
from analysis.statistics.dependence import Codes
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array

# Below this share of complete blocks, or of runs with a partner within the hour, a warning is given.
LEAST_SHARE = 0.95
EPOCH, MINUTE = pd.Timestamp(0, tz="UTC"), pd.Timedelta(minutes=1)
# Places are out of balance if the effect exceeds UNBALANCED_EFFECT, and chance does so less often than UNBALANCED_P.
UNBALANCED_EFFECT, UNBALANCED_P = 0.1, 0.001
PAIR_COLUMNS = ["reference", "compared", "network", "blocks", "together", "complete", "gap_minutes", "within_hour"]
PAIR_COLUMNS += ["sites", "single_sites", "warning"]
# The faults that a pair may have on a network.
FAULTS = APART, INCOMPLETE, FAR, UNKNOWN, SINGLE = (
    "blocks of one alone", "incomplete blocks", "not together", "no starts", "sites of one alone",
)  # fmt: skip


def pair_balance(campaign: CampaignTable, pairs: Iterable[Pair]) -> pd.DataFrame:
    """How far the runs of each of `pairs` were measured side by side on each network on which either was tried.

    Columns: reference, compared, network; blocks (in which either was tried), together (the share in which both were
    tried), complete (in which both have a valid run); gap_minutes (the median over runs of the time between the starts
    of a run and of its partner, which is the other protocol's run in the same block, or else its nearest run at the
    same site), within_hour (the share of runs whose gap is at most SIDE_BY_SIDE), both NaN if no starts are known;
    sites (with valid runs of both), single_sites (with valid runs of only one; their names); warning: names of FAULTS.
    """
    tried = tried_in(campaign)[[*BLOCK, "protocol", "valid", "started"]]
    rows = []
    for pair, network in product(pairs, campaign.networks):
        runs = tried[(tried["network"] == network) & tried["protocol"].isin(pair)]
        if runs.empty:
            continue
        is_compared = (runs["protocol"] == pair.compared).to_numpy(dtype=int)
        site, names = pd.factorize(runs["site"], sort=True)
        block = runs.groupby(["site", "block"]).ngroup().to_numpy()
        # Blocks x protocols: 1 if the run is valid, 0 if it is not, NaN if it was not tried.
        valid = runs["valid"].to_numpy(dtype=float)
        blocks, sites = _by_pair(valid, block, is_compared), _by_pair(valid, site, is_compared) == 1
        single = names[sites.sum(axis=1) == 1]
        together, complete = (~np.isnan(blocks)).all(axis=1).mean(), (blocks == 1).all(axis=1).mean()
        gaps = pd.Series(_gaps(((runs["started"] - EPOCH) / MINUTE).to_numpy(dtype=float), site, block, is_compared))
        near = (gaps <= SIDE_BY_SIDE / MINUTE).mean() if gaps.notna().any() else np.nan
        is_incomplete = complete < LEAST_SHARE <= together
        faults = [together < LEAST_SHARE, is_incomplete, near < LEAST_SHARE, np.isnan(near), len(single) > 0]
        row = [*pair, network, len(blocks), together, complete, gaps.median(), near, sites.all(axis=1).sum()]
        rows.append([*row, ", ".join(single), "; ".join(compress(FAULTS, faults))])
    return pd.DataFrame(rows, columns=PAIR_COLUMNS)


def _by_pair(values: Array, group: Codes, is_compared: Codes) -> Array:
    """The largest of the `values` of each group and protocol of a pair: groups x 2; NaN without any."""
    result = np.full((group.max() + 1, 2), np.nan)
    np.fmax.at(result, (group, is_compared), values)
    return result


def _gaps(at: Array, site: Codes, block: Codes, is_compared: Codes) -> Array:
    """The minutes between each run of a pair and its partner, from the minutes `at` which runs started; NaN if the
    run's start is unknown, inf if it has no partner."""
    gaps = np.where(np.isnan(at), np.nan, np.abs(np.diff(_by_pair(at, block, is_compared)))[block, 0])
    for lone in np.flatnonzero(np.isnan(gaps) & ~np.isnan(at)):
        partners = at[(site == site[lone]) & (is_compared != is_compared[lone])]
        gaps[lone] = np.fmin.reduce(np.abs(partners - at[lone]), initial=np.inf)
    return gaps


def places(campaign: CampaignTable) -> pd.DataFrame:
    """How often each protocol was measured at each place of its block: columns network, protocol, and place_1, place_2,
    … (counts of runs with a known start)."""
    table = in_places(tried_in(campaign))
    counts = table.pivot_table("block", ["network", "protocol"], "place", aggfunc="size", fill_value=0)
    grid = pd.MultiIndex.from_product([campaign.networks, campaign.protocols], names=["network", "protocol"])
    return counts.reindex(grid[grid.isin(counts.index)]).add_prefix("place_").reset_index().rename_axis(columns=None)


@dataclass(frozen=True)
class PlaceTest:
    """The test whether blocks have their protocols in random order: chi-squared, its degrees of freedom and p value,
    and the effect (0: every protocol equally often at each place; 1: always the same order). NaN without blocks."""

    chi_squared: float = np.nan
    freedom: int = 0
    p: float = np.nan
    effect: float = np.nan

    @property
    def is_ordered(self) -> bool:
        """Whether the order is not random."""
        return self.p < UNBALANCED_P and self.effect > UNBALANCED_EFFECT


@lru_cache(maxsize=1)
def place_test(campaign: CampaignTable) -> PlaceTest:
    """The test over all networks whether blocks have their protocols in random order.

    Exactly one protocol of a block is measured first, one second, and so on. So the counts of protocols by place are
    not independent, and Pearson's chi-squared is too large (twice too large for two protocols). This is Anderson's test
    (1959, Use of contingency tables in the analysis of consumer preference studies), which uses the covariance that the
    counts have if orders are random, extended to blocks with different sets of protocols.
    """
    table = in_places(tried_in(campaign))
    protocol, names = pd.factorize(table["protocol"], sort=True)
    place, block = table["place"].to_numpy() - 1, table.groupby(BLOCK).ngroup().to_numpy()
    size = int(place.max(initial=-1)) + 1
    surplus, covariance, most = np.zeros((len(names), size)), np.zeros((len(names) * size,) * 2), 0.0
    numbers = np.zeros((block.max(initial=-1) + 1, len(names)), dtype=int)
    np.add.at(numbers, (block, protocol), 1)
    sets, set_of = np.unique(numbers, axis=0, return_inverse=True)
    members = [np.arange(len(names)).repeat(one).tolist() for one in sets]
    for number, rows in sorted(enumerate(members), key=itemgetter(1)):
        group = np.flatnonzero(set_of[block] == number)
        length, blocks = len(rows), len(group) // len(rows)
        if length < 2:
            continue
        np.add.at(surplus, (protocol[group], place[group]), 1)
        surplus[np.ix_(rows, range(length))] -= blocks / length
        centring = np.eye(length) - 1 / length
        cells = [row * size + place for row in rows for place in range(length)]
        covariance[np.ix_(cells, cells)] += blocks / (length - 1) * np.kron(centring, centring)
        most += blocks * (length - 1) ** 2
    if not most:
        return PlaceTest()
    chi_squared = float(surplus.ravel() @ np.linalg.pinv(covariance, hermitian=True) @ surplus.ravel())
    freedom = int(np.linalg.matrix_rank(covariance, hermitian=True))
    p = float(stats.chi2.sf(chi_squared, freedom))
    return PlaceTest(chi_squared, freedom, p, float(np.sqrt(chi_squared / most)))
