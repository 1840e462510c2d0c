"""Whether conditions were stable while a campaign was measured: diagnostics that fail if they were not.

The first half of a campaign is compared with the second half; two random halves would be alike whatever happens. For
effects of the machine the unit is a block: its runs share the state of the machine, and the canary. A warning needs a
change that is large, and rarer by chance than ALARM_P, so that all diagnostics together are wrong in few campaigns.
Carry-over, and ratios that wander, make verdicts wrong whatever their size, so they warn at WARNING_P.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.attempts import RUN, tried_in
from analysis.balance import BLOCK
from analysis.runs import CANARY_PREFIX, CONCURRENT_LOADS, LANE, MACHINE, CampaignTable, metrics_in
from analysis.samples import sittings_of, starts_of
from analysis.statistics.contrast_table import CHANGE, contrast_columns, corrected, holm
from analysis.statistics.dependence import (
    FactorTest,
    batch_test,
    batches,
    carry_over_test,
    serial_test,
    wander_p,
    widened,
)
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import WARNING_P
from analysis.statistics.ratios import block_ratios, independent_difference, mean_over_sites
from analysis.statistics.samples import Array, Samples, counts, logarithms, t_test_p

# The highest probability, for each table of this module, that one of its rows warns although nothing is wrong.
ALARM_P = 0.002
# The thresholds of a warning: a change of times or ratios, as a share, and a correlation.
LARGE_CHANGE, LARGE_CORRELATION = 0.03, 0.2
# A test needs at least this many blocks beyond the number of means that are subtracted.
LEAST_FREEDOM = 4
CELL_P = 0.01
RATIO, TIME = "ratio", "time"
BATCHES, SITTINGS = "batches", "sittings"
# From this number on, the error between sittings is known well enough to be of use.
LEAST_SITTINGS = 3
DRIFTS, ALIKE = "drifts", "neighbours are alike"
HALVES_COLUMNS = ["kind", "reference", "compared", "network", "metric", "sites", "change", "low", "high", "p"]
HALVES_COLUMNS += ["p_corrected", "found_share", "warning"]


def halves(samples: Samples, pairs: Iterable[Pair], metrics: Sequence[str], confidence: float) -> pd.DataFrame:
    """The second half of each setting's blocks compared with the first, as the mean over sites.

    Kind ratio: the change of a pair's ratio within blocks. Kind time: the change of one protocol's times (`compared`;
    `reference` is empty). Columns: kind, reference, compared, network, metric, sites (with at least two blocks), change
    (share: 0.1 is 10 % more in the second half) with low and high, p, p_corrected (Holm's over the table), found_share
    (of sites whose own halves differ at CELL_P by Welch's test of logarithms; expected: CELL_P), warning.
    """
    groups: list[tuple[str, str, str, Array]] = [
        (RATIO, *pair, block_ratios(samples, pair)) for pair in samples.measured(pairs)
    ]
    groups += [(TIME, "", protocol, logarithms(samples.of(protocol))) for protocol in samples.protocols]
    rows = []
    for kind, reference, compared, values in groups:
        for metric in (name for name in metrics if name in samples.metrics):
            cells = values[:, :, samples.metrics.index(metric)]
            place, size = np.isfinite(cells).cumsum(axis=-1), counts(cells)
            # A site with one block has no halves.
            is_first, has_halves = 2 * place <= size[..., None], size[..., None] > 1
            first, second = (np.where(half & has_halves, cells, np.nan) for half in (is_first, ~is_first))
            change = independent_difference(mean_over_sites(first), mean_over_sites(second))
            columns = contrast_columns(change, confidence, CHANGE)
            own_p = t_test_p(first, second, equal_var=False)
            for n, network in enumerate(samples.networks):
                known = own_p[n][np.isfinite(own_p[n])]
                row: dict[str, Any] = {"kind": kind, "reference": reference, "compared": compared}
                row |= {"network": network, "metric": metric, "sites": int((size[n] > 1).sum())}
                row |= {name: float(values[n]) for name, values in columns.items()}
                rows.append(row | {"found_share": float((known < CELL_P).mean()) if len(known) else float("nan")})
    table = pd.DataFrame(rows, columns=[name for name in HALVES_COLUMNS if name not in ("p_corrected", "warning")])
    table = corrected(table, holm, ("p",))
    is_large = (table["change"].abs() > LARGE_CHANGE) & (table["p_corrected"] < ALARM_P)
    table["warning"] = np.where(is_large, "changes", "")
    return table[HALVES_COLUMNS]


def block_means(campaign: CampaignTable) -> pd.DataFrame:
    """How slow each block was: one row for each block with a valid run and a known start, in the order of measuring.

    Columns: network, site, block, started, hours (since the first block), machine, lane and the canaries if the
    campaign has them, and off_<metric>: the mean over the block's runs of ln(time / median of its setting), less the
    mean of its site and network. Settings with one run have no such distance and are left out.
    """
    runs = _residuals(campaign)
    # The runs of a block in all browsers were measured together.
    runs = runs.assign(network=runs["network"].map(lambda name: campaign.clients[name].network))
    key = ["network", "site", "block"]
    off = [f"off_{metric}" for metric in campaign.metrics]
    others = [name for name in runs if name in (MACHINE, LANE) or name.startswith(CANARY_PREFIX)]
    groups = runs.groupby(key, sort=False)
    table = groups[off].mean().join(groups[others].first()).assign(started=groups["started"].min())
    table[off] -= table.groupby(key[:2])[off].transform("mean")
    table = table.reset_index().sort_values("started", kind="stable", ignore_index=True)
    table["hours"] = (table["started"] - table["started"].min()).dt.total_seconds() / 3600
    return table[[*key, "started", "hours", *others, *off]]


@lru_cache(maxsize=1)
def _residuals(campaign: CampaignTable) -> pd.DataFrame:
    """The valid rows of `tried_runs` with a known start, with off_<metric>: ln(time / median of its setting). All
    callers share this table, so do not change it."""
    runs = tried_in(campaign)
    runs = runs[runs["valid"] & runs["started"].notna()]
    metrics = list(metrics_in(runs))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(runs[metrics]).replace([np.inf, -np.inf], np.nan)
    groups = logs.groupby([runs[name] for name in RUN[:3]])
    distances = (logs - groups.transform("median")).where(groups.transform("count") > 1)
    return runs.join(distances.add_prefix("off_"))


def drift(blocks: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Whether times change over the course of the campaign, and whether successive blocks are alike.

    `blocks` is the table of `block_means`. One row per metric; columns: metric, blocks; drift (share, from the first
    block to the last, by least squares within sites) with drift_low, drift_high and drift_p (errors allow for blocks
    that scatter unequally); serial (the correlation, without the drift, of each block with the one measured before it,
    at any site) with serial_low, serial_high and serial_p; warning. The intervals hold with `confidence`.
    """
    rows = []
    for metric in metrics_off(blocks):
        known = blocks[blocks[f"off_{metric}"].notna()].reset_index(drop=True)
        slope, leftover = _slope(known, metric, confidence)
        rows.append({"metric": metric, "blocks": len(known), **slope, **_serial(known, leftover, confidence)})
    columns = ["metric", "blocks"] + [
        f"{name}{end}" for name in ("drift", "serial") for end in ("", "_low", "_high", "_p")
    ]
    table = pd.DataFrame(rows, columns=columns)
    drifts = (table["drift"].abs() > LARGE_CHANGE) & (table["drift_p"] * len(table) < ALARM_P)
    are_alike = (table["serial"].abs() > LARGE_CORRELATION) & (table["serial_p"] * len(table) < ALARM_P)
    phrases = zip(np.where(drifts, DRIFTS, ""), np.where(are_alike, ALIKE, ""), strict=True)
    table["warning"] = ["; ".join(filter(None, row)) for row in phrases]
    return table


def _slope(blocks: pd.DataFrame, metric: str, confidence: float) -> tuple[dict[str, float], Array]:
    """The drift with its interval and p value, and the blocks' distances without the drift."""
    value = blocks[f"off_{metric}"].to_numpy()
    place = pd.Series(np.linspace(0, 1, len(blocks)))
    order = (place - place.groupby([blocks["network"], blocks["site"]]).transform("mean")).to_numpy()
    freedom, total = _freedom(blocks) - 1, (order**2).sum()
    if freedom < LEAST_FREEDOM or not np.ptp(value) or not total:
        return {}, value
    slope = (order * value).sum() / total
    leftover = value - slope * order
    error = np.sqrt(((order * leftover) ** 2).sum() * len(blocks) / freedom) / total
    reach = stats.t.ppf((1 + confidence) / 2, freedom) * error
    p = 2 * stats.t.sf(abs(slope) / error, freedom) if error else float(slope == 0)
    ends = {"drift": slope, "drift_low": slope - reach, "drift_high": slope + reach}
    return {**{name: float(np.expm1(end)) for name, end in ends.items()}, "drift_p": float(p)}, leftover


def _serial(blocks: pd.DataFrame, leftover: Array, confidence: float) -> dict[str, float]:
    value = pd.Series(leftover)
    # Networks scatter unequally. The residuals are scaled, so that no network dominates.
    scaled = (value / value.groupby(blocks["network"]).transform("std")).replace([np.inf, -np.inf], np.nan).dropna()
    if _freedom(blocks) < LEAST_FREEDOM or len(scaled) < 3 or not np.ptp(scaled):
        return {}
    correlation = float(np.corrcoef(scaled[:-1], scaled[1:])[0, 1])
    return _correlation_test("serial", correlation, _freedom(blocks) - 1, confidence)


def _freedom(blocks: pd.DataFrame) -> int:
    """The degrees of freedom of the blocks: their number, less one for the mean of each site and network."""
    return len(blocks) - len(set(zip(blocks["network"].tolist(), blocks["site"].tolist(), strict=True)))


def _correlation_test(name: str, correlation: float, freedom: float, confidence: float) -> dict[str, float]:
    """The correlation, its interval and its p value, by Fisher's z of `freedom` + 1 independent pairs."""
    z, error = np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)), 1 / np.sqrt(max(freedom - 2, 1))
    reach = stats.norm.ppf((1 + confidence) / 2) * error
    low, high = np.tanh(z - reach), np.tanh(z + reach)
    p = 2 * stats.norm.sf(abs(z) / error)
    return {name: correlation, f"{name}_low": float(low), f"{name}_high": float(high), f"{name}_p": float(p)}


