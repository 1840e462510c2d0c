"""Rejected loads and their possible effect on a comparison: a protocol must not look fast because its slow loads are
missing.

`bounds` says how far lost runs (`analysis.attempts`) could move a gain. Other rejected loads, such as those for the
film or the machine, are made again. That no comparison rests on them is an assumption, which `rejection_tests` tests.
Settings that were withdrawn (`dataset.table.GivenUp`) belong to no comparison and are left out.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.attempts import RUN, SETTING, cubes, rejections, tried_in
from analysis.runs import CampaignTable, records
from analysis.statistics.contrast_table import holm
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER, WARNING_P
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import OVER_SITES, Array, counts, logarithms
from analysis.text import label, pair_label, percent, percent_interval
from dataset.gates import KINDS

# p values of losses below this are rounding errors.
LEAST_P = 1e-13
REJECTION_COLUMNS = ["network", "kind", "runs", "protocols", "share", "others_share", "p_corrected", "longer_share"]
REJECTION_COLUMNS += ["longer_p_corrected", "warning"]
BOUNDS_COLUMNS = [*OVER_SITES, "blocks", "lost_reference", "lost_compared", "lost_p_corrected", "gain", "gain_low"]
BOUNDS_COLUMNS += ["gain_high", "warning"]
# The duration of a load: its page load time (ms). A load without one is compared by the duration of the attempt (s).
DURATIONS = ("plt", "seconds")
# Results that tests of rejections may have.
MORE, LONGER = "more over some protocols", "longer than those that count"


def success_rates(campaign: CampaignTable) -> pd.DataFrame:
    """How many of its runs each protocol made on each network, and whether it lost more runs than the others.

    Columns: network, protocol; numbers of runs: planned (NaN if the campaign does not say), tried, valid, success
    (valid / tried), lost, lost_share (lost / tried); attempts; others_share (the lost share of the protocols that this
    one is tested against), p (exact, one-sided: this protocol loses more runs than the others of the same blocks),
    p_corrected (Holm's over protocols, times the number of networks), warning.

    The test begins with the protocol that stands out most. If that protocol loses more runs than the others, the test
    leaves it out and compares the others with each other.
    """
    tried, settings, key = _standing(campaign, tried_in(campaign)), campaign.settings, ["network", "protocol"]
    networks, sites, protocols = _names(campaign).values()
    grid = pd.MultiIndex.from_product((networks, protocols), names=key)
    table = tried.groupby(key).agg(tried=("valid", "size"), valid=("valid", "sum"), lost=("lost", "sum")).reindex(grid)
    table["attempts"] = rejections(campaign.runs).groupby(key).size()
    table = table.fillna(0).astype(int).reset_index()
    cells = pd.MultiIndex.from_product((networks, sites), names=["network", "site"]).to_frame(index=False)
    sites_of = _standing(campaign, cells).groupby("network").size()
    runs = settings.runs if settings.runs and not settings.auto else np.nan
    table["planned"] = table["network"].map(sites_of).fillna(0) * runs
    sizes = table["tried"].where(table["tried"] > 0)
    table = table.assign(success=table["valid"] / sizes, lost_share=table["lost"] / sizes)
    tests = [_more_than_the_others(lost) for lost in _by_protocol(tried, ["lost"], protocols, networks)[0]]
    table[["others_share", "p", "p_corrected"]] = np.concatenate(tests)
    table["p_corrected"] = np.minimum(1, table["p_corrected"] * len(networks))
    table["warning"] = np.where(table["p_corrected"] < WARNING_P, "loses more than the others", "")
    return table


def _by_protocol(tried: pd.DataFrame, columns: Sequence[str], protocols: list[str], networks: list[str]) -> Array:
    """`cubes` with the blocks of all sites along one axis: columns x networks x protocols x blocks."""
    values = np.swapaxes(cubes(tried, columns, protocols, networks), 2, 3)
    return values.reshape(*values.shape[:3], values.shape[3] * values.shape[4])


def _more_than_the_others(lost: Array) -> Array:
    """others_share, p and p_corrected of the protocols of one network; `lost` is protocols x blocks.

    The test takes each block's number of lost runs as given. If the protocols were alike, every run of the block would
    be equally likely to be lost, so a protocol's losses have Poisson's binomial distribution. Losses that hit all
    protocols alike, because of the site or of the machine at that moment, count against none of them.
    """
    result = np.full((len(lost), 3), np.nan)
    candidates, bound = list(np.flatnonzero(np.isfinite(lost).any(axis=1))), 0.0
    while len(candidates) > 1:
        some = lost[candidates]
        lost_runs, tried = np.nansum(some, axis=1), counts(some)
        block_share = np.nansum(some, axis=0) / np.maximum(1, np.isfinite(some).sum(axis=0))
        chances = [block_share[np.isfinite(row) & (block_share > 0)] for row in some]
        tails = [stats.poisson_binom.sf(n - 1, of) if n else 1.0 for n, of in zip(lost_runs, chances, strict=True)]
        p = np.maximum(tails, LEAST_P)
        # A p value that is corrected in a later step is no smaller than one of an earlier step (Holm).
        corrected = np.maximum(bound, holm(p))
        others = (lost_runs.sum() - lost_runs) / (tried.sum() - tried)
        result[candidates] = np.stack([others, p, corrected], axis=1)
        worst = int(np.lexsort((-lost_runs / tried, p))[0])
        if corrected[worst] >= WARNING_P:
            break
        bound = corrected[worst]
        del candidates[worst]
    return result


def rejection_tests(campaign: CampaignTable) -> pd.DataFrame:
    """Whether results could rest on which loads were rejected, for each network and kind of rejection
    (`dataset.gates.KINDS`) that occurs.

    Columns: network, kind, runs (with an attempt that was rejected so); protocols (those of which more runs have one
    than of the others, by the test of `success_rates`), share of the runs of these, others_share, p_corrected (the
    smallest of all protocols); longer_share (the probability that such a load took longer than a load of its setting
    that counts, by `DURATIONS`; ties count half; NaN if unknown), longer_p_corrected (one-sided, of a share above 0.5);
    warning: MORE, LONGER, both or none. Both p values are Bonferroni's over the two tests on all networks and kinds.
    """
    tried, attempts = (_standing(campaign, rows) for rows in (tried_in(campaign), rejections(campaign.runs)))
    networks, _, protocols = _names(campaign).values()
    tests = 2 * len(KINDS) * len(networks)
    runs_tried = pd.MultiIndex.from_frame(tried[RUN])
    kinds = [kind for kind in KINDS if (attempts["kind"] == kind).any()]
    with_one = {kind: attempts.loc[attempts["kind"] == kind, RUN] for kind in kinds}
    rejected = {kind: runs_tried.isin(pd.MultiIndex.from_frame(runs)) for kind, runs in with_one.items()}
    by_kind = _by_protocol(tried[[*SETTING, "block"]].assign(**rejected), kinds, protocols, networks)
    rows = []
    for kind, by_network in zip(kinds, by_kind, strict=True):
        for network, runs in zip(networks, by_network, strict=True):
            if not (total := np.nansum(runs)):
                continue
            p = np.minimum(1, tests * _more_than_the_others(runs)[:, 2])
            more = p < WARNING_P
            share, others_share = (np.nanmean(runs[which]) if more.any() else np.nan for which in (more, ~more))
            of_kind = attempts[(attempts["network"] == network) & attempts["kind"].isin(["", kind])]
            longer_share, longer_p = _longer(of_kind)
            longer_p = float(np.minimum(1, tests * longer_p))
            warning = "; ".join(compress((MORE, LONGER), (more.any(), longer_p < WARNING_P)))
            row = [network, kind, int(total), ", ".join(compress(protocols, more)), share, others_share]
            rows.append([*row, np.fmin.reduce(p), longer_share, longer_p, warning])
    table = pd.DataFrame(rows, columns=REJECTION_COLUMNS)
    return table.sort_values("network", key=lambda names: names.map(networks.index), kind="stable", ignore_index=True)


def _longer(attempts: pd.DataFrame) -> tuple[float, float]:
    """longer_share and its p value: the durations of rejected `attempts` against those of the attempts that count.

    If rejections did not depend on the duration, all loads of a setting would be equally likely to be rejected. So p is
    that of rank sums within settings (van Elteren's test). Both are NaN if no duration of a rejected attempt is known.
    """
    times = attempts.reindex(columns=list(DURATIONS)).apply(pd.to_numeric, errors="coerce")
    is_rejected, has_first = attempts["kind"] != "", times[DURATIONS[0]].notna()
    loads = attempts[SETTING].assign(rejected=is_rejected, has_first=has_first, **times)
    loads = loads.melt([*SETTING, "rejected", "has_first"], list(DURATIONS), "duration", "time").dropna(subset="time")
    # Those that count are compared with both kinds of rejected loads, by another duration each.
    loads = loads[~loads["rejected"] | (loads["has_first"] == (loads["duration"] == DURATIONS[0]))]
    stratum, rejected = loads.groupby(["duration", *SETTING]).ngroup(), loads["rejected"]
    times_of = loads["time"].groupby(stratum)
    rank, size = times_of.rank(), times_of.transform("size")
    off = (rank - (size + 1) / 2) / (size + 1)
    number, ranks, squares = (one.groupby(stratum).sum() for one in (rejected, rank.where(rejected, 0), off**2))
    pairs = number * (times_of.size() - number)
    if not pairs.any():
        return np.nan, np.nan
    above = float((ranks - number * (number + 1) / 2).sum() / pairs.sum())
    # The variance of a sum of values that are drawn without replacement.
    variance = float((pairs * squares / times_of.size() / (times_of.size() - 1).clip(lower=1)).sum())
    return above, float(stats.norm.sf(off[rejected].sum() / np.sqrt(variance))) if variance else 1.0


def empty_settings(campaign: CampaignTable) -> pd.DataFrame:
    """The settings of the campaign's whole grid that have no valid run: columns network, site, protocol, tried (runs),
    gate (which rejected most of its attempts; empty if there was none)."""
    grid = pd.MultiIndex.from_product(_names(campaign).values(), names=SETTING)
    tried = tried_in(campaign).groupby(SETTING)["valid"].agg(tried="size", valid="sum")
    attempts = rejections(campaign.runs).query("kind != ''").value_counts([*SETTING, "gate"]).reset_index("gate")
    rejected = attempts.sort_values(["count", "gate"], ascending=[False, True])["gate"].groupby(SETTING).first()
    table = tried.reindex(grid).fillna(0).astype(int).join(rejected).fillna({"gate": ""})
    return table[table["valid"] == 0].drop(columns="valid").reset_index()


def bounds(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """How far the lost runs could move each contrast of the family; `confirmatory` is the table of that name.

    Columns: reference, compared, network, metric; blocks (that have a valid or lost run of each protocol), and of these
    lost_reference and lost_compared; lost_p_corrected (of the exact test that both protocols lose equally many of the
    blocks in which one of the two is lost (McNemar), Bonferroni's over pairs and networks); gain (as in `confirmatory`,
    from the valid runs), gain_low and gain_high (the same with the lost runs of one protocol as slow as the slowest
    valid run of their network and site, over any protocol, and those of the other as fast as the fastest one); warning
    (if lost runs could change a verdict).
    """
    tried = _standing(campaign, tried_in(campaign))
    networks, _, protocols = _names(campaign).values()
    pairs = [pair for pair in hypotheses.family if pair.is_of(protocols)]
    metrics = [name for name in hypotheses.family_metrics if name in tried]
    lost_runs, *times = np.moveaxis(cubes(tried, ["lost", *metrics], protocols, networks), 3, 1)
    is_lost = lost_runs == 1
    tables = [pd.DataFrame(columns=BOUNDS_COLUMNS)]
    for metric, logs in zip(metrics, map(logarithms, times), strict=True):
        fastest, slowest = (end.reduce(logs, axis=(0, -1), initial=np.nan)[..., None] for end in (np.fmin, np.fmax))
        for pair in pairs:
            # (reference, compared) x networks x sites x blocks
            of_pair = [protocols.index(name) for name in pair]
            reference, compared = logs[of_pair]
            low, high = (np.where(is_lost[of_pair], end, logs[of_pair]) for end in (fastest, slowest))
            ratios = {"gain": compared - reference, "gain_low": low[1] - high[0], "gain_high": high[1] - low[0]}
            is_usable = np.isfinite(ratios["gain_low"])
            lost = is_lost[of_pair] & is_usable
            alone = [(one & ~other).sum(axis=(1, 2)) for one, other in (lost, lost[::-1])]
            p = 2 * stats.binom.sf(np.maximum(*alone) - 1, alone[0] + alone[1], 0.5)
            columns = {"network": networks, "metric": metric, "blocks": is_usable.sum(axis=(1, 2))}
            columns |= {f"lost_{name}": one.sum(axis=(1, 2)) for name, one in zip(pair._fields, lost, strict=True)}
            columns |= {"lost_p_corrected": np.minimum(1, np.minimum(1, p) * len(pairs) * len(networks))}
            columns |= {name: np.expm1(mean_over_sites(values).centre) for name, values in ratios.items()}
            tables.append(pd.DataFrame({**pair._asdict(), **columns}))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    decided = table.merge(confirmatory[[*OVER_SITES, "verdict", "margin"]], how="left", on=OVER_SITES)
    return table.assign(warning=[_bounds_warning(row) for row in records(decided)])[BOUNDS_COLUMNS]


def _bounds_warning(row: Mapping[str, Any]) -> str:
    """How the verdict on a contrast rests on the runs that were lost; empty if they could not change it."""
    low, high, lost = row["gain_low"], row["gain_high"], (row["lost_compared"], row["lost_reference"])
    what = f"the change of {percent(row['gain'])} in {label(row['metric'])} rests"
    # The difference could vanish or change its sign.
    is_shaken = row["verdict"] in (FASTER, SLOWER) and (high >= 0 if row["gain"] < 0 else low <= 0)
    if row["verdict"] == EQUIVALENT:
        # As log ratios, both ends of what counts as equivalent are equally far from 0.
        ends = 1 / (1 + row["margin"]) - 1, row["margin"]
        what = f"that they are equivalent in {label(row['metric'])} (a change within {percent_interval(*ends)}) rests"
        is_shaken = low <= ends[0] or high >= ends[1]
    if not is_shaken or not any(lost):
        return ""
    return (
        f"{pair_label(row['compared'], row['reference'])} on {label(row['network'])}: {what} on which runs were "
        f"lost ({lost[0]} and {lost[1]}); with these the change lies between {percent(low)} and {percent(high)}."
    )


def _standing(campaign: CampaignTable, rows: pd.DataFrame) -> pd.DataFrame:
    """The `rows`, with columns site and network, of sites that were not withdrawn."""
    withdrawn = [cell for cell, entry in campaign.given_up.items() if entry.withdrawn is not None]
    return rows[~pd.MultiIndex.from_frame(rows[["site", "network"]]).isin(withdrawn)] if withdrawn else rows


def _names(campaign: CampaignTable) -> dict[str, list[str]]:
    """The names of the campaign's networks, sites and protocols, followed by names that occur only in its runs."""
    declared = {"network": campaign.networks, "site": campaign.settings.sites, "protocol": campaign.protocols}
    return {key: list(dict.fromkeys([*names, *campaign.runs[key].unique()])) for key, names in declared.items()}
