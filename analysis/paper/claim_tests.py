"""The tests of the paper's claims (`analysis.paper.claims`), all within blocks.

A contrast is a weighted sum of the logarithms of a block's times, or of the times themselves, with a weight for each
protocol: +1 and -1 for a pair. The tests are on the mean over sites of the contrast's location
(`analysis.statistics.ratios`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.runs import rows_of
from analysis.statistics.contrast_table import contrast_columns
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import MeanRatio, locations, margins, mean_over_sites, of_numbers
from analysis.statistics.samples import Array, Samples, counts, logarithms
from analysis.text import label, listing, pair_label, percent

GAIN, ROUND_TRIPS, CORRELATION = "gain", "round trips", "correlation"
VALUE = ("value", "low", "high")
Weights = Mapping[str, float]
_NOTHING = MeanRatio(np.array(np.nan), np.array(np.nan), np.array(np.nan), np.array(0))


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


# A slope or a correlation over sites needs more sites than this.
LEAST_SITES = 7
# A test returns the conditions of a claim, which must all hold.
Test = Callable[[ClaimInputs], list[Condition]]


# Takes a pair's ratio, the margin, and the p values of a difference and of equivalence; returns p for and p against the
# claim.
_Judge = Callable[[MeanRatio, float, float, float], tuple[float, float]]


def faster(
    inputs: ClaimInputs, *, pairs: Sequence[Pair], networks: Sequence[str], metrics: Sequence[str]
) -> list[Condition]:
    """`compared` is faster; the evidence against this is that it is slower, or that both are equivalent."""

    def judge(ratio: MeanRatio, _: float, difference_p: float, equivalence_p: float) -> tuple[float, float]:
        p_for, p_slower = (difference_p, 1.0) if ratio.centre < 0 else (1.0, difference_p)
        return p_for, min(p_slower, equivalence_p)

    return _pair_conditions(inputs, pairs, networks, metrics, judge)


def equivalent(
    inputs: ClaimInputs, *, pairs: Sequence[Pair], networks: Sequence[str], metrics: Sequence[str]
) -> list[Condition]:
    """There is no difference that matters (two one-sided tests); the evidence against this is a difference beyond the
    margin."""

    def judge(ratio: MeanRatio, margin: float, _: float, equivalence_p: float) -> tuple[float, float]:
        return equivalence_p, beyond_p(ratio, margin)

    return _pair_conditions(inputs, pairs, networks, metrics, judge)


def not_faster(
    inputs: ClaimInputs, *, pairs: Sequence[Pair], networks: Sequence[str], metrics: Sequence[str]
) -> list[Condition]:
    """`compared` is not faster by more than the margin; the evidence against this is that it is."""

    def judge(ratio: MeanRatio, margin: float, *_: float) -> tuple[float, float]:
        p_for = float(ratio.above_p(-margin))
        return p_for, 1 - p_for

    return _pair_conditions(inputs, pairs, networks, metrics, judge)


def controls_matter_more(inputs: ClaimInputs, *, network: str, metric: str) -> list[Condition]:
    """BBR instead of Cubic changes more than QUIC instead of TCP+, as main effects in blocks of the four protocols.

    Let a be the effect of congestion control and b that of the protocol, each averaged over the other's two levels.
    Then a - b is the log ratio of TCP+BBR to QUIC, and a + b that of QUIC+BBR to TCP+. |a| is larger than |b| if both
    ratios have the same sign, and smaller otherwise; so the test need not know beforehand which is faster.
    """
    four = ("tcp+", "tcp+bbr", "quic", "quic+bbr")
    limit = "congestion control matters more if TCP+BBR is to QUIC as QUIC+BBR is to TCP+: both faster, or both slower"
    ratios, conditions = [], []
    for compared, reference in (("tcp+bbr", "quic"), ("quic+bbr", "tcp+")):
        subject = within_network(pair_label(compared, reference), network, metric)
        ratio, condition = _contrast(inputs, {compared: 1.0, reference: -1.0}, subject, network, metric, within=four)
        ratios.append(ratio)
        conditions.append(replace(condition, limit=limit))
    if any(condition.missing for condition in conditions):
        return conditions
    below, above = [float(ratio.below_p(0)) for ratio in ratios], [float(ratio.above_p(0)) for ratio in ratios]
    p_for = two_sided(min(max(below), max(above)))
    p_against = two_sided(min(max(below[0], above[1]), max(above[0], below[1])))
    # Both ratios answer one question, so only one of them decides.
    one, other = (replace(condition, p_for=p_for, p_against=p_against) for condition in conditions)
    return [one, replace(other, decides=False)]


def lead_shrinks(inputs: ClaimInputs, *, network: str, metric: str) -> list[Condition]:
    """QUIC's lead is smaller with BBR than with Cubic: the interaction, a contrast of contrasts within blocks."""
    weights = {"quic+bbr": 1.0, "tcp+bbr": -1.0, "quic": -1.0, "tcp+": 1.0}
    subject = within_network("the ratio of QUIC to TCP+ with BBR against that with Cubic", network, metric)
    ratio, condition = _contrast(inputs, weights, subject, network, metric)
    if condition.missing:
        return [condition]
    return [replace(_above_0(ratio, condition), limit="a ratio above 0 is a smaller lead")]


