"""The answer for whoever has one site: what HTTP/3 in place of HTTP/2 changes behind each network, in one sentence.

The verdicts are those of the declared family (`analysis.confirmatory`); nothing else is tested here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.confirmatory import confirmatory
from analysis.gain import exclusions, mean
from analysis.hypotheses import Hypotheses, Pair
from analysis.outcomes import EQUIVALENT, FASTER, NOT_DECIDED
from analysis.planning import needed_for
from analysis.ratios import block_ratios, mean_over_sites
from analysis.runs import CampaignTable, metrics_in, records, rows_of
from analysis.samples import counts, samples_of
from analysis.stopping import looks_of
from analysis.text import label, level, listing, ms, plural
from base.errors import EyelevelError
from measure.metrics import web_names

# What a page goes through, in order; of these, what a campaign has is shown.
MILESTONES = ("ttfb", "fcp", "si", "vc85", "lcp", "plt")
# To decide by more runs than this is beyond what one waits for.
MOST_RUNS = 500
ASKED = "HTTP/3 in place of HTTP/2"
MILESTONE_COLUMNS = ["network", "metric", "mean_reference", "mean_compared", "difference", "low", "high"]


@dataclass(frozen=True)
class NetworkAnswer:
    """What was found behind one network.

    `verdict` (`analysis.outcomes`) on the compared protocol. `gain`: its time over the reference's, less 1 (negative:
    sooner), with the interval from `low` to `high`; `margin`: the gain below which it counts as no difference, and
    `is_small`: whether it is shown to be less than that; `reference_ms`: the typical time over the reference. NaN where
    unknown. `pairs`: runs of both that count, measured one after the other, of so many `attempts`; `excluded`: why
    attempts do not count. `more_runs`: how many more of each would probably show a difference of `margin` if there is
    one (inf: too many to be said; NaN: unknown).
    """

    network: str
    verdict: str
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    margin: float = math.nan
    is_small: bool = False
    reference_ms: float = math.nan
    pairs: int = 0
    attempts: int = 0
    excluded: tuple[str, ...] = ()
    more_runs: float = math.nan

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict."""
        return self.pairs > 0 and self.verdict != NOT_DECIDED

    @property
    def place(self) -> str:
        """Where it holds, for a sentence."""
        return f"behind {label(self.network)}"


def answers(campaign: CampaignTable, question: Hypotheses) -> list[NetworkAnswer]:
    """What was found behind each network of `campaign`, of one site, on the one contrast that `question` declares.

    Raises EyelevelError when it is another kind of campaign.
    """
    declared = question.restricted_to(campaign.protocols, campaign.metrics)
    if len(campaign.document.sites) != 1 or len(declared.family) != 1 or len(declared.family_metrics) != 1:
        raise EyelevelError(f"{campaign.name} does not ask one question of one site, so one sentence cannot answer it")
    samples, looks = samples_of(campaign), looks_of(campaign)
    table = confirmatory(samples, declared, campaign.rtt_ms, looks, campaign.networks)
    ((pair,), (metric,)) = declared.family, declared.family_metrics
    excluded = exclusions(campaign.runs)
    by_network = []
    for row in records(table):
        network = row["network"]
        attempts = rows_of(campaign.runs, network=network)
        reasons = [f"{one['excluded']} x {one['example']}" for one in records(rows_of(excluded, network=network))]
        answer = NetworkAnswer(network, row["verdict"], attempts=len(attempts), excluded=tuple(reasons))
        if not row["blocks"]:
            by_network.append(answer)
            continue
        column, place = samples.metrics.index(metric), samples.networks.index(network)
        ratios = block_ratios(samples, pair)[place, :, column]
        ratio, pairs = mean_over_sites(ratios), int(counts(ratios).sum())
        reference = samples.of(pair.reference)[place, :, column][np.isfinite(ratios)]
        size = len(declared.declared_with(network, campaign.networks)) * max(1, len(looks))
        scatter, per_block = float(ratio.error) * math.sqrt(pairs), float(ratio.freedom) / max(1, pairs - 1)
        needed = needed_for(math.log1p(row["margin"]), scatter, per_block, declared.significant_p / size)
        more = needed - pairs
        has_interval = bool(ratio.has_interval(declared.confidence))
        by_network.append(
            NetworkAnswer(
                network,
                row["verdict"],
                row["gain"],
                row["gain_low"] if has_interval else math.nan,
                row["gain_high"] if has_interval else math.nan,
                row["margin"],
                row["equivalence_p_corrected"] < declared.significant_p,
                float(np.exp(np.log(reference).mean())),
                pairs,
                len(attempts),
                tuple(reasons),
                math.nan if math.isnan(more) or not has_interval else max(1.0, more) if more <= MOST_RUNS else math.inf,
            )
        )
    return by_network


