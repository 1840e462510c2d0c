"""Compares two campaigns, A with B: load times before and after a browser, a kernel or a server changed.

The runs of A and B lie in different blocks, so nothing is paired: the state of the machine does not cancel, and a
change from A to B includes everything that changed between them. Two checks bound the machine's part. The processor's
canary shows how much slower or faster the machine was, with an interval; the machine alone may explain a change of the
times within that interval. And slowness that affects two protocols alike cancels in their ratio within blocks, so the
change of that ratio is shown, too.
Changes are shares: 0.1 is 10 % more time in B than in A; negative means that B is faster.

Three questions are answered, since a release may fail at any one of them:

- Typical load: does the location of the times' logarithms, over all sites or at one, grow by more than the threshold?
  A location is built to ignore what happens to one load in twelve.
- Slow loads: does a larger share of loads take more than SLOW_FACTOR times as long as the typical load of their site?
  The test counts loads, since with so few slow loads the error of a mean is known too badly for a test at 1 %, and 15
  runs of a site have no 95th percentile. A load that takes 1.9 times as long is not slow; only the means in the tables
  (`mean_change`) show it.
- Lost loads: does a larger share of loads fail, never end, or show another page (`analysis.losses`)?

Slow and lost loads have no threshold: B is worse if their share is shown to be larger than in A.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from analysis.attempts import SETTING, tried_in
from analysis.runs import CANARY_PREFIX, CampaignTable, plain_texts
from analysis.samples import missing_times, names_in_order, samples_of
from analysis.statistics.contrast_table import (
    CHANGE,
    TESTS,
    contrast_columns,
    corrected,
    false_discovery_rate,
    holm,
    judged,
)
from analysis.statistics.gain import gain, mean, median
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
from dataset.table import WITHDRAWN

# The canary that bounds the machine's part in a change. The canary of pages changes with the browser, too.
PROCESSOR_CANARY = "canary_cpu_ms"
STATISTICS = [*CHANGE, "p", "p_corrected", "equivalence_p_corrected", "margin", "verdict"]
WORSE = ["worse_p_corrected", "worse", "beyond_canary"]
OVER_SITES = ["network", "protocol", "metric", "sites", *STATISTICS, *WORSE, "within", "mean_change"]
SITES = ["network", "site", "protocol", "metric", "runs_a", "runs_b", "mean_a", "mean_b", *STATISTICS, *WORSE]
CONTRASTS = ["reference", "compared", "network", "metric", "sites", *CHANGE, "p", "p_corrected"]
CANARIES = ["canary", "times_a", "times_b", "mean_a", "mean_b", *CHANGE]
SHARES = ["kind", "network", "protocol", "sites", "loads_a", "loads_b", "found_a", "found_b", *CHANGE]
SHARES += ["worse_p", "worse_p_corrected", "worse", "within"]
# The kinds of loads whose shares are compared.
SLOW, LOST = "slow", "lost"
# A load is slow if it takes more than this many times as long as the typical load of its site.
SLOW_FACTOR = 2.0
# The numbers of loads found and of all loads, along the first axis; the other axes are networks x sites x protocols.
Counts = NDArray[np.int64]
NOT_KNOWN = "-"


@dataclass(frozen=True)
class CampaignChange:
    """The comparison of B with A.

    `worse_than`: how much slower a typical load of B may be, as a share; `allowance`: how much slower still according
    to the canary, None without one. `over_sites`, `sites`, `shares`, `contrasts`, `canaries`: tables with the columns
    of this module; in `over_sites`, within means that B is shown to be slower by less than what is allowed, and
    mean_change is the mean over sites of the change of the arithmetic mean. `differences`: those between the campaigns'
    documents (columns what, a, b). `unmatched`: the parts that only one of the campaigns has. `missing`: by campaign, A
    and B, where many loads lack a time (`analysis.samples.missing_times`). `is_whole`: whether `over_sites` has a row
    for all that A has, and no time is left out since too many loads lack it.
    """

    a: CampaignTable
    b: CampaignTable
    hypotheses: Hypotheses
    worse_than: float
    allowance: float | None
    over_sites: pd.DataFrame
    sites: pd.DataFrame
    shares: pd.DataFrame
    contrasts: pd.DataFrame
    canaries: pd.DataFrame
    differences: pd.DataFrame
    unmatched: tuple[str, ...]
    missing: Mapping[str, pd.DataFrame]
    is_whole: bool

    @property
    def is_worse(self) -> bool:
        """Whether B is shown to be worse than A in any row of the tables."""
        return any(bool(table["worse"].any()) for table in (self.over_sites, self.sites, self.shares))

    @property
    def is_decided(self) -> bool:
        """Whether each contrast over all sites, and each share, is shown to be worse or within the threshold.

        If one of them truly is beyond the threshold, the probability that all are shown to be within it is at most the
        declared level, without a correction (an intersection-union test; Berger 1982, Technometrics 24).
        """
        return self.is_whole and all(
            bool((table["worse"] | table["within"]).all()) for table in (self.over_sites, self.shares)
        )

    @property
    def false_alarm_share(self) -> float:
        """The largest share of comparisons in which B counts as worse although nothing changed between the campaigns.

        Typical loads have the declared level: half of it over all sites (Holm's method), half of it at single sites
        (Benjamini and Hochberg's method holds it if nothing differs). Slow and lost loads are one family at the
        declared level (exact tests, Holm's method). The share stays below this bound if runs are independent.
        """
        return 2 * self.hypotheses.significant_p


@plain_texts()
def compare(a: CampaignTable, b: CampaignTable, hypotheses: Hypotheses, worse_than: float) -> CampaignChange:
    """Compare campaign `b` with `a`, using the thresholds and the family's metrics of `hypotheses`.

    B is worse if its typical load is shown to be slower than A's by more than `worse_than` (a share) plus the canary's
    allowance, or if a larger share of its loads is shown to be slow or lost. Raises EyelevelError if the campaigns have
    nothing to compare.
    """
    tried = judged_loads(a), judged_loads(b)
    metrics = tuple(name for name in hypotheses.family_metrics if name in a.metrics and name in b.metrics)
    orders = {"network": a.networks, "site": (), "protocol": a.protocols}
    # Those of which both campaigns have loads, even if all of these were lost.
    common = {key: set(tried[0][key]) & set(tried[1][key]) for key in SETTING}
    names = {f"{key}s": names_in_order(common[key], order) for key, order in orders.items()} | {"metrics": metrics}
    if absent := [axis for axis, common in names.items() if not common]:
        raise EyelevelError(f"the campaigns cannot be compared: they have no {absent[0]} in common")
    canaries = _canaries(a, b, hypotheses.confidence)
    bounds = _canary_bounds(canaries)
    slower = float(np.log1p(worse_than)) + (bounds[1] if bounds else 0.0)
    first, second = (aligned(samples_of(campaign), names) for campaign in (a, b))
    slow = slow_loads(first.values, second.values, float(np.exp(slower)))
    lost = lost_loads(tried[0], names), lost_loads(tried[1], names)
    shares = share_changes({SLOW: slow, LOST: lost}, first.networks, first.protocols, hypotheses, worse_than)
    if shares.empty:
        raise EyelevelError(
            "the campaigns cannot be compared: no site was loaded on one network over one protocol in both"
        )
    over_sites, sites = _changes(first, second, hypotheses, a.rtt_ms, slower, bounds)
    missing = {"A": missing_times(a), "B": missing_times(b)}
    has_all_of_a = len(over_sites) == int((counts(first.values) > 0).any(axis=1).sum())
    return CampaignChange(
        a,
        b,
        hypotheses,
        worse_than,
        float(np.expm1(bounds[1])) if bounds else None,
        over_sites,
        sites,
        shares,
        _contrasts(first, second, hypotheses),
        canaries,
        differences(a, b),
        tuple(_unmatched(*tried)),
        missing,
        has_all_of_a and not any(table["is_left_out"].any() for table in missing.values()),
    )


def judged_loads(campaign: CampaignTable) -> pd.DataFrame:
    """The runs that say something about the page (`analysis.attempts.tried_runs`), and whether each was lost."""
    tried = tried_in(campaign)
    return tried[tried["judged"] & (tried["gate"] != WITHDRAWN)]


def aligned(samples: Samples, names: Mapping[str, tuple[str, ...]]) -> Samples:
    """`samples` with these `names` along its axes; NaN where it has no values."""
    places = [pd.Index(getattr(samples, axis)).get_indexer(list(common)) for axis, common in names.items()]
    # A name that is missing has the place -1, where the padding is.
    padded = np.pad(samples.values, [(0, 1)] * samples.values.ndim, constant_values=np.nan)
    return replace(samples, values=padded[np.ix_(*places, range(padded.shape[-1]))], rounds=(), **names)


def _unmatched(*tried: pd.DataFrame) -> Iterator[str]:
    for (name, one, other), key in product((("A", *tried), ("B", *tried[::-1])), SETTING):
        if only := sorted(set(one[key]) - set(other[key])):
            yield f"{key}s of {name} alone, which are not compared: {', '.join(only)}"


def slow_loads(a: Array, b: Array, allowed: float) -> tuple[Counts, Counts]:
    """The numbers of slow loads of each campaign.

    `a` and `b` are times: networks x sites x protocols x metrics x blocks. `allowed` is the factor by which all loads
    of B may be slower. B's times are divided by it, and then both campaigns' loads of a site over a protocol are
    treated alike: a load is slow if it takes more than SLOW_FACTOR times the median of them all in any metric. So the
    test of these numbers is exact if B is slower by this very factor, and a smaller factor makes no more alarms: B's
    slow loads are no more, and A's no fewer.
    """
    times = np.concatenate([a, b / allowed], axis=-1)
    with np.errstate(invalid="ignore"):
        is_slow = (times > SLOW_FACTOR * median(times)[..., None]).any(axis=-2)
    loads = np.stack([is_slow, np.isfinite(times).any(axis=-2)])
    of_a, of_b = np.split(loads, [a.shape[-1]], axis=-1)
    return np.asarray(of_a.sum(axis=-1)), np.asarray(of_b.sum(axis=-1))


def lost_loads(tried: pd.DataFrame, names: Mapping[str, tuple[str, ...]]) -> Counts:
    """The numbers of lost loads, and of all loads, among those of `tried` (`judged_loads`); the last axes are the
    networks, sites and protocols of `names`."""
    axes = [names["networks"], names["sites"], names["protocols"]]
    numbers = tried.groupby(SETTING)["lost"].agg(["sum", "size"])
    numbers = numbers.reindex(pd.MultiIndex.from_product(axes, names=SETTING), fill_value=0)
    return np.asarray(numbers.to_numpy(dtype=np.int64).T.reshape(2, *map(len, axes)))


def more_often(a: Counts, b: Counts) -> tuple[float, float]:
    """The exact one-sided p value of no larger share in B than in A, and the least p value that could have come out.

    `a` and `b`: the numbers found and all loads of each campaign, 2 x sites. The number of loads found at each site,
    in A and B together, is taken as given. If A and B were alike, B's part of it would have a hypergeometric
    distribution; the statistic is the sum over sites (Fisher's exact test in strata, the exact form of Mantel and
    Haenszel's). So sites may differ, and either campaign may have more runs of some sites.
    """
    # Sites at which nothing was found add nothing.
    total = (a + b)[:, a[0] + b[0] > 0]
    of_b = b[1, a[0] + b[0] > 0]
    parts = [
        stats.hypergeom.pmf(np.arange(min(hits, loads) + 1), every, hits, loads)
        for (hits, every), loads in zip(total.T, of_b, strict=True)
    ]
    probabilities = reduce(np.convolve, parts, np.ones(1))
    return min(1.0, float(probabilities[b[0].sum() :].sum())), float(probabilities[-1])


def share_changes(
    by_kind: Mapping[str, tuple[Counts, Counts]],
    networks: Sequence[str],
    protocols: Sequence[str],
    hypotheses: Hypotheses,
    worse_than: float,
) -> pd.DataFrame:
    """The changes of the shares of loads by kind, network and protocol: the columns of SHARES.

    `by_kind`: kind → the numbers of A and of B. Only sites with loads in both take part. The interval is Newcombe's
    (1998, Statistics in Medicine 17, method 10), of all sites. within: shown to grow by less than `worse_than`.

    All rows are one family. A test that no outcome could have made significant does not count as a test, and has no
    corrected p value: so protocols without slow or lost loads cost the others nothing. That depends alone on the number
    of loads found in A and B together, which the tests take as given (Tarone 1990, Biometrics 46).
    """
    rows = []
    for (kind, of_kind), (n, network), (p, protocol) in product(
        by_kind.items(), enumerate(networks), enumerate(protocols)
    ):
        a, b = (numbers[:, n, :, p] for numbers in of_kind)
        is_both = (a[1] > 0) & (b[1] > 0)
        if is_both.any():
            a, b = a[:, is_both], b[:, is_both]
            (found_a, loads_a), (found_b, loads_b) = a.sum(axis=1), b.sum(axis=1)
            row = [kind, network, protocol, int(is_both.sum()), loads_a, loads_b, found_a, found_b]
            rows.append([*row, *more_often(a, b)])
    table = pd.DataFrame(rows, columns=[*SHARES[:8], "worse_p", "least_p"])
    numbers = [table[name].to_numpy(dtype=float) for name in ("found_b", "loads_b", "found_a", "loads_a")]
    (low, high), (_, most) = (
        confint_proportions_2indep(*numbers, method="newcomb", alpha=alpha)
        for alpha in (1 - hypotheses.confidence, 2 * hypotheses.significant_p)
    )
    can_be_shown = table["least_p"] < hypotheses.significant_p
    worse_p = holm(table["worse_p"].where(can_be_shown).to_numpy(dtype=float))
    return table.assign(
        change=numbers[0] / numbers[1] - numbers[2] / numbers[3],
        low=low,
        high=high,
        worse_p_corrected=worse_p,
        worse=worse_p < hypotheses.significant_p,
        within=most < worse_than,
    )[SHARES]


def _change(a: Array, b: Array) -> MeanRatio:
    """The change from `a` to `b` of the mean over sites; both have the axes … x sites x blocks."""
    return independent_difference(mean_over_sites(a), mean_over_sites(b))


def _both(a: Array, b: Array) -> tuple[Array, Array]:
    """`a` and `b`, with NaN wherever only one of them has runs in any block. The last axis is the blocks."""
    has_both = ((counts(a) > 0) & (counts(b) > 0))[..., None]
    return np.where(has_both, a, np.nan), np.where(has_both, b, np.nan)


def _changes(
    a: Samples,
    b: Samples,
    hypotheses: Hypotheses,
    rtt_ms: Mapping[str, float],
    slower: float,
    canary: tuple[float, float] | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table over all sites and the table of single sites. `slower`: how much slower B may be; `canary`: the range
    in which the canary lets times move, None without one (all log ratios)."""

    def statistics(change: MeanRatio, margin: Array) -> dict[str, NDArray[Any]]:
        low, high = change.interval(hypotheses.confidence)
        # Without a canary nothing bounds the machine's part, so it is unknown whether a change exceeds it.
        beyond = (low > canary[1]) | (high < canary[0]) if canary else np.full(low.shape, None)
        columns = contrast_columns(change, hypotheses.confidence, CHANGE, margin)
        within = change.below_p(slower) < hypotheses.significant_p
        return {**columns, "worse_p": change.above_p(slower), "beyond_canary": beyond, "within": within}

    over_sites, sites = [], []
    for protocol in a.protocols:
        pair, times = Pair(protocol, protocol), (a.of(protocol), b.of(protocol))
        logs = _both(*map(logarithms, times))
        columns = statistics(_change(*map(by_metric, logs)), margins(a, pair, hypotheses, rtt_ms))
        columns |= {"sites": (counts(logs[0]) > 0).sum(axis=1), "mean_change": mean(by_metric(gain(*times)))}
        over_sites.append(frame({"protocol": protocol, **columns}, network=a.networks, metric=a.metrics))
        alone = (part[..., None, :] for part in logs)
        columns = statistics(_change(*alone), site_margins(a, pair, hypotheses, rtt_ms))
        for name, log, some in zip("ab", logs, times, strict=True):
            columns |= {f"runs_{name}": counts(log), f"mean_{name}": mean(some)}
        sites.append(a.frame({"protocol": protocol, **columns}))
    over_table, site_table = pd.concat(over_sites), pd.concat(sites)
    return (
        _judged(over_table[over_table["sites"] > 0], holm, hypotheses.significant_p)[OVER_SITES],
        _judged(site_table[site_table["runs_a"] > 0], false_discovery_rate, hypotheses.significant_p)[SITES],
    )


def _judged(table: pd.DataFrame, correct: Callable[[Array], Array], significant_p: float) -> pd.DataFrame:
    """`table` with corrected p values, the verdict, and whether each row is worse."""
    table = judged(table.reset_index(drop=True), correct, significant_p, CHANGE[0], (*TESTS, "worse_p"))
    # Both tables of typical loads share the level (`CampaignChange.false_alarm_share`).
    return table.assign(worse=table["worse_p_corrected"] < significant_p / 2)


def _contrasts(a: Samples, b: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """The change from A to B in the ratio of two protocols within blocks."""
    tables = [pd.DataFrame(columns=CONTRASTS)]
    for pair in a.measured(hypotheses.comparisons):
        ratios = [by_metric(part) for part in _both(block_ratios(a, pair), block_ratios(b, pair))]
        columns = contrast_columns(_change(*ratios), hypotheses.confidence, CHANGE)
        columns |= {**pair._asdict(), "sites": (counts(ratios[0]) > 0).sum(axis=-1)}
        tables.append(frame(columns, network=a.networks, metric=a.metrics))
    table = pd.concat(tables[1:] or tables)
    return corrected(table[table["sites"] > 0].reset_index(drop=True), holm, ("p",))[CONTRASTS]


def _canaries(a: CampaignTable, b: CampaignTable, confidence: float) -> pd.DataFrame:
    """How much slower each canary of the machine was in B. A canary that several blocks share counts once."""
    rows = []
    for name in (name for name in a.runs if name.startswith(CANARY_PREFIX) and name in b.runs):
        times = [runs[name].dropna().unique() for runs in (a.runs, b.runs)]
        if all(map(len, times)):
            change = _change(*(logarithms(values)[None] for values in times))
            columns = contrast_columns(change, confidence, CHANGE)
            means = (values.mean() for values in times)
            rows.append([name, *map(len, times), *means, *(float(columns[one]) for one in CHANGE)])
    return pd.DataFrame(rows, columns=CANARIES)


def _canary_bounds(canaries: pd.DataFrame) -> tuple[float, float] | None:
    """The range in which the processor's canary lets times move, as log ratios: its interval, extended to contain 0.
    None if the canary has no interval."""
    rows = canaries[(canaries["canary"] == PROCESSOR_CANARY) & canaries["low"].notna()]
    if rows.empty:
        return None
    low, high = np.log1p(rows.iloc[0][["low", "high"]].to_numpy(dtype=float))
    return min(0.0, float(low)), max(0.0, float(high))


def differences(a: CampaignTable, b: CampaignTable) -> pd.DataFrame:
    """All differences between the campaigns' documents, except when they were made: settings with the recordings'
    digests, versions, machine, lanes and declared hypotheses. Columns: what, a, b."""
    table = pd.concat([_facts(a), _facts(b)], axis=1, keys=["a", "b"]).fillna(NOT_KNOWN)
    return table[table["a"] != table["b"]].rename_axis("what").reset_index()


def _facts(campaign: CampaignTable) -> "pd.Series[str]":
    document = campaign.document
    parts = {name: getattr(document, name) for name in ("versions", "machine", "lanes")}
    parts |= {"settings": asdict(document.settings), "hypotheses": document.hypotheses.get("sha256", NOT_KNOWN)}
    return pd.json_normalize(parts, sep=" ").iloc[0].map(str)
