"""Compares two campaigns, A with B: load times before and after a browser, a kernel or a server changed.

The runs of A and B lie in different blocks, so nothing is paired: the state of the machine does not cancel, and a
change from A to B includes everything that changed between them. Two checks bound the machine's part. The processor's
canary shows how much slower or faster the machine was, with an interval; the machine alone may explain a change of the
times within that interval. And slowness that affects two protocols alike cancels in their ratio within blocks, so the
change of that ratio is shown, too.
Changes are shares: 0.1 is 10 % more time in B than in A; negative means that B is faster.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.runs import CANARY_PREFIX, CampaignTable
from analysis.samples import samples_of
from analysis.statistics.contrast_table import (
    CHANGE,
    TESTS,
    contrast_columns,
    corrected,
    false_discovery_rate,
    holm,
    judged,
)
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import (
    MeanRatio,
    block_ratios,
    independent_difference,
    margins,
    mean_over_sites,
    site_margins,
)
from analysis.statistics.samples import Array, Samples, by_metric, counts, frame, logarithms
from base.errors import EyelevelError

# The canary that bounds the machine's part in a change. The canary of pages changes with the browser, too.
PROCESSOR_CANARY = "canary_cpu_ms"
STATISTICS = ["change", "low", "high", "p", "p_corrected", "equivalence_p_corrected", "margin", "verdict"]
WORSE = ["worse_p_corrected", "worse", "beyond_canary"]
OVER_SITES = ["network", "protocol", "metric", "sites", *STATISTICS, *WORSE]
SITES = ["network", "site", "protocol", "metric", "runs_a", "runs_b", "mean_a", "mean_b", *STATISTICS, *WORSE]
CONTRASTS = ["reference", "compared", "network", "metric", "sites", "change", "low", "high", "p", "p_corrected"]
CANARIES = ["canary", "times_a", "times_b", "mean_a", "mean_b", "change", "low", "high"]
NOT_KNOWN = "-"


@dataclass(frozen=True)
class CampaignChange:
    """The comparison of B with A.

    `over_sites`, `sites`, `contrasts`, `canaries`: tables with the columns of this module. `differences`: columns what,
    a and b, with a row for each difference between the campaigns' documents, except the times at which they were made.
    `allowance`: how much slower B may be according to the canary, as a share; None without a canary. `unmatched`: the
    parts that only one of the campaigns has.
    """

    a: CampaignTable
    b: CampaignTable
    hypotheses: Hypotheses
    worse_than: float
    allowance: float | None
    over_sites: pd.DataFrame
    sites: pd.DataFrame
    contrasts: pd.DataFrame
    canaries: pd.DataFrame
    differences: pd.DataFrame
    unmatched: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether B is shown to be slower than A by more than the threshold, over all sites or at one."""
        return bool(self.over_sites["worse"].any() or self.sites["worse"].any())

    @property
    def false_alarm_share(self) -> float:
        """The largest share of comparisons in which B counts as worse although nothing changed between the campaigns.

        The table over all sites has at most the declared level (Holm's method). The table of single sites has the same
        level again (Benjamini and Hochberg's method holds it if nothing differs). The share reaches this bound if no
        slowness is allowed and runs are independent.
        """
        return 2 * self.hypotheses.significant_p


def compare(a: CampaignTable, b: CampaignTable, hypotheses: Hypotheses, worse_than: float) -> CampaignChange:
    """Compare campaign `b` with `a`, using the thresholds and the family's metrics of `hypotheses`.

    B is worse if it is shown to be slower than A by more than `worse_than` (a share) plus the canary's allowance.
    Raises EyelevelError if the campaigns have nothing to compare.
    """
    known = (samples_of(a), samples_of(b))
    wanted = [name for name in hypotheses.family_metrics if name in a.metrics and name in b.metrics]
    first, second = _in_common(*known, wanted)
    canaries = _canaries(a, b, hypotheses.confidence)
    bounds = _canary_bounds(canaries)
    slower = float(np.log1p(worse_than)) + (bounds[1] if bounds else 0.0)
    thresholds = _Thresholds(hypotheses.confidence, slower, bounds)
    return CampaignChange(
        a,
        b,
        hypotheses,
        worse_than,
        float(np.expm1(bounds[1])) if bounds else None,
        *_changes(first, second, hypotheses, a.rtt_ms, thresholds),
        _contrasts(first, second, hypotheses),
        canaries,
        differences(a, b),
        tuple(_unmatched(*known)),
    )