def headline(site: str, by_network: Sequence[NetworkAnswer]) -> str:
    """The answer in one sentence."""
    decided = [answer for answer in by_network if answer.is_decided]
    differ = [answer for answer in decided if answer.verdict != EQUIVALENT]
    alike = [answer for answer in decided if answer.verdict == EQUIVALENT]
    verbs = []
    if differ:
        verbs.append(f"show the page {listing([_difference(answer) for answer in differ])}")
    if alike:
        bound = level(max(answer.margin for answer in alike))
        where = listing([label(answer.network) for answer in alike])
        verbs.append(f"make no difference behind {where} (less than {bound} either way)")
    undecided = [answer for answer in by_network if answer.pairs and not answer.is_decided]
    if verbs:
        clauses = [f"For {site}, {ASKED} would {', and '.join(verbs)}"]
        if undecided:
            clauses.append(f"it is not decided {_open(undecided)}")
    elif undecided:
        clauses = [f"For {site}, it is not decided whether {ASKED} would show the page sooner: {_open(undecided)}"]
    else:
        clauses = [f"For {site}, there is no answer on {ASKED}"]
    if nothing := [label(answer.network) for answer in by_network if not answer.pairs]:
        clauses.append(f"behind {listing(nothing)} no pair of loads counts")
    return f"{'; '.join(clauses)}."


def _difference(answer: NetworkAnswer) -> str:
    direction = "sooner" if answer.verdict == FASTER else "later"
    bounds = _ends(answer.low, answer.high)
    small = f", which is less than the {level(answer.margin)} that count" if answer.is_small else ""
    return f"{_amount(answer)} {f'({bounds}) ' if bounds else ''}{direction} {answer.place}{small}"


def _amount(answer: NetworkAnswer) -> str:
    """The difference as a time, which is known to two digits at best."""
    difference_ms = abs(answer.gain * answer.reference_ms)
    digits = -1 if difference_ms >= 100 else 0
    return f"{round(difference_ms, digits):,.0f} ms"