def lead_per_round_trip(
    inputs: ClaimInputs, *, pair: Pair, metric: str, networks: Sequence[str] = ()
) -> list[Condition]:
    """The lead is one round trip: it grows with the RTT, one for one.

    Two slopes must be 1. The first is the slope of the lead in ms on the network's RTT, computed for each site over its
    networks and then averaged over sites. The second is the slope of the lead on the RTT over all sites and networks,
    both as shares of the reference's time. The first slope alone would mistake a lead of a fixed percentage for a lead
    in round trips, since pages take longer if the RTT is longer. Both slopes are least squares with an intercept; their
    errors come from the scatter of the sites.
    `networks`: the networks to use; unless given, all that have an RTT. Two further numbers are shown: the slope on
    sites of one server, which have one handshake, and the mean lead on each network.
    """
    wanted = list(networks or (name for name in inputs.samples.networks if inputs.rtt_ms.get(name)))
    lead = f"QUIC's lead over TCP+ in {label(metric)}"
    missing = _leads_missing(inputs, pair, wanted, metric) + (() if len(wanted) > 1 else ("a second network",))
    if missing:
        return [Condition(lead, ROUND_TRIPS, missing=missing)]
    leads = _leads(inputs.samples, pair, wanted, metric)
    rtts = np.array([inputs.rtt_ms[network] for network in wanted])[:, None]
    slopes = _slopes(rtts, leads)
    one_server = np.array([inputs.site_facts.get(site, {}).get("servers") == 1 for site in inputs.samples.sites])
    over, runs = listing([label(name) for name in wanted]), _runs_of_pair(inputs.samples, pair, wanted, metric)
    means = {f"{lead} in ms per ms of RTT, over {over}": (slopes, runs)}
    if one_server.any():
        means[f"{lead} in ms per ms of RTT, on sites of one server"] = slopes[one_server], runs[:, one_server]
    for network, of_sites, behind in zip(wanted, leads / rtts, runs, strict=True):
        means[within_network("QUIC's mean lead over TCP+ in round trips", network, metric)] = of_sites, behind[None]
    conditions = [
        _one_round_trip(
            *_over_sites(values, of_values, Condition(name, ROUND_TRIPS, decides=place == 0), inputs), inputs
        )
        for place, (name, (values, of_values)) in enumerate(means.items())
    ]
    shares = Condition(f"{lead} per RTT, both as shares of TCP+'s time, over {over}", ROUND_TRIPS)
    return [*conditions, _one_round_trip(*_slope_of_shares(inputs, pair, wanted, metric, rtts, shares), inputs)]