def _in_common(a: Samples, b: Samples, metrics: Sequence[str]) -> tuple[Samples, Samples]:
    """Both samples, reduced to `metrics` and to the networks, sites and protocols that both have, in the order of
    `a`."""
    names = {
        axis: tuple(name for name in getattr(a, axis) if name in getattr(b, axis))
        for axis in ("networks", "sites", "protocols")
    } | {"metrics": tuple(metrics)}
    if absent := [axis for axis, common in names.items() if not common]:
        raise EyelevelError(f"the campaigns cannot be compared: they have no {absent[0]} in common, of runs that count")

    def part(samples: Samples) -> Samples:
        places = [[getattr(samples, axis).index(name) for name in common] for axis, common in names.items()]
        blocks = range(samples.values.shape[-1])
        rounds = tuple(samples.rounds[place] for place in places[0])
        return replace(samples, values=samples.values[np.ix_(*places, blocks)], rounds=rounds, **names)

    both = part(a), part(b)
    if not (counts(both[0].values) * counts(both[1].values)).any():
        raise EyelevelError("the campaigns cannot be compared: no site has runs that count of both")
    return both


def _unmatched(a: Samples, b: Samples) -> Iterator[str]:
    for name, one, other in (("A", a, b), ("B", b, a)):
        for axis in ("networks", "sites", "protocols"):
            if only := [value for value in getattr(one, axis) if value not in getattr(other, axis)]:
                yield f"{axis} of {name} alone, which are not compared: {', '.join(only)}"


def _both(a: Array, b: Array) -> tuple[Array, Array]:
    """`a` and `b`, with NaN wherever only one of them has runs in any block. The last axis is the blocks."""
    has_both = ((counts(a) > 0) & (counts(b) > 0))[..., None]
    return np.where(has_both, a, np.nan), np.where(has_both, b, np.nan)


@dataclass(frozen=True)
class _Thresholds:
    """The thresholds of changes, as log ratios: how much slower B may be; and the range in which the canary lets times
    move, None without a canary."""

    confidence: float
    slower: float
    canary: tuple[float, float] | None

    def statistics(self, change: MeanRatio, margin: Array) -> dict[str, NDArray[Any]]:
        """The columns that the tables of changes share."""
        low, high = change.interval(self.confidence)
        # Without a canary nothing bounds the machine's part, so it is unknown whether a change exceeds it.
        beyond = (low > self.canary[1]) | (high < self.canary[0]) if self.canary else np.full(low.shape, None)
        columns = contrast_columns(change, self.confidence, CHANGE, margin)
        return {**columns, "worse_p": change.slower_p(self.slower), "beyond_canary": beyond}