def canaries(blocks: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Whether blocks were slow when the machine's canary was, from the table of `block_means`.

    One row for each canary and metric; columns: canary, metric, blocks, correlation (Spearman's over blocks, of the
    canary less its mean on the machine and lane with off_<metric>) with correlation_low, correlation_high (at
    `confidence`) and correlation_p; warning. The number of independent blocks allows for the serial correlation of
    both. Empty if the campaign has no canary.
    """
    rows = []
    for canary in (name for name in blocks if name.startswith(CANARY_PREFIX)):
        for metric in metrics_off(blocks):
            known = blocks[blocks[[canary, f"off_{metric}"]].notna().all(axis=1)]
            values = known[canary]
            if places := [known[name] for name in (MACHINE, LANE) if name in known]:
                values = values - values.groupby(places).transform("mean")
            ranks = [stats.rankdata(values), stats.rankdata(known[f"off_{metric}"])]
            row: dict[str, Any] = {"canary": canary, "metric": metric, "blocks": len(known)}
            if _freedom(known) >= LEAST_FREEDOM and all(np.ptp(rank) > 0 for rank in ranks):
                # Bartlett's formula: two series that change slowly are correlated by chance.
                one, other = (max(0.0, float(np.corrcoef(rank[:-1], rank[1:])[0, 1])) for rank in ranks)
                both = one * other
                freedom = max((_freedom(known) - 1) * (1 - both) / (1 + both), 1.0)
                row |= _correlation_test("correlation", float(np.corrcoef(*ranks)[0, 1]), freedom, confidence)
            rows.append(row)
    ends = ["", "_low", "_high", "_p"]
    table = pd.DataFrame(rows, columns=["canary", "metric", "blocks", *(f"correlation{end}" for end in ends)])
    is_large = (table["correlation"].abs() > LARGE_CORRELATION) & (table["correlation_p"] * len(table) < ALARM_P)
    table["warning"] = np.where(is_large, "goes with the canary", "")
    return table


def steps(campaign: CampaignTable, blocks: pd.DataFrame) -> pd.DataFrame:
    """Whether times depend on the place in the block; on the machine and the lane, if there were several; and on the
    number of concurrent loads, if loads shared processors.

    `blocks` are the `block_means`. Columns: factor (place, machine, lane or concurrent_loads), metric, groups, spread,
    p, warning. Spread is the share by which the slowest group's mean exceeds the fastest's, and p is from an F test.
    For places it uses the runs of blocks of the usual size, less their block's mean; for machines and lanes it uses the
    blocks' means. For concurrent loads, groups is the number of runs, spread the share by which a run with the most
    loads is slower than one with the fewest (by least squares within settings), and p from a t test.
    """
    runs = _residuals(campaign)
    groups = runs.groupby(["network", "site", "block"])
    block, place = groups.ngroup().to_numpy(), groups.cumcount().to_numpy()
    rows = []
    for metric in campaign.metrics:
        rows.append(("place", metric, *_place_effect(block, place, runs[f"off_{metric}"].to_numpy())))
        if machine := campaign.machine_column:
            known = blocks[blocks[f"off_{metric}"].notna()]
            rows.append((MACHINE, metric, *_group_effect(known[machine], known[f"off_{metric}"], _freedom(known))))
        if campaign.has_lanes:
            known = blocks[blocks[f"off_{metric}"].notna()]
            within = known[f"off_{metric}"]
            if MACHINE in known:  # lane 1 of two machines is not the same lane, though it may have the same place
                within = within - within.groupby(known[MACHINE]).transform("mean")
            rows.append((LANE, metric, *_group_effect(known[LANE], within, _freedom(known))))
        if CONCURRENT_LOADS in runs and runs[CONCURRENT_LOADS].nunique() > 1:
            rows.append((CONCURRENT_LOADS, metric, *_concurrency_effect(runs, metric)))
    table = pd.DataFrame(rows, columns=["factor", "metric", "groups", "spread", "p"])
    is_large = (table["spread"].abs() > LARGE_CHANGE) & (table["p"] * len(table) < ALARM_P)
    table["warning"] = np.where(is_large, "depends on the " + table["factor"], "")
    return table


def _concurrency_effect(runs: pd.DataFrame, metric: str) -> tuple[int, float, float]:
    """The number of `runs`, the share by which those with the most concurrent loads are slower than those with the
    fewest, and p."""
    known = runs[runs[f"off_{metric}"].notna() & runs[CONCURRENT_LOADS].notna()]
    settings = [known[name] for name in RUN[:3]]
    loads, times = (
        (known[name] - known[name].groupby(settings).transform("mean")).to_numpy()
        for name in (CONCURRENT_LOADS, f"off_{metric}")
    )
    freedom = len(known) - known.groupby(settings).ngroups - 1
    total = float((loads**2).sum())
    if freedom < LEAST_FREEDOM or not total or not np.ptp(times):
        return len(known), float("nan"), float("nan")
    slope = float((loads * times).sum()) / total
    error = np.sqrt(float(((times - slope * loads) ** 2).sum()) / freedom / total)
    p = 2 * float(stats.t.sf(abs(slope) / error, freedom)) if error else 0.0
    return len(known), float(np.expm1(slope * np.ptp(known[CONCURRENT_LOADS]))), p


def _place_effect(block: NDArray[np.int64], place: NDArray[np.int64], values: Array) -> tuple[int, float, float]:
    """groups, spread and p of the place in the block, from the block, the place and the value of each run."""
    wide = np.full((block.max(initial=-1) + 1, place.max(initial=-1) + 1), np.nan)
    wide[block, place] = values
    sizes = counts(wide)
    of_size = np.bincount(sizes[sizes > 0], minlength=1)
    usual = int(np.flatnonzero(of_size == of_size.max())[-1])
    whole = wide[sizes == usual]
    whole = whole[:, np.isfinite(whole).any(axis=0)]
    whole = whole[np.isfinite(whole).all(axis=1)]
    if usual < 2 or whole.shape[1] != usual:
        return usual, float("nan"), float("nan")
    inner = pd.Series((whole - whole.mean(axis=1, keepdims=True)).ravel())
    groups = pd.Series(np.tile(np.arange(usual), len(whole)))
    return _group_effect(groups, inner, (len(whole) - 1) * (usual - 1) + usual - 1)


def _group_effect(groups: "pd.Series[Any]", values: "pd.Series[float]", freedom: int) -> tuple[int, float, float]:
    """The number of groups, their spread and p (F test), from values with a mean of 0 and `freedom` degrees of
    freedom."""
    means, sizes = values.groupby(groups).mean(), values.groupby(groups).size()
    between, within = len(means) - 1, freedom - len(means) + 1
    if between < 1 or within < LEAST_FREEDOM:
        return len(means), float("nan"), float("nan")
    explained = float((sizes * (means - values.mean()) ** 2).sum())
    residual = float(((values - groups.map(means)) ** 2).sum())
    p = (
        float(stats.f.sf(explained / between / (residual / within), between, within))
        if residual
        else float(explained == 0)
    )
    return len(means), float(np.expm1(means.max() - means.min())), p


def carry_over(campaign: CampaignTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Whether loads depend on the protocol that was loaded before them.

    One row per network and metric with blocks of several loads. Columns: network, metric, runs; fastest and slowest
    (the protocols after which loads are fastest and slowest); spread (the share by which these differ); ratio_off (the
    largest error that this causes in a ratio of two protocols, as a share: in random order, about the spread over the
    number of protocols); p (`dependence.carry_over_test`), p_corrected (Holm's over the table), warning.

    The load before is the attempt before it in the same lane, of any block, valid or not; the first load of a sitting
    has none. With two protocols, only the first loads of blocks tell carry-over from an effect of the place. So if
    carry-over ends with a block (since a pause lies between blocks), two protocols do not show it, and the effect of
    the place (`steps`) is the sum of what both carry over.
    """
    runs = _surroundings(campaign)
    runs = runs[runs["valid"] & runs["previous"].notna()]
    rows = []
    for network in [name for name in campaign.networks if (runs["network"] == name).any()]:
        for metric in (name for name in metrics if name in runs):
            logs = logarithms(runs[metric].to_numpy(dtype=float))
            known = runs.assign(log=logs)[(runs["network"] == network).to_numpy() & np.isfinite(logs)]
            known = known[known.groupby(BLOCK)["log"].transform("size") > 1]
            if known.empty:
                continue
            codes = [
                known.groupby(names).ngroup().to_numpy()
                for names in (["previous"], ["site"], ["site", "protocol"], BLOCK, ["place"])
            ]
            test, effects = carry_over_test(known["log"].to_numpy(), *codes)
            row: dict[str, Any] = {"network": network, "metric": metric, "runs": len(known), "p": test.p}
            if np.isfinite(test.p) and np.isfinite(effects).all():
                names = sorted(set(known["previous"]))
                carried = pd.Series(effects[codes[0]]).groupby(known["protocol"].to_numpy()).mean()
                row |= {"fastest": names[int(effects.argmin())], "slowest": names[int(effects.argmax())]}
                row |= {"spread": float(np.expm1(np.ptp(effects))), "ratio_off": float(np.expm1(np.ptp(carried)))}
            rows.append(row)
    columns = ["network", "metric", "runs", "fastest", "slowest", "spread", "ratio_off", "p"]
    table = corrected(pd.DataFrame(rows, columns=columns), holm, ("p",))
    table["warning"] = np.where(table["p_corrected"] < WARNING_P, "carry-over", "")
    return table


def wandering(
    campaign: CampaignTable, samples: Samples, pairs: Iterable[Pair], metrics: Sequence[str], confidence: float
) -> pd.DataFrame:
    """Whether the ratios of `pairs` change while they are measured, by more than runs scatter.

    Kind batches: batches of successive blocks of a network are compared, and each block with the one before it. Kind
    sittings: if there are at least LEAST_SITTINGS with blocks of both protocols, these are compared. Columns: kind,
    reference, compared, network, metric, blocks, groups (batches or sittings), serial (correlation with the block
    before; kind batches only), gain (share: 0.1 is 10 % slower) with low and high (from blocks, with this `confidence`)
    and wide_low and wide_high (from groups: their mean with Student's t), p, p_corrected (Holm's over the kind),
    warning.
    """
    runs = _surroundings(campaign)
    valid = runs[runs["valid"]]
    rows = []
    for pair in samples.measured(pairs):
        reference, compared = (valid[valid["protocol"] == name] for name in pair)
        both = reference.merge(compared, on=BLOCK, suffixes=("", "_compared"))
        both["begin"] = both[["started", "started_compared"]].min(axis=1)
        both = both.sort_values("begin", kind="stable")
        ratios = block_ratios(samples, pair)
        for metric in (name for name in metrics if name in samples.metrics):
            means = mean_over_sites(ratios[:, :, samples.metrics.index(metric)])
            logs = logarithms((both[f"{metric}_compared"] / both[metric]).to_numpy(dtype=float))
            for n, network in enumerate(samples.networks):
                known = both.assign(ratio=logs)[(both["network"] == network).to_numpy() & np.isfinite(logs)]
                if known.empty:
                    continue
                centre, error, freedom = (float(of[n]) for of in (means.centre, means.error, means.freedom))
                row = {**pair._asdict(), "network": network, "metric": metric, "blocks": len(known)}
                row |= {"gain": float(np.expm1(centre)), **_interval("", centre, error, freedom, confidence)}
                for kind, test, others in _wander_tests(known):
                    wide = _interval("wide_", centre, *widened(error, test), confidence)
                    rows.append(row | wide | {"kind": kind, "groups": len(test.effects), "p": test.p} | others)
    columns = ["kind", *Pair._fields, "network", "metric", "blocks", "groups", "serial", "gain", "low", "high"]
    table = pd.DataFrame(rows, columns=[*columns, "wide_low", "wide_high", "p"])
    table["p_corrected"] = table.groupby("kind")["p"].transform(lambda p: holm(p.to_numpy()))
    table["warning"] = np.where(table["p_corrected"] < WARNING_P, "wanders", "")
    return table.sort_values("kind", kind="stable", ignore_index=True)


def _wander_tests(blocks: pd.DataFrame) -> Iterable[tuple[str, FactorTest, dict[str, float]]]:
    """The tests of the log ratios (column ratio) of the `blocks` of one network, which are in the order of measuring:
    the kind, the test of its groups, and columns that differ from those of the test."""
    ratios, site = blocks["ratio"].to_numpy(), blocks.groupby("site").ngroup().to_numpy()
    test = batch_test(ratios, site, batches(len(blocks)))
    serial, p = serial_test(ratios, site)
    yield BATCHES, test, {"serial": serial, "p": wander_p(test.p, p)}
    sitting = blocks.groupby("sitting").ngroup().to_numpy()
    if sitting.max(initial=-1) + 1 >= LEAST_SITTINGS:
        yield SITTINGS, batch_test(ratios, site, sitting), {}


def _interval(prefix: str, centre: float, error: float, freedom: float, confidence: float) -> dict[str, float]:
    """The columns low and high, as shares, of a log ratio `centre` with this `error`."""
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error if freedom > 0 else float("nan")
    return {f"{prefix}low": float(np.expm1(centre - reach)), f"{prefix}high": float(np.expm1(centre + reach))}


@lru_cache(maxsize=1)
def _surroundings(campaign: CampaignTable) -> pd.DataFrame:
    """The rows of `tried_runs` with a known start, with their place in the block (0, 1, …), their sitting, and the
    protocol that was loaded before (previous; missing if unknown). All callers share this table, so do not change
    it."""
    attempts = campaign.runs.assign(started=starts_of(campaign.runs), sitting=sittings_of(campaign.runs))
    attempts = attempts[attempts["started"].notna()].sort_values("started", kind="stable")
    lanes = [name for name in (MACHINE, LANE) if name in attempts]
    attempts["previous"] = attempts.groupby([*lanes, "sitting"], dropna=False)["protocol"].shift()
    key = [*RUN, "started"]
    tried = tried_in(campaign)
    tried = tried[tried["started"].notna()]
    tried = tried.assign(place=tried.groupby(BLOCK).cumcount())
    return tried.merge(attempts[[*key, "sitting", "previous"]].drop_duplicates(key), on=key, how="left")


def metrics_off(blocks: pd.DataFrame) -> list[str]:
    """The metrics for which a table of `block_means` has distances."""
    return [name.removeprefix("off_") for name in blocks if name.startswith("off_")]