def lead_beyond_handshake(
    inputs: ClaimInputs, *, pair: Pair, networks: Sequence[str], without_loss: Sequence[str], metric: str
) -> list[Condition]:
    """On lossy `networks` the lead is more round trips than on those `without_loss`; the evidence against this is
    fewer.

    The handshakes of a site's servers take the same number of round trips on every network, so any further lead has
    another cause. The difference is computed for each site and averaged over sites; its error comes from the scatter of
    the sites.
    """
    conditions = []
    for network in networks:
        places = f"behind {label(network)} less that behind {listing([label(name) for name in without_loss])}"
        subject = f"QUIC's lead over TCP+ in round trips {places} in {label(metric)}"
        condition = Condition(subject, ROUND_TRIPS, limit="above 0 is more than handshakes")
        wanted = [network, *without_loss]
        if missing := _leads_missing(inputs, pair, wanted, metric):
            conditions.append(replace(condition, missing=missing))
            continue
        rtts = np.array([inputs.rtt_ms[name] for name in wanted])[:, None]
        leads = _leads(inputs.samples, pair, wanted, metric) / rtts
        runs = _runs_of_pair(inputs.samples, pair, wanted, metric)
        mean, condition = _over_sites(leads[0] - leads[1:].mean(axis=0), runs, condition, inputs)
        conditions.append(condition if condition.missing else _above_0(mean, condition))
    return conditions


def beyond_p(ratio: MeanRatio, margin: float) -> float:
    """The p value of the hypothesis that the mean is at most `margin` away from 0; the opposite of
    `MeanRatio.equivalence_p`."""
    distance = replace(ratio, centre=np.abs(ratio.centre))
    # A mean exactly at the margin may be estimated beyond it in either direction.
    return min(1.0, float(distance.above_p(margin) + distance.above_p(-margin)))


def two_sided(p: float) -> float:
    """The two-sided p value, from the one-sided `p` of the direction that was found."""
    return min(1.0, 2 * p)


def block_values(samples: Samples, weights: Weights, network: str, metric: str, within: Sequence[str] = ()) -> Array:
    """The weighted sum of the times in ms of each block: sites x blocks; NaN unless the block has all of `weights` and
    `within`."""
    cell = samples.values[samples.networks.index(network), :, :, samples.metrics.index(metric)]
    times = {name: cell[:, samples.protocols.index(name)] for name in (*weights, *within)}
    total = sum(weight * times[name] for name, weight in weights.items())
    return np.where(np.isfinite(list(times.values())).all(axis=0), total, np.nan)


def runs_of_pair(samples: Samples, pair: Pair, networks: Sequence[str], metric: str) -> int:
    """The number of runs of `pair` on `networks`, in blocks that have both."""
    return int(_runs_of_pair(samples, pair, networks, metric).sum())


def _runs_of_pair(samples: Samples, pair: Pair, networks: Sequence[str], metric: str) -> NDArray[np.int64]:
    """The runs of `runs_of_pair` for each network and site: networks x sites."""
    weights = dict.fromkeys(pair, 1.0)
    blocks = [counts(block_values(samples, weights, name, metric)) for name in networks]
    return len(weights) * np.stack(blocks)


def logarithmic(samples: Samples) -> Samples:
    """`samples` with the logarithms of its times; NaN for times of 0 or less."""
    return replace(samples, values=logarithms(samples.values))


def not_measured(
    samples: Samples, protocols: Sequence[str], networks: Sequence[str], metrics: Sequence[str]
) -> tuple[str, ...]:
    """Those of the given networks, protocols and metrics that a campaign lacks, in words."""
    wanted = [("network", name, samples.networks) for name in networks]
    wanted += [("protocol", name, samples.protocols) for name in protocols]
    wanted += [("metric", name, samples.metrics) for name in metrics]
    return tuple(f"{kind} {label(name)}" for kind, name, present in wanted if name not in present)


def jackknife(statistic: Callable[[NDArray[np.bool_]], float], sites: int) -> MeanRatio:
    """A `statistic` with its error from leaving out one site after the other. `statistic` takes a mask of the sites to
    use."""
    without = np.array([statistic(np.arange(sites) != site) for site in range(sites)])
    error = float(np.sqrt((sites - 1) / sites * ((without - without.mean()) ** 2).sum()))
    return of_numbers(statistic(np.full(sites, True)), error, sites)


