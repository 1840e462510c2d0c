"""The tests of the paper's claims (`analysis.paper.claims`), all within blocks.

A contrast is a weighted sum of the logarithms of a block's times, or of the times themselves, with a weight for each
protocol: +1 and -1 for a pair. The tests are on the mean over sites of the contrast's location
(`analysis.statistics.ratios`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.runs import rows_of
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import MeanRatio, locations, margins, mean_over_sites, of_numbers
from analysis.statistics.samples import Array, Samples, counts, logarithms
from analysis.text import label, listing, pair_label, percent

GAIN, ROUND_TRIPS, CORRELATION = "gain", "round trips", "correlation"
# The unit of a condition → how its value is computed from the mean that is tested.
IN_UNIT: Mapping[str, Callable[..., Any]] = {GAIN: np.expm1, ROUND_TRIPS: np.asarray, CORRELATION: np.tanh}
# A slope or a correlation over sites needs more sites than this.
LEAST_SITES = 7
# The tests of pairs, by their names in `claims.toml`.
PAIR_TESTS = (FASTER, EQUIVALENT, NOT_FASTER) = ("faster", "equivalent", "not_faster")
# The protocols whose blocks show the effects of QUIC and of BBR.
FOUR = ("tcp+", "tcp+bbr", "quic", "quic+bbr")
Weights = Mapping[str, float]
# Takes the mean that is tested; returns p for and p against the claim.
Judge = Callable[[MeanRatio], tuple[float, float]]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and its test, as `claims.toml` declares and explains them.

    `metrics`: a metric, or the ratio of two (`lvc/plt`).
    """

    source: str
    paper: str
    how: str
    test: str
    pairs: tuple[Pair, ...]
    networks: tuple[str, ...]
    metrics: tuple[str, ...]
    any_network: bool = False
    without_loss: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    numbers: str = ""
    each_network: bool = False
    declared: str = ""
    needs: str = ""


@dataclass(frozen=True)
class ClaimInputs:
    """The data on which the claims are tested.

    `confirmatory`: the table of that name (`analysis.statistics.confirmatory`); `rtt_ms`: network → round-trip time;
    `site_facts`: site → bytes, requests and servers, where known.
    """

    samples: Samples
    hypotheses: Hypotheses
    confirmatory: pd.DataFrame
    rtt_ms: Mapping[str, float]
    site_facts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Condition:
    """A number that a claim rests on, with its interval, and its p values for and against the claim.

    `unit`: GAIN, ROUND_TRIPS or CORRELATION. `limit`: the threshold for the value, in words. `sites` and `runs`: how
    many the number rests on. `missing`: the data that it needs and the campaign lacks. `decides`: whether the claim
    depends on this number; otherwise the number is only shown. `p_for` and `p_against` are not corrected for the number
    of claims. `family_p`: both p values of a contrast of the declared family, as corrected in the family; else 0.
    """

    subject: str
    unit: str = GAIN
    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    limit: str = ""
    p_for: float = float("nan")
    p_against: float = float("nan")
    family_p: tuple[float, float] = (0.0, 0.0)
    sites: int = 0
    runs: int = 0
    missing: tuple[str, ...] = ()
    decides: bool = True

    def lacks(self, what: str) -> "Condition":
        """This condition without a value, since its number lacks `what`."""
        return replace(self, missing=(f"{what}: {self.subject}",))

    def estimated(self, mean: MeanRatio, confidence: float) -> "Condition":
        """This condition with the value and interval of `mean`, or with the data that it lacks."""
        if np.isnan(mean.centre):
            return self.lacks("a block with all of it")
        if np.isnan(mean.error):
            return self.lacks("two blocks of a site")
        value, low, high = IN_UNIT[self.unit]([mean.centre, *mean.interval(confidence)]).tolist()
        return replace(self, value=value, low=low, high=high)

    def judged(self, p_values: tuple[float, float]) -> "Condition":
        """This condition with the p values for and against the claim, unless its number is missing."""
        return self if self.missing else replace(self, p_for=p_values[0], p_against=p_values[1])


