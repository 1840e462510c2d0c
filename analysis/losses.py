"""Rejected loads and their possible effect on a comparison: a protocol must not look fast because its slow loads are
missing.

A run is lost if its load never ended, failed, or gave another page than usual (`analysis.attempts`), even if a later
attempt counts. `bounds` says how far lost runs could move a gain. Other rejected loads, such as those for the film or
the machine, are made again. That no comparison rests on them is an assumption, which `rejection_tests` tests. The
settings that were withdrawn (`dataset.table.GivenUp`) belong to no comparison and are left out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.attempts import RUN, SETTING, cube, rejections, tried_in
from analysis.runs import CampaignTable, records
from analysis.statistics.contrast_table import corrected, holm, holm_of_family
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER, WARNING_P
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import OVER_SITES, Array, counts, logarithms
from analysis.statistics.signed_ranks import signed_ranks_p
from analysis.text import label, pair_label, percent, percent_interval
from dataset.gates import KINDS
from dataset.table import Cell, GivenUp, read_given_up

# p values of losses below this are rounding errors.
LEAST_P = 1e-13
RATE_COLUMNS = ["network", "protocol", "planned", "tried", "valid", "success", "lost", "lost_share", "attempts", *KINDS]
RATE_COLUMNS += ["others_share", "p", "p_corrected", "warning"]
REJECTION_COLUMNS = ["network", "kind", "runs", "protocols", "share", "others_share", "p_corrected", "longer_share"]
REJECTION_COLUMNS += ["longer_p_corrected", "warning"]
BOUNDS_COLUMNS = ["reference", "compared", "network", "metric", "blocks", "lost_reference", "lost_compared"]
BOUNDS_COLUMNS += ["lost_p_corrected", "gain", "gain_low", "gain_high", "slower_share", "rank_p_corrected", "warning"]
# The duration of a load: its page load time (ms). A load without one is compared by the duration of the attempt (s).
DURATIONS = ("plt", "seconds")
# Results that tests of rejections may have.
MORE, LONGER = "more over some protocols", "longer than those that count"


def success_rates(campaign: CampaignTable) -> pd.DataFrame:
    """How many of its runs each protocol made on each network, and whether it lost more runs than the others.

    Columns, by network and protocol:
    - of runs, without settings that were withdrawn: planned (NaN if the campaign does not say), tried (with an
      attempt), valid, success (valid / tried), lost, lost_share (lost / tried)
    - of attempts: attempts, and for each of `dataset.gates.KINDS` how many attempts were rejected
    - of the test: others_share (the lost share of the protocols that this one is tested against), p (exact, one-sided:
      this protocol loses more runs than the others of the same blocks), p_corrected (Holm's over protocols, times the
      number of networks), warning

    Each run counts once, however often it was tried. The test begins with the protocol that stands out most. If that
    protocol loses more runs than the others, the test leaves it out and compares the others with each other.
    """
    tried = _tried(campaign)
    attempts = rejections(campaign.runs)
    key = ["network", "protocol"]
    networks, sites, protocols = _names(campaign)
    grid = pd.MultiIndex.from_product((networks, protocols), names=key)
    table = tried.groupby(key).agg(tried=("valid", "size"), valid=("valid", "sum"), lost=("lost", "sum")).reindex(grid)
    for kind in KINDS:
        table[kind] = attempts[attempts["kind"] == kind].groupby(key).size()
    table["attempts"] = attempts.groupby(key).size()
    table = table.fillna(0).astype(int)
    sizes = table["tried"].where(table["tried"] > 0)
    settings = campaign.settings
    withdrawn = [sum(name == network for _, name in _withdrawn(campaign)) for network, _ in grid]
    runs = settings.runs if settings.runs and not settings.auto else np.nan
    planned = (len(sites) - np.array(withdrawn)) * runs
    table = table.assign(planned=planned, success=table["valid"] / sizes, lost_share=table["lost"] / sizes)
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


def rejection_tests(campaign: CampaignTable) -> pd.DataFrame:
    """Whether results could rest on which loads were rejected, for each network and kind of rejection
    (`dataset.gates.KINDS`) that occurs.

    Columns: network, kind, and
    - runs: how many have an attempt that was rejected so
    - protocols: those of which more runs have one than of the others (the test of `success_rates`); share of the runs
      of these, others_share of the runs of the others; p_corrected, the smallest of all protocols
    - longer_share: the probability that such a load took longer than a load of its setting that counts (`DURATIONS`;
      ties count half; NaN if unknown); longer_p_corrected of the one-sided test that it is above 0.5
    - warning: MORE, LONGER, both or none

    Both p values are Bonferroni's for the two tests on all networks and kinds together.
    """
    tried, attempts = _tried(campaign), rejections(campaign.runs)
    attempts = attempts[~_is_withdrawn(campaign, attempts)]
    networks, _, protocols = _names(campaign)
    tests = 2 * len(KINDS) * len(networks)
    rows = []
    for kind in (name for name in KINDS if attempts["kind"].eq(name).any()):
        is_rejected = pd.MultiIndex.from_frame(tried[RUN]).isin(
            pd.MultiIndex.from_frame(attempts.loc[attempts["kind"] == kind, RUN])
        )
        by_protocol = np.moveaxis(cube(tried.assign(rejected=is_rejected), "rejected", protocols, networks), 2, 1)
        for network, runs in zip(networks, by_protocol.reshape(len(networks), len(protocols), -1), strict=True):
            if not (total := np.nansum(runs)):
                continue
            p = np.minimum(1, tests * _more_than_the_others(runs)[:, 2])
            is_more = p < WARNING_P
            share, others = (np.nansum(runs[some]) / max(1, counts(runs[some]).sum()) for some in (is_more, ~is_more))
            some_attempts = attempts[(attempts["network"] == network) & attempts["kind"].isin(["", kind])]
            longer_share, longer_p = _longer(some_attempts)
            results = {MORE: is_more.any(), LONGER: tests * longer_p < WARNING_P}
            rows.append({
                "network": network, "kind": kind, "runs": int(total),
                "protocols": ", ".join(name for name, is_one in zip(protocols, is_more, strict=True) if is_one),
                "share": share if is_more.any() else np.nan, "others_share": others if is_more.any() else np.nan,
                "p_corrected": np.fmin.reduce(p), "longer_share": longer_share,
                "longer_p_corrected": min(1.0, tests * longer_p) if np.isfinite(longer_p) else np.nan,
                "warning": "; ".join(word for word, is_one in results.items() if is_one),
            })  # fmt: skip
    table = pd.DataFrame(rows, columns=REJECTION_COLUMNS)
    return table.sort_values("network", key=lambda names: names.map(networks.index), kind="stable", ignore_index=True)


def _longer(attempts: pd.DataFrame) -> tuple[float, float]:
    """longer_share and its p value: the durations of rejected `attempts` against those of the attempts that count.

    Rank sums within settings, with settings weighted by 1 / (attempts + 1) as in van Elteren's test, against the normal
    distribution. Every load of a setting would be equally likely to be rejected if rejections did not depend on the
    duration. Both are NaN if no duration of a rejected attempt is known.
    """
    times = attempts.reindex(columns=list(DURATIONS)).apply(pd.to_numeric, errors="coerce")
    loads = pd.DataFrame({"setting": attempts.groupby(SETTING).ngroup(), "rejected": attempts["kind"] != ""})
    without_plt = times[DURATIONS[0]].isna()
    total = variance = above = pairs = 0.0
    for column, is_of in zip(DURATIONS, (~without_plt, without_plt), strict=True):
        some = loads.assign(time=times[column])[(~loads["rejected"] | is_of) & times[column].notna()]
        groups = some.groupby("setting")
        ranks, size = groups["time"].rank(), groups["time"].transform("size")
        off = (ranks - (size + 1) / 2) / (size + 1)
        some = some.assign(square=off**2, off=off.where(some["rejected"], 0), rank=ranks.where(some["rejected"], 0))
        sums, sizes = some.groupby("setting")[["rejected", "square", "off", "rank"]].sum(), groups.size()
        product = sums["rejected"] * (sizes - sums["rejected"])
        total += float(sums["off"].sum())
        # The variance of a sum of values that are drawn without replacement.
        variance += float((product / (sizes - 1).clip(lower=1) * sums["square"] / sizes).sum())
        above += float((sums["rank"] - sums["rejected"] * (sums["rejected"] + 1) / 2).where(product > 0, 0).sum())
        pairs += float(product.sum())
    if not pairs:
        return np.nan, np.nan
    return above / pairs, float(stats.norm.sf(total / np.sqrt(variance))) if variance else 1.0


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


def bounds(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """How far the lost runs could move each contrast of the family.

    `confirmatory` is the table of that name (`analysis.statistics.confirmatory`). Only decided verdicts can get a
    warning.
    Columns:
    - reference, compared, network, metric
    - blocks: how many have a run of each protocol that is either valid or lost; lost_reference and lost_compared: the
      runs lost in these blocks; lost_p_corrected: of the exact test that both protocols lose equally many of the blocks
      in which one of the two is lost (McNemar), Bonferroni's over pairs and networks
    - gain: as in `analysis.statistics.confirmatory`, from the valid runs; gain_low and gain_high: the same with the
      lost runs of one protocol as slow as the slowest valid run of their network and site, over any protocol, and those
      of the other as fast as the fastest one
    - slower_share: the share of blocks in which compared is slower, or is lost and the reference is not; ties count
      half; rank_p_corrected (Holm's): of signed ranks (`analysis.statistics.signed_ranks`), where a lost run is slower
      than any other
    - warning: if lost runs could turn the sign of a difference, or cause a difference between protocols that count as
      equivalent
    """
    tried = _tried(campaign)
    networks, _, protocols = _names(campaign)
    pairs = [pair for pair in hypotheses.family if pair.is_of(protocols)]
    lost = cube(tried, "lost", protocols, networks) == 1
    tables = []
    for metric in (name for name in hypotheses.family_metrics if name in tried):
        times = np.moveaxis(cube(tried, metric, protocols, networks), 2, 0)
        ends = [end.reduce(times, axis=(0, -1), initial=np.nan)[..., None] for end in (np.fmin, np.fmax)]
        for pair in pairs:
            places = [protocols.index(name) for name in pair]
            columns = _bounds(times[places], np.moveaxis(lost, 2, 0)[places], *ends)
            columns["lost_p_corrected"] = np.minimum(1, columns["lost_p_corrected"] * len(pairs) * len(networks))
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


def _bounds(times: Array, lost: NDArray[np.bool_], fastest: Array, slowest: Array) -> dict[str, Array]:
    """The bounds of one metric and pair by network. `times` and `lost` are (reference, compared) x networks x sites x
    blocks; `fastest` and `slowest`, of each site, networks x sites x 1. lost_p_corrected is not corrected yet."""
    logs = logarithms(times)
    (reference_fast, fast), (reference_slow, slow) = (
        np.where(lost, logarithms(end), logs) for end in (fastest, slowest)
    )
    low, high = fast - reference_slow, slow - reference_fast
    is_usable = np.isfinite(low)
    hidden = np.asarray(lost & is_usable)
    rank, other_rank = np.where(lost, np.inf, logs)
    with np.errstate(invalid="ignore"):
        difference = np.where(hidden.all(axis=0), 0.0, other_rank - rank)
    difference = np.where(is_usable, difference, np.nan)
    slower = np.where(is_usable, (difference > 0) + (difference == 0) / 2, np.nan)
    alone = [(one & ~other).sum(axis=(1, 2)) for one, other in (hidden, hidden[::-1])]
    gains = {"gain": logs[1] - logs[0], "gain_low": low, "gain_high": high}
    return {
        "blocks": is_usable.sum(axis=(1, 2)),
        "lost_reference": hidden[0].sum(axis=(1, 2)),
        "lost_compared": hidden[1].sum(axis=(1, 2)),
        "lost_p_corrected": np.minimum(1, 2 * stats.binom.sf(np.maximum(*alone) - 1, alone[0] + alone[1], 0.5)),
        **{name: np.expm1(mean_over_sites(ratios).centre) for name, ratios in gains.items()},
        # NaN without a block.
        "slower_share": mean(slower.reshape(len(slower), -1)),
        "rank_p": signed_ranks_p(difference),
    }


def given_up(campaign: CampaignTable) -> dict[Cell, GivenUp]:
    """The sites that were given up or withdrawn, by their names and those of their networks in each browser. Raises
    EyelevelError."""
    entries, clients = read_given_up(campaign.folder), campaign.clients.items()
    return {(one.site, name): one for one in entries for name, client in clients if client.network == one.network}


def _withdrawn(campaign: CampaignTable) -> list[Cell]:
    return [cell for cell, entry in given_up(campaign).items() if entry.withdrawn is not None]


def _is_withdrawn(campaign: CampaignTable, rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Which `rows`, with columns site and network, are of sites that were withdrawn."""
    return np.asarray(pd.MultiIndex.from_frame(rows[["site", "network"]]).isin(_withdrawn(campaign)))


def _tried(campaign: CampaignTable) -> pd.DataFrame:
    """`analysis.attempts.tried_in`, without settings that were withdrawn."""
    tried = tried_in(campaign)
    return tried[~_is_withdrawn(campaign, tried)]


def _names(campaign: CampaignTable, keys: Sequence[str] = ("network", "site", "protocol")) -> list[list[str]]:
    """The names of the campaign's networks, sites and protocols, followed by names that occur only in its runs."""
    declared = {"network": campaign.networks, "site": campaign.settings.sites, "protocol": campaign.protocols}
    return [list(dict.fromkeys([*declared[key], *campaign.runs[key].unique()])) for key in keys]