def _ends(low: float, high: float) -> str:
    """An interval whose ends have one sign, without it, the smaller first: `9 to 12 %`; nothing where it is unknown."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    least, most = sorted((abs(low), abs(high)))
    digits = 0 if most - least >= 0.02 else 1
    return f"{100 * least:.{digits}f} to {100 * most:.{digits}f} %"


def _open(undecided: Sequence[NetworkAnswer]) -> str:
    """Where the difference is not decided, and between what it lies."""
    texts = []
    for answer in undecided:
        if math.isfinite(answer.low):
            digits = 0 if answer.high - answer.low >= 0.02 else 1
            low, high = (f"{round(100 * end, digits) + 0.0:+.{digits}f}" for end in (answer.low, answer.high))
            texts.append(f"{answer.place} (the difference is between {low} and {high} %; negative is sooner)")
        else:
            texts.append(f"{answer.place} ({plural('pair', answer.pairs)} of loads cannot tell)")
    return listing(texts)


def how_sure(by_network: Sequence[NetworkAnswer], campaign: CampaignTable, question: Hypotheses) -> list[str]:
    """What the answer rests on, what would decide what is open, and what the words mean."""
    wrong, bound = level(question.significant_p), level(question.equivalence_margin)
    texts = [
        "The time is the Speed Index: the mean time at which what is visible of the page appears. Both protocols were "
        f"tested behind {listing([label(answer.network) for answer in by_network])}, one load after the other in "
        f"random order. The chance that any “sooner” or “later” above is wrong is at most {wrong}, and so is that of a "
        f"wrong “no difference”, which an equivalence test must show: less than {bound} either way. Intervals in "
        f"brackets hold with {level(question.confidence)}. {question.origin.sentence}"
    ]
    for answer in by_network:
        place = answer.place[:1].upper() + answer.place[1:]
        text = f"{place}: {plural('pair', answer.pairs)} of loads count, of {plural('attempt', answer.attempts)}"
        if answer.pairs:
            text += f"; over HTTP/2 the page took {ms(answer.reference_ms)} ms"
        text += "."
        if answer.pairs and not answer.is_decided:
            text += f" {_what_decides(answer)}"
        if answer.excluded:
            text += f" Not counted: {'; '.join(answer.excluded)}."
        texts.append(text)
    if "simulated" in campaign.document.further:
        texts.append("This campaign is simulated: nothing in it was measured.")
    return texts


def _what_decides(answer: NetworkAnswer) -> str:
    if math.isnan(answer.more_runs):
        return "These are too few to tell how many more would decide."
    count = f"more than {MOST_RUNS}" if math.isinf(answer.more_runs) else f"about {answer.more_runs:.0f}"
    difference = f"a difference of {level(answer.margin)} if there is one"
    return f"It is not decided: {count} runs more of each would show {difference}."


def milestones(campaign: CampaignTable, question: Hypotheses) -> pd.DataFrame:
    """What a page went through over each protocol of the pair: mean times in the pairs that count.

    A row for each network and each of MILESTONES that there is; columns MILESTONE_COLUMNS: means, and the difference
    within blocks with its interval, NaN with too few, in ms.
    """
    runs = campaign.valid
    known = {*metrics_in(runs), *web_names()}
    names = [name for name in MILESTONES if name in known and name in runs and runs[name].notna().any()]
    pair = Pair(*question.restricted_to(campaign.protocols, campaign.metrics).family[0])
    samples = samples_of(campaign, names)
    rows = []
    if names and pair.is_of(samples.protocols):
        reference, compared = samples.of_pair(pair)
        is_paired = np.isfinite(compared - reference)
        means = [mean(np.where(is_paired, values, np.nan))[:, 0] for values in (reference, compared)]
        change = mean_over_sites(np.swapaxes(compared - reference, 1, 2))
        has_interval = change.has_interval(question.confidence)
        low, high = (np.where(has_interval, end, np.nan) for end in change.interval(question.confidence))
        for n, network in enumerate(samples.networks):
            for m, name in enumerate(names):
                if math.isfinite(change.centre[n, m]):
                    values = (means[0], means[1], change.centre, low, high)
                    rows.append((network, name, *(float(value[n, m]) for value in values)))
    return pd.DataFrame(rows, columns=MILESTONE_COLUMNS)


def why(by_network: Sequence[NetworkAnswer], table: pd.DataFrame, rtt_ms: Callable[[str], float | None]) -> list[str]:
    """Where in the load the difference comes from, as the `milestones` in `table` tell; `rtt_ms`: of a network."""
    texts = []
    for answer in by_network:
        rows = {row["metric"]: row for row in records(rows_of(table, network=answer.network))}
        if "ttfb" not in rows or "si" not in rows:
            continue
        first, seen = rows["ttfb"]["difference"], rows["si"]["difference"]
        round_trip = f", and a round trip takes {ms(time)} ms" if (time := rtt_ms(answer.network)) else ""
        place = answer.place[:1].upper() + answer.place[1:]
        doubt = "" if answer.is_decided else " on average, which is not decided"
        texts.append(
            f"{place}, the first byte came {_later(first)} over HTTP/3{round_trip}; the page was seen {_later(seen)}"
            f"{doubt}. What is there at the first byte already is mostly the handshakes'; the report's waterfalls show "
            "the rest."
        )
    return texts


def _later(difference_ms: float) -> str:
    return f"{ms(abs(difference_ms))} ms {'sooner' if difference_ms < 0 else 'later'}"
