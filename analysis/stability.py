"""Whether conditions were stable while a campaign was measured.

For effects of the machine the unit is a block, since its runs share the state of the machine. A warning needs a change
that is large, and rarer by chance than ALARM_P, so that all diagnostics together are wrong in few campaigns.
Carry-over, and ratios that wander, make verdicts wrong whatever their size, so they warn at WARNING_P.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress, product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.attempts import BLOCK, SETTING, in_places, tried_in
from analysis.runs import CONCURRENT_LOADS, LANE, MACHINE, CampaignTable
from analysis.statistics import dependence
from analysis.statistics.contrast_table import CHANGE, contrast_columns, corrected, holm
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import WARNING_P
from analysis.statistics.ratios import block_ratios, independent_difference, mean_over_sites
from analysis.statistics.samples import Samples, counts, frame, logarithms

# The highest probability, for each table of this module, that one of its rows warns although nothing is wrong.
ALARM_P = 0.002
# The thresholds of a warning: a change of times or ratios, as a share, and a correlation.
LARGE_CHANGE, LARGE_CORRELATION = 0.03, 0.2
RATIO, TIME = "ratio", "time"
BATCHES, SITTINGS = "batches", "sittings"
# From this number on, the error between sittings is known well enough to be of use.
LEAST_SITTINGS = 3
DRIFTS, ALIKE = "drifts", "neighbours are alike"
CELL = BLOCK[:2]


def halves(samples: Samples, declared: Hypotheses) -> pd.DataFrame:
    """The second half of each setting's blocks compared with the first, as the mean over sites.

    Columns: kind (ratio: of a pair, within blocks; time: of one protocol, in `compared`), reference, compared, metric,
    network, sites (with at least two blocks), change (share: 0.1 is 10 % more in the second half) with low and high, p,
    p_corrected (Holm's over the table), warning.
    """
    logs = [(RATIO, pair, block_ratios(samples, pair)) for pair in samples.measured(declared.family)]
    logs += [(TIME, Pair("", name), logarithms(samples.of(name))) for name in samples.protocols]
    tables = []
    for kind, pair, values in logs:
        # metrics x networks x sites x blocks
        cells = np.moveaxis(values, 2, 0)[[samples.metrics.index(name) for name in declared.family_metrics]]
        size = counts(cells)
        is_first = 2 * np.isfinite(cells).cumsum(axis=-1) <= size[..., None]
        # A site with one block has no halves.
        first, second = (np.where(half & (size[..., None] > 1), cells, np.nan) for half in (is_first, ~is_first))
        change = independent_difference(mean_over_sites(first), mean_over_sites(second))
        columns = {"kind": kind, **pair._asdict(), "sites": (size > 1).sum(axis=-1)}
        columns |= contrast_columns(change, declared.confidence, CHANGE)
        tables.append(frame(columns, metric=declared.family_metrics, network=samples.networks))
    table = corrected(pd.concat(tables, ignore_index=True), holm, ("p",))
    return table.assign(warning=np.where(_is_alarm(table["change"], table["p_corrected"]), "changes", ""))


def _is_alarm(size: "pd.Series[float]", p: "pd.Series[float]", large: float = LARGE_CHANGE) -> "pd.Series[bool]":
    return (size.abs() > large) & (p < ALARM_P)


@lru_cache(maxsize=1)
def residuals(campaign: CampaignTable) -> pd.DataFrame:
    """The runs that count and have a known start, in the order in which they were measured.

    Columns: those of `attempts.tried_runs`; place (1, … among these runs of the block); hours (since the first run);
    off_<metric>: ln(time / median of its setting), missing if the setting has one run. Shared by all: do not change it.
    """
    tried = tried_in(campaign)
    runs, metrics = in_places(tried[tried["valid"]]), list(campaign.metrics)
    logs = pd.DataFrame(logarithms(runs[metrics].to_numpy(dtype=float)), runs.index, metrics)
    groups = logs.groupby([runs[name] for name in SETTING])
    distances = (logs - groups.transform("median")).where(groups.transform("count") > 1)
    hours = (runs["started"] - runs["started"].min()).dt.total_seconds() / 3600
    return runs.assign(hours=hours).join(distances.add_prefix("off_"))


def block_means(campaign: CampaignTable) -> pd.DataFrame:
    """How slow each block with `residuals` was, in the order of measuring: columns network, site, block, machine and
    lane if the campaign has them, and off_<metric> (the mean over its runs, less the mean of its site and network)."""
    runs = residuals(campaign)
    # The runs of a block in all browsers were measured together.
    runs = runs.assign(network=runs["network"].map(lambda name: campaign.clients[name].network))
    off = [f"off_{metric}" for metric in campaign.metrics]
    groups = runs.groupby(BLOCK, sort=False)
    table = groups[off].mean().join(groups[[name for name in (MACHINE, LANE) if name in runs]].first())
    table[off] -= table.groupby(CELL)[off].transform("mean")
    return table.reset_index()


def _by_metric(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each metric of a table with off_<metric>, and the rows that have it, with its values as column off."""
    for column in (name for name in table if name.startswith("off_")):
        known = table[table[column].notna()]
        yield column.removeprefix("off_"), known.assign(off=known[column]).reset_index(drop=True)


def drift(blocks: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Whether times change over the course of the campaign, and whether successive `block_means` are alike.

    Columns: metric, blocks; drift (share, from the first block to the last, by least squares within sites) with
    drift_low, drift_high and drift_p; serial (the correlation, without the drift, of each block with the one measured
    before it, at any site) with serial_p; warning.
    """
    rows = []
    for metric, known in _by_metric(blocks):
        place = np.linspace(0, 1, len(known))
        slope, error, p, freedom, rest = _slope(known.assign(place=place), "place", CELL)
        ends = slope + np.array([0, -1, 1]) * stats.t.ppf((1 + confidence) / 2, freedom) * error
        # Networks scatter unequally. The distances are scaled, so that no network dominates.
        scaled = (rest / rest.groupby(known["network"]).transform("std")).replace([np.inf, -np.inf], np.nan).dropna()
        serial = dependence.neighbour_test(scaled.to_numpy(), freedom)
        rows.append([metric, len(known), *np.expm1(ends), p, *serial])
    columns = ["metric", "blocks", "drift", "drift_low", "drift_high", "drift_p", "serial", "serial_p"]
    table = pd.DataFrame(rows, columns=columns)
    drifts = _is_alarm(table["drift"], table["drift_p"] * len(table))
    are_alike = _is_alarm(table["serial"], table["serial_p"] * len(table), LARGE_CORRELATION)
    alarms = zip(drifts, are_alike, strict=True)
    return table.assign(warning=["; ".join(compress((DRIFTS, ALIKE), row)) for row in alarms])


def _slope(table: pd.DataFrame, cause: str, key: list[str]) -> tuple[float, float, float, int, "pd.Series[float]"]:
    """The slope of the column off over the column `cause`, by least squares within the groups of `key`; its error,
    which allows for rows that scatter unequally; p of no slope; the degrees of freedom; and off without the slope. The
    first three are NaN if they are not known."""
    groups = table.groupby(key)
    x, y = (table[name] - groups[name].transform("mean") for name in (cause, "off"))
    freedom, total = len(table) - int(groups.ngroups) - 1, float((x**2).sum())
    if freedom < dependence.LEAST_FREEDOM or not np.ptp(y) or not total:
        return np.nan, np.nan, np.nan, freedom, y
    slope = float((x * y).sum()) / total
    rest = y - slope * x
    error = float(np.sqrt(((x * rest) ** 2).sum() * len(y) / freedom)) / total
    p = 2 * float(stats.t.sf(abs(slope) / error, freedom)) if error else float(slope == 0)
    return slope, error, p, freedom, rest


def steps(campaign: CampaignTable, blocks: pd.DataFrame) -> pd.DataFrame:
    """Whether times depend on the place in the block; on the machine and the lane, if there were several; and on the
    number of concurrent loads, if loads shared processors.

    Columns: factor (place, machine, lane or concurrent_loads), metric, groups, spread (the share by which the slowest
    group exceeds the fastest), p (F test), warning. For places it uses the runs of blocks of the usual size, for
    machines and lanes the `block_means` of sites that have several of them. For concurrent loads, groups is the number
    of runs, spread that of runs with the most loads against the fewest (by least squares within settings), p of t.
    """
    rows = []
    table = residuals(campaign)
    table = table[[name for name in table if name in (*SETTING, "block", CONCURRENT_LOADS) or name.startswith("off_")]]
    for (metric, runs), (_, known) in zip(_by_metric(table), _by_metric(blocks), strict=True):
        block = _codes(runs, *BLOCK)
        sizes = np.bincount(block)
        numbers = np.bincount(sizes)
        whole = runs[sizes[block] == np.flatnonzero(numbers == numbers.max(initial=0)).max(initial=0)]
        rows.append(_step(metric, whole.assign(place=whole.groupby(BLOCK).cumcount()), "place", BLOCK))
        if machine := campaign.machine_column:
            rows.append(_step(metric, known, machine, CELL))
        if LANE in known and campaign.runs[LANE].nunique() > 1:
            # Lane 1 of two machines is not the same lane, though it may have the same place.
            rows.append(_step(metric, known, LANE, CELL, *([[MACHINE]] if MACHINE in known else [])))
        if CONCURRENT_LOADS in runs and runs[CONCURRENT_LOADS].nunique() > 1:
            runs = runs.dropna(subset=CONCURRENT_LOADS)
            slope, _, p, *_ = _slope(runs, CONCURRENT_LOADS, SETTING)
            rows.append([CONCURRENT_LOADS, metric, len(runs), np.expm1(slope * np.ptp(runs[CONCURRENT_LOADS])), p])
    table = pd.DataFrame(rows, columns=["factor", "metric", "groups", "spread", "p"])
    is_large = _is_alarm(table["spread"], table["p"] * len(table))
    return table.assign(warning=np.where(is_large, "depends on the " + table["factor"], ""))


def _step(metric: str, table: pd.DataFrame, factor: str, key: Sequence[str], *more: Sequence[str]) -> list[Any]:
    """The row of `steps` on the column `factor` of `table`, beside the groups of `key` and of `more`."""
    # A group with one level of the factor says nothing about it, and its level might be one that no other group has.
    group = _codes(table, *key)
    levels = np.bincount(group[np.unique(_codes(table, *key, factor), return_index=True)[1]])
    some = table[levels[group] > 1]
    others = [_codes(some, *columns) for columns in (key, *more)]
    test = dependence.factor_test(some["off"].to_numpy(), _codes(some, factor), others)
    spread = float(np.expm1(np.ptp(test.effects))) if len(some) else np.nan
    return [factor, metric, len(test.effects), spread, test.p]


def _codes(runs: pd.DataFrame, *columns: str) -> dependence.Codes:
    """The number of the group of each of `runs` by these columns, in which no value is missing."""
    codes = [1 + pd.factorize(runs[name], sort=True)[0] for name in columns]
    numbers = np.ravel_multi_index(codes, [code.max(initial=0) + 1 for code in codes])
    return np.asarray(np.unique(numbers, return_inverse=True)[1])


def carry_over(campaign: CampaignTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Whether loads depend on the protocol that was loaded before them.

    Columns: network, metric, runs (of blocks with several loads); fastest and slowest (the protocols after which loads
    are fastest and slowest); spread (the share by which these differ); ratio_off (the largest error that this causes in
    a ratio of two protocols, as a share: in random order, about the spread over the number of protocols); p
    (`dependence.carry_over_test`), p_corrected (Holm's over the table), warning.

    If carry-over ends with a block, since a pause lies between blocks, two protocols do not show it; the effect of the
    place (`steps`) is then the sum of what both carry over.
    """
    runs = in_places(tried_in(campaign)).query("valid").dropna(subset="previous")
    runs = runs[[*BLOCK, "protocol", "previous", "place", *metrics]]
    rows = []
    for network, metric in product(campaign.networks, metrics):
        known = runs[runs["network"] == network]
        known = known.assign(log=logarithms(known[metric].to_numpy(dtype=float))).dropna(subset="log")
        block = _codes(known, *BLOCK)
        known = known[np.bincount(block)[block] > 1]
        if known.empty:
            continue
        factors = (["previous"], ["site"], ["site", "protocol"], BLOCK, ["place"])
        previous, *others = (_codes(known, *columns) for columns in factors)
        test, effects = dependence.carry_over_test(known["log"].to_numpy(), previous, *others)
        row: dict[str, Any] = {"network": network, "metric": metric, "runs": len(known), "p": test.p}
        if np.isfinite([test.p, *effects]).all():
            names = sorted(known["previous"].unique())
            carried = pd.Series(effects[previous]).groupby(known["protocol"].to_numpy()).mean()
            row |= {"fastest": names[effects.argmin()], "slowest": names[effects.argmax()]}
            row |= {"spread": np.expm1(np.ptp(effects)), "ratio_off": np.expm1(np.ptp(carried))}
        rows.append(row)
    columns = ["network", "metric", "runs", "fastest", "slowest", "spread", "ratio_off", "p"]
    table = corrected(pd.DataFrame(rows, columns=columns), holm, ("p",))
    return table.assign(warning=np.where(table["p_corrected"] < WARNING_P, "carry-over", ""))


def wandering(campaign: CampaignTable, samples: Samples, declared: Hypotheses) -> pd.DataFrame:
    """Whether the ratios of the declared family change while they are measured, by more than runs scatter.

    Columns: kind (batches: `dependence.wander_test`; sittings: if at least LEAST_SITTINGS have blocks of both
    protocols, these are compared), reference, compared, network, metric, blocks, groups (batches or sittings), serial
    (correlation with the block before; kind batches only), gain (share: 0.1 is 10 % slower) with low and high (from
    blocks) and wide_low and wide_high (from groups), p, p_corrected (Holm's over the kind), warning.
    """
    runs = residuals(campaign)
    rows = []
    for pair, metric in product(samples.measured(declared.family), declared.family_metrics):
        columns = [*BLOCK, "started", "sitting", metric]
        reference, compared = (runs.loc[runs["protocol"] == name, columns] for name in pair)
        both = reference.merge(compared, on=BLOCK, suffixes=("", "_compared"))
        both["begin"] = both[["started", "started_compared"]].min(axis=1)
        both["log"] = logarithms((both[f"{metric}_compared"] / both[metric]).to_numpy(dtype=float))
        both = both.sort_values("begin", kind="stable").dropna(subset="log")
        ratios = block_ratios(samples, pair)[:, :, samples.metrics.index(metric)]
        for network, of_sites in zip(samples.networks, ratios, strict=True):
            known, mean = both[both["network"] == network], mean_over_sites(of_sites)
            log, site, sitting = known["log"].to_numpy(), _codes(known, "site"), _codes(known, "sitting")
            tests = [(BATCHES, *dependence.wander_test(log, site))] if len(known) else []
            if sitting.max(initial=-1) + 1 >= LEAST_SITTINGS:
                of_sittings = dependence.factor_test(dependence.normal_scores(log, site), sitting, [site])
                tests.append((SITTINGS, of_sittings, np.nan, of_sittings.p))
            for kind, test, serial, p in tests:
                ends = [end for of in (mean, test.widened(mean)) for end in of.interval(declared.confidence)]
                row = [kind, *pair, network, metric, len(known), len(test.effects), serial]
                rows.append([*row, *np.expm1([mean.centre, *ends]), p])
    columns = ["kind", *Pair._fields, "network", "metric", "blocks", "groups", "serial", "gain", "low", "high"]
    table = pd.DataFrame(rows, columns=[*columns, "wide_low", "wide_high", "p"])
    table["p_corrected"] = table.groupby("kind")["p"].transform(lambda p: holm(p.to_numpy()))
    table["warning"] = np.where(table["p_corrected"] < WARNING_P, "wanders", "")
    return table.sort_values("kind", kind="stable", ignore_index=True)
