"""Lost runs and their possible effect on a comparison: a protocol must not look fast because its slow loads are
missing.

A run is lost if its load never ended, failed, or gave another page than usual (`analysis.attempts`), even if a later
attempt counts. Rejections for the film or the machine have nothing to do with how long a load took.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.attempts import SETTING, cube, rejections, tried_in
from analysis.runs import CampaignTable, records
from analysis.statistics.contrast_table import corrected, holm, holm_of_family
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER, WARNING_P
from analysis.statistics.ratios import mean_over_sites, middles
from analysis.statistics.samples import OVER_SITES, Array, by_count, counts, logarithms
from analysis.statistics.signed_ranks import signed_ranks_p
from analysis.text import label, pair_label, percent, percent_interval
from dataset.gates import KINDS

# The shortest limit of any load (`measure.run.browser.load_limit_s`), used if the campaign names none.
SHORTEST_LIMIT_S = 60.0
# p values of losses below this are rounding errors.
LEAST_P = 1e-13
RATE_COLUMNS = ["network", "protocol", "planned", "tried", "valid", "success", "lost", "lost_share", "attempts", *KINDS]
RATE_COLUMNS += ["others_share", "p", "p_corrected", "warning"]
BOUNDS_COLUMNS = ["reference", "compared", "network", "metric", "sites", "blocks", "lost_reference", "lost_compared"]
BOUNDS_COLUMNS += ["gain", "gain_low", "gain_high", "mean_gain", "mean_gain_low", "mean_gain_high"]
BOUNDS_COLUMNS += ["slower_share", "rank_p", "rank_p_corrected", "warning"]


def success_rates(campaign: CampaignTable) -> pd.DataFrame:
    """How many of its runs each protocol made on each network, and whether it lost more runs than the others.

    Columns, by network and protocol:
    - of runs: planned (NaN if the campaign does not say), tried (with an attempt), valid, success (valid / tried),
      lost, lost_share (lost / tried)
    - of attempts: attempts, and for each of `dataset.gates.KINDS` how many attempts were rejected
    - of the test: others_share (the lost share of the protocols that this one is tested against), p (exact, one-sided:
      this protocol loses more runs than the others of the same blocks), p_corrected (Holm's over protocols, times the
      number of networks), warning

    Each run counts once, however often it was tried. The test begins with the protocol that stands out most. If that
    protocol loses more runs than the others, the test leaves it out and compares the others with each other.
    """
    tried = tried_in(campaign)
    attempts = rejections(campaign.runs)
    key = ["network", "protocol"]
    grid = pd.MultiIndex.from_product(_names(campaign)[::2], names=key)
    table = tried.groupby(key).agg(tried=("valid", "size"), valid=("valid", "sum"), lost=("lost", "sum")).reindex(grid)
    for kind in KINDS:
        table[kind] = attempts[attempts["kind"] == kind].groupby(key).size()
    table["attempts"] = attempts.groupby(key).size()
    table = table.fillna(0).astype(int)
    sizes = table["tried"].where(table["tried"] > 0)
    settings = campaign.settings
    planned = len(_names(campaign)[1]) * settings.runs if settings.runs and not settings.auto else np.nan
    table = table.assign(planned=planned, success=table["valid"] / sizes, lost_share=table["lost"] / sizes)
    networks, _, protocols = _names(campaign)
    lost = cube(tried, "lost", protocols, networks)
    tests = np.array([_more_than_the_others(np.moveaxis(one, 1, 0).reshape(len(protocols), -1)) for one in lost])
    table[["others_share", "p", "p_corrected"]] = tests.reshape(-1, 3)
    table["p_corrected"] = np.minimum(1, table["p_corrected"] * len(networks))
    table = table.reset_index()
    table["warning"] = np.where(table["p_corrected"] < WARNING_P, "loses more than the others", "")
    return table[RATE_COLUMNS]


def _more_than_the_others(lost: Array) -> Array:
    """others_share, p and p_corrected of the protocols of one network. `lost` is protocols x blocks: 1 if the run was
    lost, 0 if it was not, NaN if there is none.

    The test takes each block's number of lost runs as given. If the protocols were alike, every run of the block would
    be equally likely to be lost. So a protocol's losses are the sum of independent draws, one for each block (Poisson's
    binomial distribution). Losses that hit all protocols alike, because of the site or of the machine at that moment,
    count against none of them.
    """
    result = np.full((len(lost), 3), np.nan)
    candidates, bound = list(np.flatnonzero(np.isfinite(lost).any(axis=1))), 0.0
    while len(candidates) > 1:
        some = lost[candidates]
        lost_runs, tried = np.nansum(some, axis=1), counts(some)
        block_share = np.nansum(some, axis=0) / np.maximum(1, np.isfinite(some).sum(axis=0))
        p = np.array(
            [
                stats.poisson_binom.sf(number - 1, block_share[np.isfinite(row) & (block_share > 0)]) if number else 1.0
                for number, row in zip(lost_runs, some, strict=True)
            ]
        )
        p = np.maximum(p, LEAST_P)
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


def reasons(campaign: CampaignTable) -> pd.DataFrame:
    """Why attempts do not count. Columns: network, protocol, kind (`dataset.gates.KINDS`), gate, attempts, runs."""
    rejected = rejections(campaign.runs).query("kind != ''")
    groups = rejected.groupby(["network", "protocol", "kind", "gate"], sort=False)
    return groups.apply(
        lambda group: pd.Series({"attempts": len(group), "runs": len(group.drop_duplicates(["site", "run"]))}),
        include_groups=False,
    ).reset_index().reindex(columns=["network", "protocol", "kind", "gate", "attempts", "runs"])  # fmt: skip


def empty_settings(campaign: CampaignTable) -> pd.DataFrame:
    """The settings of the campaign's whole grid that have no valid run.

    Columns: network, site, protocol, tried (runs), gate (which rejected most of its attempts; empty if there was none).
    """
    grid = pd.MultiIndex.from_product(_names(campaign, ("network", "site", "protocol")), names=SETTING)
    tried = tried_in(campaign).groupby(SETTING)["valid"].agg(tried="size", valid="sum")
    rejected = rejections(campaign.runs).query("kind != ''").groupby(SETTING)["gate"].agg(lambda names: names.mode()[0])
    table = tried.reindex(grid).fillna(0).astype(int).join(rejected.rename("gate")).fillna({"gate": ""})
    return table[table["valid"] == 0].drop(columns="valid").reset_index()


def load_limits_ms(campaign: CampaignTable, tried: pd.DataFrame) -> "pd.Series[float]":
    """The longest time that a load could take, by network and site.

    This is the campaign's limit if it names one. Else it is the longest time of a lost attempt there, and at least a
    minute. It is never less than the longest time that was measured there.
    """
    key = ["network", "site"]
    longest = campaign.valid.groupby(key)[list(campaign.metrics)].max().max(axis=1)
    places = tried[key].drop_duplicates().set_index(key).index
    named = campaign.settings.limit_s
    limit = pd.Series(1e3 * (named or SHORTEST_LIMIT_S), places)
    if not named and "seconds" in campaign.runs:
        attempts = rejections(campaign.runs)
        lost = attempts[attempts["kind"].isin(KINDS[:2])]
        limit = pd.concat([limit, 1e3 * lost.groupby(key)["seconds"].max().reindex(places)], axis=1).max(axis=1)
    return pd.concat([limit, longest.reindex(places)], axis=1).max(axis=1)


def bounds(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """The bounds of each contrast of the family if the lost runs had been measured.

    `confirmatory` is the table of that name (`analysis.statistics.confirmatory`). Only decided verdicts can get a
    warning.
    Columns:
    - reference, compared, network, metric
    - sites and blocks: how many have a run of each protocol that is either valid or lost; lost_reference and
      lost_compared: the runs lost in these blocks
    - gain: as in `analysis.statistics.confirmatory`, from the valid runs; mean_gain: the paper's, the mean over sites
      of the ratio of means
    - the _low and _high bound of both gains: with the lost runs of one protocol at the load limit and those of the
      other at the best time of their setting, and the other way round
    - slower_share: the share of blocks in which compared is slower, or is lost and the reference is not; ties count
      half
    - rank_p: the p value of signed ranks (`analysis.statistics.signed_ranks`), where a lost run is slower than any
      other; rank_p_corrected: Holm's
    - warning: if lost runs could turn the sign of a difference, or cause a difference between protocols that count as
      equivalent
    """
    tried = tried_in(campaign)
    networks, protocols = _names(campaign)[0], _names(campaign)[2]
    lost = cube(tried, "lost", protocols, networks)
    limits = load_limits_ms(campaign, tried).unstack("site").reindex(networks).sort_index(axis=1).to_numpy()
    tables = []
    for metric in (name for name in hypotheses.family_metrics if name in tried):
        times = cube(tried, metric, protocols, networks)
        measured = np.where(lost == 0, times, np.nan)
        worst = np.where(lost == 1, limits[:, :, None, None], measured)
        best = np.where(lost == 1, _best(times)[..., None], measured)
        for pair in hypotheses.family:
            if pair.is_of(protocols):
                places = [protocols.index(name) for name in pair]
                columns = _bounds(*(np.moveaxis(array, 2, 0)[places] for array in (times, lost, best, worst)))
                tables.append(pd.DataFrame({**pair._asdict(), "network": networks, "metric": metric, **columns}))
    if not tables:
        return pd.DataFrame(columns=BOUNDS_COLUMNS)
    table = corrected(pd.concat(tables, ignore_index=True), holm_of_family, ("rank_p",))
    decided = table.merge(confirmatory[[*OVER_SITES, "verdict", "margin"]], how="left", on=OVER_SITES)
    table["warning"] = [_bounds_warning(row) if _is_shaken(row) else "" for row in records(decided)]
    return table[BOUNDS_COLUMNS]


def _is_shaken(row: dict[str, Any]) -> bool:
    """Whether the lost runs of a contrast could change its verdict, given its margin."""
    if not row["lost_reference"] + row["lost_compared"]:
        return False
    if row["verdict"] == EQUIVALENT:
        low, high = _equivalent_gains(row)
        return bool(row["gain_low"] <= low or row["gain_high"] >= high)
    # The lost runs can change the verdict faster or slower if a bound reaches 0: the difference could then vanish or
    # change its sign.
    turns = row["gain_high"] >= 0 if row["gain"] < 0 else row["gain_low"] <= 0
    return bool(turns) and row["verdict"] in (FASTER, SLOWER)


def _equivalent_gains(row: dict[str, Any]) -> tuple[float, float]:
    """The lowest and the highest gain at which protocols count as equivalent; as log ratios both are equally far from
    0."""
    return 1 / (1 + row["margin"]) - 1, row["margin"]


def _bounds_warning(row: dict[str, Any]) -> str:
    what = f"the change of {percent(row['gain'])} in {label(row['metric'])} rests"
    if row["verdict"] == EQUIVALENT:
        within = percent_interval(*_equivalent_gains(row))
        what = f"that they are equivalent in {label(row['metric'])} (a change within {within}) rests"
    return (
        f"{pair_label(row['compared'], row['reference'])} behind {label(row['network'])}: {what} on which runs were "
        f"lost ({row['lost_compared']} and {row['lost_reference']}); with these the change lies between "
        f"{percent(row['gain_low'])} and {percent(row['gain_high'])}."
    )


def _best(times: Array) -> Array:
    """The shortest time of each setting, or of its site if the setting has none: networks x sites x protocols."""
    with np.errstate(all="ignore"):
        best = np.fmin.reduce(times, axis=-1, initial=np.nan)
        return np.asarray(np.where(np.isnan(best), np.fmin.reduce(best, axis=-1, initial=np.nan)[..., None], best))


def _bounds(times: Array, lost: Array, best: Array, worst: Array) -> dict[str, Array]:
    """The bounds of one metric and pair by network. All arrays are (reference, compared) x networks x sites x
    blocks."""
    is_usable = np.asarray(np.isfinite(best).all(axis=0) & np.isfinite(worst).all(axis=0))
    hidden = (lost == 1) & is_usable
    ratios = logarithms(times[1]) - logarithms(times[0])
    measured, middle = mean_over_sites(ratios).centre, mean(middles(ratios))
    # The middle of coarse ratios differs from their mean; the offset corrects for this.
    offset = np.where(np.isfinite(middle), measured - middle, 0)
    outcome = np.where(lost == 1, np.inf, logarithms(best))
    with np.errstate(invalid="ignore"):
        difference = np.where(hidden.all(axis=0), 0.0, outcome[1] - outcome[0])
    difference = np.where(is_usable, difference, np.nan)
    slower = np.where(is_usable, (difference > 0) + (difference == 0) / 2, np.nan)
    columns = {
        "sites": is_usable.any(axis=-1).sum(axis=-1),
        "blocks": is_usable.sum(axis=(1, 2)),
        "lost_reference": hidden[0].sum(axis=(1, 2)),
        "lost_compared": hidden[1].sum(axis=(1, 2)),
        "gain": np.expm1(measured),
        "mean_gain": _ratio_of_means(times),
        # NaN without a block.
        "slower_share": mean(slower.reshape(len(slower), -1)),
        "rank_p": signed_ranks_p(difference),
    }
    for name, ends in (("low", (worst[0], best[1])), ("high", (best[0], worst[1]))):
        pair = np.where(is_usable, ends, np.nan)
        # `middles` does not become a mean if ratios are coarse, so it depends little on how far off the lost runs are.
        columns[f"gain_{name}"] = np.expm1(mean(middles(logarithms(pair[1]) - logarithms(pair[0]))) + offset)
        columns[f"mean_gain_{name}"] = _ratio_of_means(pair)
    return columns


def _ratio_of_means(times: Array) -> Array:
    """The mean over sites of mean(compared) / mean(reference) - 1. `times` is (reference, compared) x networks x sites
    x blocks."""
    reference, compared = by_count(lambda values: values.mean(axis=-1), times, least=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean(compared / reference - 1)


def _names(campaign: CampaignTable, keys: Sequence[str] = ("network", "site", "protocol")) -> list[list[str]]:
    """The names of the campaign's networks, sites and protocols, followed by names that occur only in its runs."""
    declared = {"network": campaign.networks, "site": campaign.settings.sites, "protocol": campaign.protocols}
    return [list(dict.fromkeys([*declared[key], *campaign.runs[key].unique()])) for key in keys]