def within_network(subject: str, network: str, metric: str) -> str:
    """`subject` with the network and the metric that it was measured in."""
    return f"{subject} behind {label(network)} in {label(metric)}"


def estimated(mean: MeanRatio, condition: Condition, confidence: float) -> Condition:
    """`condition` with the value and interval of `mean` (as a gain if that is the unit), or with the data that it
    lacks."""
    if np.isnan(mean.centre):
        return replace(condition, missing=(f"a block with all of it: {condition.subject}",))
    if np.isnan(mean.error):
        return replace(condition, missing=(f"two blocks of a site: {condition.subject}",))
    columns = contrast_columns(mean, confidence, VALUE, as_share=condition.unit == GAIN)
    value, low, high = (float(columns[name]) for name in VALUE)
    return replace(condition, value=value, low=low, high=high)


def _pair_conditions(
    inputs: ClaimInputs, pairs: Sequence[Pair], networks: Sequence[str], metrics: Sequence[str], judge: _Judge
) -> list[Condition]:
    """A condition for each pair, network and metric, with the p values that `judge` returns.

    A contrast of the declared family has the p values of its verdict, which allow for looks at the data.
    """
    conditions = []
    for pair, network, metric in product(pairs, networks, metrics):
        subject = within_network(pair_label(pair.compared, pair.reference), network, metric)
        weights = {pair.compared: 1.0, pair.reference: -1.0}
        ratio, condition = _contrast(inputs, weights, subject, network, metric)
        if not condition.missing:
            samples = inputs.samples
            of_pair = margins(samples, pair, inputs.hypotheses, inputs.rtt_ms)
            margin = float(of_pair[samples.networks.index(network), samples.metrics.index(metric)])
            family = rows_of(inputs.confirmatory, **pair._asdict(), network=network, metric=metric)
            p_values = float(ratio.difference_p()), float(ratio.equivalence_p(margin))
            # A contrast that is not tested yet, before the first look, has no p value, which is no evidence.
            for row in family.fillna({"p": 1.0, "equivalence_p": 1.0}).itertuples():
                p_values = row.p, row.equivalence_p
                corrected = judge(ratio, margin, row.p_corrected, row.equivalence_p_corrected)
                condition = replace(condition, family_p=corrected)
            p_for, p_against = judge(ratio, margin, *p_values)
            limit = f"{percent(np.expm1(-margin))} to {percent(np.expm1(margin))} counts as no difference"
            condition = replace(condition, limit=limit, p_for=p_for, p_against=p_against)
        conditions.append(condition)
    return conditions


def _contrast(
    inputs: ClaimInputs, weights: Weights, subject: str, network: str, metric: str, within: Sequence[str] = ()
) -> tuple[MeanRatio, Condition]:
    """The mean over sites of a contrast of logarithms, and its condition without p values."""
    if missing := not_measured(inputs.samples, tuple({**weights, **dict.fromkeys(within)}), [network], [metric]):
        return _NOTHING, Condition(subject, missing=missing)
    values = block_values(logarithmic(inputs.samples), weights, network, metric, within)
    ratio = mean_over_sites(values)
    sites = int(np.isfinite(values).any(axis=1).sum())
    runs = int(np.isfinite(values).sum()) * len({*weights, *within})
    return ratio, estimated(ratio, Condition(subject, sites=sites, runs=runs), inputs.hypotheses.confidence)


def _leads_missing(inputs: ClaimInputs, pair: Pair, networks: Sequence[str], metric: str) -> tuple[str, ...]:
    """The data that a lead in round trips needs and the campaign lacks, in words."""
    missing = not_measured(inputs.samples, pair, networks, [metric])
    return missing + tuple(f"an RTT of {label(name)}" for name in networks if not inputs.rtt_ms.get(name))