def _changes(
    a: Samples, b: Samples, hypotheses: Hypotheses, rtt_ms: Mapping[str, float], thresholds: _Thresholds
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table over all sites and the table of single sites."""
    over_sites, sites = [], []
    for protocol in a.protocols:
        pair = Pair(protocol, protocol)
        logs = _both(logarithms(a.of(protocol)), logarithms(b.of(protocol)))
        change = independent_difference(*(mean_over_sites(by_metric(part)) for part in logs))
        columns = thresholds.statistics(change, margins(a, pair, hypotheses, rtt_ms))
        columns |= {"sites": (counts(logs[0]) > 0).sum(axis=1)}
        over_sites.append(frame({"protocol": protocol, **columns}, network=a.networks, metric=a.metrics))
        change = independent_difference(*(mean_over_sites(part[..., None, :]) for part in logs))
        columns = thresholds.statistics(change, site_margins(a, pair, hypotheses, rtt_ms))
        columns |= {"runs_a": counts(logs[0]), "runs_b": counts(logs[1])}
        columns |= {"mean_a": mean(a.of(protocol)), "mean_b": mean(b.of(protocol))}
        sites.append(a.frame({"protocol": protocol, **columns}))
    over_table, site_table = pd.concat(over_sites), pd.concat(sites)
    return (
        _judged(over_table[over_table["sites"] > 0], holm, hypotheses.significant_p)[OVER_SITES],
        _judged(site_table[site_table["runs_a"] > 0], false_discovery_rate, hypotheses.significant_p)[SITES],
    )


def _judged(table: pd.DataFrame, correct: Callable[[Array], Array], significant_p: float) -> pd.DataFrame:
    """`table` with corrected p values, the verdict, and whether each row is worse."""
    table = judged(table.reset_index(drop=True), correct, significant_p, CHANGE[0], (*TESTS, "worse_p"))
    return table.assign(worse=table["worse_p_corrected"] < significant_p)


def _contrasts(a: Samples, b: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """The change from A to B in the ratio of two protocols within blocks."""
    tables = []
    for pair in a.measured(hypotheses.comparisons):
        one, other = (by_metric(part) for part in _both(block_ratios(a, pair), block_ratios(b, pair)))
        change = independent_difference(mean_over_sites(one), mean_over_sites(other))
        columns = contrast_columns(change, hypotheses.confidence, CHANGE)
        columns |= {**pair._asdict(), "sites": (counts(one) > 0).sum(axis=-1)}
        tables.append(frame(columns, network=a.networks, metric=a.metrics))
    table = pd.concat(tables) if tables else pd.DataFrame(columns=CONTRASTS)
    return corrected(table[table["sites"] > 0].reset_index(drop=True), holm, ("p",))[CONTRASTS]


def _canaries(a: CampaignTable, b: CampaignTable, confidence: float) -> pd.DataFrame:
    """How much slower each canary of the machine was in B. A canary that several blocks share counts once."""
    rows = []
    for name in (name for name in a.runs if name.startswith(CANARY_PREFIX) and name in b.runs):
        times = [runs[name].dropna().unique() for runs in (a.runs, b.runs)]
        if all(len(values) for values in times):
            change = independent_difference(*(mean_over_sites(logarithms(values)[None]) for values in times))
            sizes = [len(values) for values in times]
            numbers = [float(column) for column in contrast_columns(change, confidence, CHANGE).values()][:3]
            rows.append([name, *sizes, *(values.mean() for values in times), *numbers])
    return pd.DataFrame(rows, columns=CANARIES)


def _canary_bounds(canaries: pd.DataFrame) -> tuple[float, float] | None:
    """The range in which the processor's canary lets times move, as log ratios: its interval, extended to contain 0.
    None if the canary has no interval."""
    rows = canaries[(canaries["canary"] == PROCESSOR_CANARY) & canaries["low"].notna()]
    if rows.empty:
        return None
    row = rows.iloc[0]
    return min(0.0, float(np.log1p(row["low"]))), max(0.0, float(np.log1p(row["high"])))


def differences(a: CampaignTable, b: CampaignTable) -> pd.DataFrame:
    """All differences between the campaigns' documents: settings with the recordings' digests, versions, machine, lanes
    and declared hypotheses. Columns: what, a, b."""
    one, other = (_facts(campaign) for campaign in (a, b))
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    rows = [(name, one.get(name, NOT_KNOWN), other.get(name, NOT_KNOWN)) for name in names]
    return pd.DataFrame(rows, columns=["what", "a", "b"])


def _facts(campaign: CampaignTable) -> dict[str, str]:
    document = campaign.document
    parts = {name: getattr(document, name) for name in ("versions", "machine", "settings", "lanes")}
    parts["hypotheses"] = document.hypotheses.get("sha256", NOT_KNOWN)
    return dict(_flat("", parts))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _flat(f"{prefix} {name}".strip(), part)
    else:
        yield prefix, str(value)