# A test returns the conditions of a claim, which must all hold.
Test = Callable[[ClaimInputs, Claim], list[Condition]]


def compare_pairs(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """A condition for each pair, network and metric. A contrast of the declared family has the p values of its verdict,
    which allow for looks at the data."""
    samples, conditions = inputs.samples, []
    for pair, network, metric in product(claim.pairs, claim.networks, claim.metrics):
        ratio, condition = _contrast(inputs, pair_label(pair.compared, pair.reference), _lag(pair), network, metric)
        if not condition.missing:
            of_pair = margins(samples, pair, inputs.hypotheses, inputs.rtt_ms)
            place = samples.networks.index(network), samples.metrics.index(metric.partition("/")[0])
            margin = float(of_pair[place])
            p_values = float(ratio.difference_p()), float(ratio.equivalence_p(margin))
            family = rows_of(inputs.confirmatory, **pair._asdict(), network=network, metric=metric)
            # A contrast that is not tested yet, before the first look, has no p value, which is no evidence.
            for row in family.fillna({"p": 1.0, "equivalence_p": 1.0}).itertuples():
                p_values = row.p, row.equivalence_p
                corrected = _of_pair(claim.test, ratio, margin, row.p_corrected, row.equivalence_p_corrected)
                condition = replace(condition, family_p=corrected)
            limit = f"{percent(np.expm1(-margin))} to {percent(np.expm1(margin))} counts as no difference"
            condition = replace(condition, limit=limit).judged(_of_pair(claim.test, ratio, margin, *p_values))
        conditions.append(condition)
    return conditions


def _of_pair(
    test: str, ratio: MeanRatio, margin: float, difference_p: float, equivalence_p: float
) -> tuple[float, float]:
    """The p values for and against `test` (of PAIR_TESTS) of a pair, from those of a difference and of equivalence."""
    if test == FASTER:
        # The evidence against this is that `compared` is slower, or that both are equivalent.
        p_for, p_slower = (difference_p, 1.0) if ratio.centre < 0 else (1.0, difference_p)
        return p_for, min(p_slower, equivalence_p)
    if test == EQUIVALENT:
        return equivalence_p, beyond_p(ratio, margin)
    # Not faster by more than the margin.
    p_for = float(ratio.above_p(-margin))
    return p_for, 1 - p_for


def controls_matter_more(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """BBR instead of Cubic changes more than QUIC instead of TCP+, as main effects in blocks of the four protocols.

    Let a be the effect of congestion control and b that of the protocol, each averaged over the other's two levels.
    Then a - b is the log ratio of TCP+BBR to QUIC, and a + b that of QUIC+BBR to TCP+. |a| is larger than |b| if both
    ratios have the same sign, and smaller otherwise; so the test need not know beforehand which is faster.
    """
    limit = "congestion control matters more if TCP+BBR is to QUIC as QUIC+BBR is to TCP+: both faster, or both slower"
    ratios, conditions = [], []
    for pair in (Pair("quic", "tcp+bbr"), Pair("tcp+", "quic+bbr")):
        subject = pair_label(pair.compared, pair.reference)
        ratio, condition = _contrast(inputs, subject, _lag(pair), claim.networks[0], claim.metrics[0], within=FOUR)
        ratios.append(ratio)
        conditions.append(replace(condition, limit=limit))
    if any(condition.missing for condition in conditions):
        return conditions
    below, above = [float(ratio.below_p(0)) for ratio in ratios], [float(ratio.above_p(0)) for ratio in ratios]
    one_sided = min(max(below), max(above)), min(max(below[0], above[1]), max(above[0], below[1]))
    p_for, p_against = (min(1.0, 2 * p) for p in one_sided)
    # Both ratios answer one question, so only one of them decides.
    one, other = (condition.judged((p_for, p_against)) for condition in conditions)
    return [one, replace(other, decides=False)]


def lead_shrinks(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """QUIC's lead is smaller with BBR than with Cubic: the interaction, a contrast of contrasts within blocks."""
    weights = {"quic+bbr": 1.0, "tcp+bbr": -1.0, "quic": -1.0, "tcp+": 1.0}
    subject = "the ratio of QUIC to TCP+ with BBR against that with Cubic"
    ratio, condition = _contrast(inputs, subject, weights, claim.networks[0], claim.metrics[0])
    return [replace(condition, limit="a ratio above 0 is a smaller lead").judged(is_above_0(ratio))]


def lead_per_round_trip(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """The lead is one round trip: it grows with the RTT, one for one.

    Two slopes must be 1. The first is the slope of the lead in ms on the network's RTT, computed for each site over its
    networks and then averaged over sites. The second is the slope of the lead on the RTT over all sites and networks,
    both as shares of the reference's time. The first slope alone would mistake a lead of a fixed percentage for a lead
    in round trips, since pages take longer if the RTT is longer. Both slopes are least squares with an intercept; their
    errors come from the scatter of the sites. Two further numbers are shown: the slope on sites of one server, which
    have one handshake, and the mean lead on each network.
    """
    samples, pair, metric = inputs.samples, claim.pairs[0], claim.metrics[0]
    networks = claim.networks
    if claim.any_network:
        networks = tuple(name for name in samples.networks if inputs.rtt_ms.get(name))
    lead = f"QUIC's lead over TCP+ in {label(metric)}"
    missing = not_measured(inputs, networks=networks, protocols=pair, metrics=[metric], rtts=networks)
    if len(networks) < 2:
        missing += ("a second network",)
    if missing:
        return [Condition(lead, ROUND_TRIPS, missing=missing)]
    over, off = listing([label(name) for name in networks]), inputs.hypotheses.equivalence_round_trips
    limit = f"the handshake makes 1, and {1 - off:g} to {1 + off:g} counts as 1"

    def is_one(mean: MeanRatio) -> tuple[float, float]:
        distance = replace(mean, centre=mean.centre - 1)
        return float(distance.equivalence_p(off)), beyond_p(distance, off)

    rtts, leads, runs = _leads(inputs, pair, networks, metric)
    slopes = _slope(rtts, leads, axis=0)
    has_one_server = [inputs.site_facts.get(site, {}).get("servers") == 1 for site in samples.sites]
    numbers = [(f"{lead} in ms per ms of RTT, over {over}", slopes, runs)]
    if any(has_one_server):
        subject = f"{lead} in ms per ms of RTT, on sites of one server"
        numbers.append((subject, np.where(has_one_server, slopes, np.nan), runs))
    for n, network in enumerate(networks):
        subject = _on("QUIC's mean lead over TCP+ in round trips", network, metric)
        numbers.append((subject, leads[n] / rtts[n], runs[[n]]))
    conditions = [
        over_sites(inputs, Condition(subject, ROUND_TRIPS, limit=limit, decides=n == 0), is_one, of_sites, values)
        for n, (subject, values, of_sites) in enumerate(numbers)
    ]
    logs = replace(samples, values=logarithms(samples.values))
    shares = -np.expm1(locations(block_values(logs, _lag(pair), networks, metric))[0])
    times = np.exp(locations(block_values(logs, {pair.reference: 1.0}, networks, metric))[0])
    last = Condition(f"{lead} per RTT, both as shares of TCP+'s time, over {over}", ROUND_TRIPS, limit=limit)
    slope = over_sites(inputs, last, is_one, runs, rtts / times, shares, statistic=_slope, more_than=LEAST_SITES)
    return [*conditions, slope]


def lead_beyond_handshake(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """On lossy networks the lead is more round trips than on those `without_loss`; the evidence against this is fewer.

    The handshakes of a site's servers take the same number of round trips on every network, so any further lead has
    another cause. The difference is computed for each site and averaged over sites; its error comes from their scatter.
    """
    pair, metric, conditions = claim.pairs[0], claim.metrics[0], []
    others = listing([label(name) for name in claim.without_loss])
    for network in (name for name in claim.networks if name not in claim.without_loss):
        places = f"on {label(network)} less that on {others} in {label(metric)}"
        subject = f"QUIC's lead over TCP+ in round trips {places}"
        condition = Condition(subject, ROUND_TRIPS, limit="above 0 is more than handshakes")
        networks = [network, *claim.without_loss]
        missing = not_measured(inputs, networks=networks, protocols=pair, metrics=[metric], rtts=networks)
        condition = replace(condition, missing=missing)
        if not missing:
            rtts, leads, runs = _leads(inputs, pair, networks, metric)
            round_trips = leads / rtts
            condition = over_sites(inputs, condition, is_above_0, runs, round_trips[0] - round_trips[1:].mean(axis=0))
        conditions.append(condition)
    return conditions


def lead_grows(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """The lead is longer in the second metric than in the first; the evidence against this is that it is shorter. The
    lead as a share is shown, too: a constant share of longer times is a longer lead."""
    pair, network, metrics = claim.pairs[0], claim.networks[0], claim.metrics
    earlier, later = map(label, metrics)
    subject = f"the lead of {pair_label(pair.compared, pair.reference)} in round trips on {label(network)} in {later}"
    condition = Condition(f"{subject} less that in {earlier}", ROUND_TRIPS, limit="above 0 it grows")
    missing = not_measured(inputs, networks=[network], protocols=pair, metrics=metrics, rtts=[network])
    if missing:
        return [replace(condition, missing=missing)]
    (rtts, first, runs), (_, second, _) = (_leads(inputs, pair, [network], metric) for metric in metrics)
    share = _contrast(inputs, pair_label(*reversed(pair)), _lag(pair), network, "/".join(reversed(metrics)))[1]
    return [
        over_sites(inputs, condition, is_above_0, runs, ((second - first) / rtts)[0]),
        replace(share, limit="below 0 the lead grows as a share", decides=False),
    ]


def not_tested(_: ClaimInputs, claim: Claim) -> list[Condition]:
    """No campaign has the data that the claim needs."""
    return [Condition(claim.how, missing=(claim.needs,))]


def is_above_0(mean: MeanRatio) -> tuple[float, float]:
    """`mean` is above 0; the evidence against this is a mean below 0. Both p values are two-sided."""
    return min(1.0, 2 * float(mean.above_p(0))), min(1.0, 2 * float(mean.below_p(0)))


def beyond_p(ratio: MeanRatio, margin: float) -> float:
    """The p value of the hypothesis that the mean is at most `margin` away from 0; the opposite of
    `MeanRatio.equivalence_p`."""
    distance = replace(ratio, centre=np.abs(ratio.centre))
    # A mean exactly at the margin may be estimated beyond it in either direction.
    return min(1.0, float(distance.above_p(margin) + distance.above_p(-margin)))


def over_sites(
    inputs: ClaimInputs,
    condition: Condition,
    judge: Judge,
    runs: NDArray[np.int64],
    *values: Array,
    statistic: Callable[..., Any] = np.mean,
    more_than: int = 1,
) -> Condition:
    """`condition` with the `statistic` of `values` (their last axis: sites) over the sites that have all of these, if
    there are `more_than` this many; `runs`: networks x sites."""
    is_known = np.isfinite(np.vstack(values)).all(axis=0)
    sites = int(is_known.sum())
    condition = replace(condition, sites=sites, runs=int(runs[:, is_known].sum()))
    if sites <= more_than:
        return condition.lacks(f"{'two' if more_than == 1 else f'more than {more_than}'} sites with all of it")
    mean = jackknife(statistic, *(of_sites[..., is_known] for of_sites in values))
    return condition.estimated(mean, inputs.hypotheses.confidence).judged(judge(mean))


def jackknife(statistic: Callable[..., Any], *values: Array) -> MeanRatio:
    """The `statistic` of `values` (their last axis: sites), with its error from leaving out one site after the
    other."""
    sites = values[0].shape[-1]
    without = [statistic(*(np.delete(of_sites, site, axis=-1) for of_sites in values)) for site in range(sites)]
    return of_numbers(float(statistic(*values)), float(np.sqrt((sites - 1) * np.var(without))), sites)


def block_values(
    times: Samples, weights: Weights, networks: Iterable[str], metric: str, within: Iterable[str] = ()
) -> Array:
    """The weighted sum of the `times` of each block: networks x sites x blocks; NaN unless the block has all of
    `weights` and `within`."""
    cells = times.on(list(networks)).values[:, :, :, times.metrics.index(metric)]
    of_protocol = {name: cells[:, :, times.protocols.index(name)] for name in (*weights, *within)}
    total = sum(weight * of_protocol[name] for name, weight in weights.items())
    return np.where(np.isfinite(list(of_protocol.values())).all(axis=0), total, np.nan)


def not_measured(inputs: ClaimInputs, **wanted: Iterable[str]) -> tuple[str, ...]:
    """Those of the `wanted` networks, protocols, metrics and RTTs (by the network) that a campaign lacks, in words."""
    samples = inputs.samples
    present: dict[str, tuple[str, Iterable[str]]] = {
        "networks": ("network", samples.networks),
        "protocols": ("protocol", samples.protocols),
        "metrics": ("metric", samples.metrics),
        "rtts": ("an RTT of", [name for name, rtt_ms in inputs.rtt_ms.items() if rtt_ms]),
    }
    every = ((*present[kind], part) for kind, names in wanted.items() for name in names for part in name.split("/"))
    return tuple(f"{word} {label(name)}" for word, known, name in every if name not in known)


def _on(subject: str, network: str, metric: str) -> str:
    return f"{subject} on {label(network)} in {'/'.join(map(label, metric.split('/')))}"


def _lag(pair: Pair) -> Weights:
    """The contrast that is above 0 if `compared` is slower."""
    return {pair.compared: 1.0, pair.reference: -1.0}


def _contrast(
    inputs: ClaimInputs, subject: str, weights: Weights, network: str, metric: str, within: Sequence[str] = ()
) -> tuple[MeanRatio, Condition]:
    """The mean over sites of a contrast of logarithms, and its condition without p values."""
    condition = Condition(_on(subject, network, metric))
    protocols = dict.fromkeys((*weights, *within))
    if missing := not_measured(inputs, networks=[network], protocols=protocols, metrics=[metric]):
        return of_numbers(np.nan, np.nan, 1), replace(condition, missing=missing)
    logs = replace(inputs.samples, values=logarithms(inputs.samples.values))
    parts = [block_values(logs, weights, [network], part, within)[0] for part in metric.split("/")]
    values = parts[0] - sum(parts[1:])
    blocks, ratio = counts(values), mean_over_sites(values)
    condition = replace(condition, sites=int((blocks > 0).sum()), runs=int(blocks.sum()) * len(protocols))
    return ratio, condition.estimated(ratio, inputs.hypotheses.confidence)


def _leads(
    inputs: ClaimInputs, pair: Pair, networks: Sequence[str], metric: str
) -> tuple[Array, Array, NDArray[np.int64]]:
    """RTTs in ms (networks x 1); how many ms `compared` is ahead within blocks, and the runs of both (networks x
    sites)."""
    lags = block_values(inputs.samples, _lag(pair), networks, metric)
    return np.array([[inputs.rtt_ms[name]] for name in networks]), -locations(lags)[0], 2 * counts(lags)


def _slope(x: Array, y: Array, axis: int | None = None) -> Array:
    """The least-squares slope of `y` on `x`, where both are known, along `axis` (unless given, over all values); NaN if
    `x` does not vary."""
    is_known = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):
        mean = np.where(is_known, x, 0).sum(axis=axis, keepdims=True) / is_known.sum(axis=axis, keepdims=True)
        distances = np.where(is_known, x - mean, 0)
        return np.asarray(np.nansum(distances * y, axis=axis) / (distances**2).sum(axis=axis))