def _slopes(rtts: Array, leads: Array) -> Array:
    """The slope of each site's leads (networks x sites) on `rtts` (networks x 1); NaN if the site has only one
    network."""
    is_measured = np.isfinite(leads)
    number = is_measured.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(is_measured, rtts - (is_measured * rtts).sum(axis=0) / number, 0)
        slopes = (distance * np.where(is_measured, leads, 0)).sum(axis=0) / (distance**2).sum(axis=0)
    return np.where(number > 1, slopes, np.nan)


def _leads(samples: Samples, pair: Pair, networks: Sequence[str], metric: str) -> Array:
    """How many ms `compared` is ahead, within blocks: networks x sites."""
    weights = {pair.reference: 1.0, pair.compared: -1.0}
    return np.stack([locations(block_values(samples, weights, network, metric))[0] for network in networks])


def _over_sites(
    values: Array, runs: NDArray[np.int64], condition: Condition, inputs: ClaimInputs
) -> tuple[MeanRatio, Condition]:
    """The mean of `values`, one for each site, with an error from the scatter of the sites; and its condition.

    `runs`: the number of runs that a site's value rests on, for each network (networks x sites).
    """
    is_known = np.isfinite(values)
    values, condition = values[is_known], replace(condition, runs=int(runs[:, is_known].sum()))
    sites = len(values)
    if sites < 2:
        return _NOTHING, replace(condition, sites=sites, missing=(f"two sites with all of it: {condition.subject}",))
    mean = of_numbers(values.mean(), values.std(ddof=1) / np.sqrt(sites), sites)
    return mean, estimated(mean, replace(condition, sites=sites), inputs.hypotheses.confidence)


def _slope_of_shares(
    inputs: ClaimInputs, pair: Pair, networks: Sequence[str], metric: str, rtts: Array, condition: Condition
) -> tuple[MeanRatio, Condition]:
    """The slope of the lead on the RTT (`rtts`: networks x 1), both as shares of the reference's time."""
    logs, weights = logarithmic(inputs.samples), {pair.compared: 1.0, pair.reference: -1.0}
    ratios = np.stack([locations(block_values(logs, weights, name, metric))[0] for name in networks])
    times = np.stack([locations(block_values(logs, {pair.reference: 1.0}, name, metric))[0] for name in networks])
    leads, round_trips = -np.expm1(ratios), rtts / np.exp(times)
    has_all = np.isfinite(leads).all(axis=0)
    leads, round_trips = leads[:, has_all], round_trips[:, has_all]
    sites, runs = int(has_all.sum()), _runs_of_pair(inputs.samples, pair, networks, metric)
    condition = replace(condition, runs=int(runs[:, has_all].sum()))
    if sites <= LEAST_SITES:
        what = f"more than {LEAST_SITES} sites with all of it: {condition.subject}"
        return _NOTHING, replace(condition, sites=sites, missing=(what,))

    def slope(kept: NDArray[np.bool_]) -> float:
        return float(stats.linregress(round_trips[:, kept].ravel(), leads[:, kept].ravel()).slope)

    mean = jackknife(slope, sites)
    return mean, estimated(mean, replace(condition, sites=sites), inputs.hypotheses.confidence)


def _above_0(mean: MeanRatio, condition: Condition) -> Condition:
    """Whether `mean` is above 0; the evidence against this is a mean below 0. Both p values are two-sided."""
    p_for, p_against = two_sided(float(mean.above_p(0))), two_sided(float(mean.below_p(0)))
    return replace(condition, p_for=p_for, p_against=p_against)


def _one_round_trip(mean: MeanRatio, condition: Condition, inputs: ClaimInputs) -> Condition:
    """Whether `mean` is 1, within the number of round trips that counts as equivalent."""
    off = inputs.hypotheses.equivalence_round_trips
    limit = f"the handshake makes 1, and {1 - off:g} to {1 + off:g} counts as 1"
    if condition.missing:
        return condition
    distance = replace(mean, centre=mean.centre - 1)
    p_for, p_against = float(distance.equivalence_p(off)), beyond_p(distance, off)
    return replace(condition, limit=limit, p_for=p_for, p_against=p_against)
