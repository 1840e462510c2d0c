"""Whether protocols were measured side by side: in the same blocks, at the same time, at all places of a block."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.attempts import tried_in
from analysis.runs import CampaignTable
from analysis.samples import SIDE_BY_SIDE
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array

# Below this share of complete blocks, or of runs with a partner within the hour, a warning is given.
LEAST_SHARE = 0.95
PARTNER_MINUTES = SIDE_BY_SIDE.total_seconds() / 60
EPOCH = pd.Timestamp(0, tz="UTC")
# Places are out of balance if the effect exceeds UNBALANCED_EFFECT, and chance causes such an effect less often than
# UNBALANCED_P.
UNBALANCED_EFFECT, UNBALANCED_P = 0.1, 0.001
PAIR_COLUMNS = ["reference", "compared", "network", "blocks", "together", "complete", "gap_minutes", "within_hour"]
PAIR_COLUMNS += ["sites", "single_sites", "warning"]
BLOCK = ["network", "site", "block"]
# The faults that a pair may have on a network, each with its test on a row of `pair_balance`.
APART, INCOMPLETE, FAR, UNKNOWN, SINGLE = (
    "blocks of one alone", "incomplete blocks", "not together", "no starts", "sites of one alone",
)  # fmt: skip
FAULTS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    APART: lambda row: row["together"] < LEAST_SHARE,
    INCOMPLETE: lambda row: row["complete"] < LEAST_SHARE <= row["together"],
    FAR: lambda row: row["within_hour"] < LEAST_SHARE,
    UNKNOWN: lambda row: bool(np.isnan(row["within_hour"])),
    SINGLE: lambda row: bool(row["single_sites"]),
}


def pair_balance(campaign: CampaignTable, pairs: Iterable[Pair]) -> pd.DataFrame:
    """How far the runs of each of `pairs` were measured side by side on each network.

    Columns:
    - reference, compared, network
    - blocks: in which either protocol was tried; together: the share of blocks in which both were tried; complete: the
      share in which both have a valid run
    - gap_minutes: the median over runs of the time between the starts of a run and of its partner. The partner is the
      other protocol's run in the same block, or else its nearest run at the same site. within_hour: the share of runs
      whose gap is at most PARTNER_MINUTES. Both are NaN if no starts are known.
    - sites: with valid runs of both; single_sites: the names of sites with valid runs of only one, separated by commas
    - warning: names of FAULTS

    A network on which neither protocol was tried has no row.
    """
    tried = tried_in(campaign)
    minutes = (tried["started"] - EPOCH).dt.total_seconds() / 60
    tried = tried.assign(at=minutes, place=tried.groupby(BLOCK).ngroup())
    rows = []
    for pair in pairs:
        both = tried[tried["protocol"].isin(pair)]
        for network in [name for name in campaign.networks if (both["network"] == name).any()]:
            runs = both[both["network"] == network]
            of_pair = [runs[runs["protocol"] == name] for name in pair]
            blocks = [set(of_one["place"]) for of_one in of_pair]
            complete = [set(of_one.loc[of_one["valid"], "place"]) for of_one in of_pair]
            number = len(blocks[0] | blocks[1])
            gaps = _gaps_minutes(runs, pair)
            sites = [set(of_one.loc[of_one["valid"], "site"]) for of_one in of_pair]
            row = {
                **pair._asdict(),
                "network": network,
                "blocks": number,
                "together": len(blocks[0] & blocks[1]) / number,
                "complete": len(complete[0] & complete[1]) / number,
                "gap_minutes": float(gaps.median()),
                "within_hour": float((gaps <= PARTNER_MINUTES).mean()) if gaps.notna().any() else float("nan"),
                "sites": len(sites[0] & sites[1]),
                "single_sites": ", ".join(sorted(sites[0] ^ sites[1])),
            }
            rows.append({**row, "warning": "; ".join(fault for fault, has in FAULTS.items() if has(row))})
    return pd.DataFrame(rows, columns=PAIR_COLUMNS)


def _gaps_minutes(runs: pd.DataFrame, pair: Pair) -> "pd.Series[float]":
    """The minutes between each run and its partner; NaN if the run's start is unknown, inf if it has no partner.

    Columns of `runs`: site, protocol; at (when the run began, in minutes) and place (the number of its block).
    """
    known = runs[runs["at"].notna()]
    reference, compared = (known[known["protocol"] == name].groupby("place")["at"].mean() for name in pair)
    gaps = known["place"].map((compared - reference).abs()).astype(float)
    for _, group in known[known["site"].isin(known.loc[gaps.isna(), "site"])].groupby("site"):
        times = {name: np.sort(group.loc[group["protocol"] == name, "at"].to_numpy()) for name in pair}
        for name, partner in (pair, pair[::-1]):
            lone = group.index[(group["protocol"] == name) & gaps[group.index].isna()]
            gaps[lone] = _nearest(known.loc[lone, "at"].to_numpy(), times[partner])
    return gaps.reindex(runs.index)


def _nearest(times: Array, others: Array) -> Array:
    """The distance from each of `times` to the nearest of `others`, which are sorted; inf if `others` is empty."""
    if not len(others):
        return np.full(len(times), np.inf)
    place = np.searchsorted(others, times)
    sides = [others[np.clip(place - 1, 0, None)], others[np.clip(place, None, len(others) - 1)]]
    return np.minimum(*(np.abs(times - side) for side in sides))


def places(campaign: CampaignTable) -> pd.DataFrame:
    """How often each protocol was measured at each place of its block.

    One row per network and protocol; columns: network, protocol, and place_1, place_2, … (counts of runs). Leaves out
    runs without a known start.
    """
    table = _places(campaign)
    counts = table.pivot_table("block", ["network", "protocol"], "place", aggfunc="size", fill_value=0)
    grid = pd.MultiIndex.from_product([campaign.networks, campaign.protocols], names=["network", "protocol"])
    return counts.reindex(grid[grid.isin(counts.index)]).add_prefix("place_").reset_index().rename_axis(columns=None)


@dataclass(frozen=True)
class PlaceTest:
    """The test whether blocks have their protocols in random order: chi-squared, its degrees of freedom and p value,
    and the effect (0: every protocol equally often at each place; 1: always the same order). NaN without blocks."""

    chi_squared: float
    freedom: int
    p: float
    effect: float

    @property
    def is_ordered(self) -> bool:
        """Whether the order is not random."""
        return self.p < UNBALANCED_P and self.effect > UNBALANCED_EFFECT


def place_test(campaign: CampaignTable) -> PlaceTest:
    """The test over all networks whether blocks have their protocols in random order.

    Exactly one protocol of a block is measured first, one second, and so on. So the counts of protocols by place are
    not independent, and Pearson's chi-squared is too large (twice too large for two protocols). This is the test of
    Anderson (1959, Use of contingency tables in the analysis of consumer preference studies): it uses the covariance
    that the counts have if orders are random. Here it is extended to blocks with different sets of protocols.
    """
    table = _places(campaign)
    names = sorted(set(table["protocol"]))
    size = int(table["place"].max()) if len(table) else 0
    surplus, covariance, most = np.zeros((len(names), size)), np.zeros((len(names) * size,) * 2), 0.0
    sets = table.groupby(BLOCK)["protocol"].agg(lambda protocols: tuple(sorted(protocols))).rename("set")
    for members, group in table.join(sets, on=BLOCK).groupby("set"):
        length, blocks = len(members), len(group) // len(members)
        if length < 2:
            continue
        rows = [names.index(name) for name in members]
        np.add.at(surplus, ([names.index(name) for name in group["protocol"]], group["place"] - 1), 1)
        surplus[np.ix_(rows, range(length))] -= blocks / length
        centring = np.eye(length) - 1 / length
        cells = [row * size + place for row in rows for place in range(length)]
        covariance[np.ix_(cells, cells)] += blocks / (length - 1) * np.kron(centring, centring)
        most += blocks * (length - 1) ** 2
    if not most:
        return PlaceTest(float("nan"), 0, float("nan"), float("nan"))
    flat = surplus.ravel()
    chi_squared = float(flat @ np.linalg.pinv(covariance, hermitian=True) @ flat)
    freedom = int(np.linalg.matrix_rank(covariance, hermitian=True))
    return PlaceTest(
        chi_squared, freedom, float(stats.chi2.sf(chi_squared, freedom)), float(np.sqrt(chi_squared / most))
    )


def _places(campaign: CampaignTable) -> pd.DataFrame:
    """The rows of `tried_runs` with a known start, and their place in the block (1, …) as column place."""
    tried = tried_in(campaign)
    tried = tried[tried["started"].notna()]
    return tried.assign(place=tried.groupby(BLOCK).cumcount() + 1)
