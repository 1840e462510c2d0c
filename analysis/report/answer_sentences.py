"""The sentences of the answer on one site: the answer, how sure it is, and where in the load the difference arises."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from analysis.answer import MOST_RUNS, NetworkAnswer
from analysis.hypotheses import origin_sentence
from analysis.runs import CampaignTable, records, rows_of
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER
from analysis.statistics.spending import LOOKS
from analysis.text import label, level, listing, ms, plural, signed_ms
from base.places import ANSWER_PREFIX

ASKED = "HTTP/3 in place of HTTP/2"
# From this share on, the whole difference counts as present at the first byte.
MOST_OF_IT = 0.9


def headline(site: str, by_network: Sequence[NetworkAnswer]) -> str:
    """The answer in one sentence."""
    differ = [answer for answer in by_network if answer.is_decided and answer.verdict != EQUIVALENT]
    alike = [answer for answer in by_network if answer.is_decided and answer.verdict == EQUIVALENT]
    verbs = []
    if differ:
        verbs.append(f"show the page {listing([_difference(answer) for answer in differ])}")
    if alike:
        bound = level(max(answer.margin for answer in alike))
        where = listing([label(answer.network) for answer in alike])
        verbs.append(f"make no difference on {where} (less than {bound} either way)")
    undecided = [answer for answer in by_network if answer.pairs and not answer.is_decided]
    is_open = listing([_open(answer) for answer in undecided]) if undecided else ""
    nothing = [label(answer.network) for answer in by_network if not answer.pairs]
    nothing_counts = f"no pair of loads counts on {listing(nothing)}" if nothing else ""
    if verbs:
        clauses = [f"For {site}, {ASKED} would {', and '.join(verbs)}"]
        clauses += [f"it is not decided {is_open}"] if undecided else []
    elif undecided:
        clauses = [f"For {site}, it is not decided whether {ASKED} would show the page sooner: {is_open}"]
    else:
        return f"For {site}, there is no answer on {ASKED}: {nothing_counts}."
    clauses += [nothing_counts] if nothing else []
    if losing := [_losses(answer) for answer in by_network if answer.loses_unequally]:
        clauses.append(f"but {listing(losing)}")
    return f"{'; '.join(clauses)}."


def _losses(answer: NetworkAnswer) -> str:
    over_http2, over_http3 = (f"{lost} of {tried}" for lost, tried in zip(answer.lost, answer.tried, strict=True))
    return f"{answer.place} {over_http3} loads over HTTP/3 failed, and {over_http2} over HTTP/2"


def _difference(answer: NetworkAnswer) -> str:
    direction = "sooner" if answer.verdict == FASTER else "later"
    known = "; ".join(filter(None, (amount(answer.difference_ms), ends(answer.low, answer.high))))
    return f"{change(answer)} {direction} ({known}) {answer.place}"


def _open(answer: NetworkAnswer) -> str:
    """A network on which the difference is not decided, with the interval of the difference."""
    text = ends(answer.low, answer.high)
    if answer.direction:
        return f"{answer.place} (probably {text} {answer.direction}, which is not certain enough)"
    may_be = f"it may be {text}" if text else f"{loads_of_each(answer.pairs)} cannot tell"
    return f"{answer.place} ({may_be})"


def loads_of_each(pairs: int) -> str:
    """How many loads over each protocol count in pairs."""
    return f"{plural('load', pairs)} of each"


def change(answer: NetworkAnswer) -> str:
    """The size of the change in percent, without its sign, with as many digits as its interval."""
    return f"{100 * abs(answer.gain):.{digits(answer.low, answer.high)}f} %"


def digits(low: float, high: float) -> int:
    """How many digits after the point a percentage with this interval has."""
    return 0 if high - low >= 0.02 else 1


def amount(difference_ms: float) -> str:
    """The size of a difference to two digits, since it is not known more precisely."""
    size_ms = abs(difference_ms)
    if size_ms < 1:
        return "less than 1 ms"
    if size_ms >= 995:
        return f"{size_ms / 1000:.1f} s" if size_ms < 9950 else f"{size_ms / 1000:.0f} s"
    return f"{round(size_ms, -1 if size_ms >= 100 else 0):.0f} ms"


def ends(low: float, high: float) -> str:
    """An interval of gains in words; empty if it is unknown.

    `9 to 12 %` if both ends have the same sign: the smaller end first, without the sign. Else `between 3 % sooner and 1
    % later`.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    places = digits(low, high)
    if low * high <= 0:
        return f"between {100 * abs(low):.{places}f} % sooner and {100 * abs(high):.{places}f} % later"
    least, most = sorted((abs(low), abs(high)))
    return f"{100 * least:.{places}f} to {100 * most:.{places}f} %"


def how_sure(by_network: Sequence[NetworkAnswer], campaign: CampaignTable, question: Hypotheses) -> list[str]:
    """The evidence on each network, the runs that would decide an open answer, and the meaning of the words."""
    (site,) = campaign.settings.sites
    texts = [_evidence(answer, site, campaign) for answer in by_network]
    # Networks that were added later are a family of their own, with a level of its own.
    families = len({question.added_networks.get(answer.network) for answer in by_network})
    added = [label(one.network) for one in by_network if one.network in question.added_networks]
    later = f" (added to the campaign later, with a correction of its own: {listing(added)})" if added else ""
    texts.append(
        "The Speed Index is compared: the mean time at which the visible part of the page appears. A pair is "
        "one load over each protocol, made one after the other, in random order. “Sooner” and “later” are said only "
        "where a test shows a difference, “no difference” only where a test shows that it is less than "
        f"{level(question.equivalence_margin)} either way. These verdicts are wrong with a probability of at most "
        f"{level(families * question.significant_p)}, interim looks included{later}. "
        f"Intervals hold with {level(question.confidence)} each. {origin_sentence(question.origin)}"
    )
    if "simulated" in campaign.document.further:
        texts.append("This campaign is simulated: nothing in it was measured.")
    return texts


def _evidence(answer: NetworkAnswer, site: str, campaign: CampaignTable) -> str:
    """The evidence for the answer on one network."""
    texts = [f"{answer.heading}: no pair of loads counts, of {plural('attempt', answer.attempts)}."]
    if answer.pairs:
        loads = f"{loads_of_each(answer.pairs)} count{'s' if answer.pairs == 1 else ''}"
        texts = [f"{answer.heading}: {loads}; over HTTP/2 the Speed Index is {ms(answer.reference_ms)} ms."]
    if math.isfinite(answer.shrunken) and answer.verdict in (FASTER, SLOWER):
        early = "The loads ended early, when the difference was large enough to be certain"
        measured, expected = (
            f"{change(replace(answer, gain=gain))} ({amount(gain * answer.reference_ms)})"
            for gain in (answer.gain, answer.shrunken)
        )
        if expected != measured:
            early += f"; chance contributes to this, so expect rather {expected}"
        texts.append(f"{early}.")
    if answer.pairs and not answer.is_decided:
        texts.append(_what_decides(answer, site, campaign))
    if answer.excluded:
        rejected = f"{answer.rejected} of {plural('attempt', answer.attempts)}"
        texts.append(f"Rejected: {rejected} ({'; '.join(answer.excluded)}).")
    return " ".join(texts)


def _what_decides(answer: NetworkAnswer, site: str, campaign: CampaignTable) -> str:
    """The runs that would decide an open answer, with the command for more runs."""
    difference = f"a difference of {level(answer.margin)} if there is one"
    command = _command_for(_runs_for(answer, campaign), site, campaign)
    if math.isnan(answer.more_runs):
        return f"These are too few to say how many more would decide. For more: {command}"
    if math.isinf(answer.more_runs):
        needed = f"More than {MOST_RUNS} runs more of each would be needed to show {difference}."
        return f"{needed} More runs narrow the interval: {command}"
    return f"About {answer.more_runs:.0f} runs more of each would show {difference}: {command}"


def command_for_more(by_network: Sequence[NetworkAnswer], campaign: CampaignTable) -> str | None:
    """The command for the runs that every open answer needs; None if all is decided, or if no load counts."""
    (site,) = campaign.settings.sites
    runs = [_runs_for(answer, campaign) for answer in by_network if answer.pairs and not answer.is_decided]
    return _command_for(max(runs), site, campaign) if runs else None


def _runs_for(answer: NetworkAnswer, campaign: CampaignTable) -> int:
    """How many runs of each an open answer needs; twice as many as now if that is unknown or needs too many."""
    # The planned runs include those that do not count.
    now = max(campaign.settings.runs or 0, answer.pairs)
    return now + (math.ceil(answer.more_runs) if math.isfinite(answer.more_runs) else max(now, LOOKS[0]))


def _command_for(runs: int, site: str, campaign: CampaignTable) -> str:
    of_site = "" if campaign.name == f"{ANSWER_PREFIX}{site}" else f" CAMPAIGN={campaign.name}"
    return f"make answer SITE={site}{of_site} RUNS={runs}"


def why(by_network: Sequence[NetworkAnswer], table: pd.DataFrame, rtt_ms: Callable[[str], float | None]) -> list[str]:
    """Where in the load the difference arises, according to `table` (from `milestones`). `rtt_ms` returns the
    round-trip time of a network."""
    texts = []
    for answer in by_network:
        rows = {row["metric"]: row for row in records(rows_of(table, network=answer.network))}
        if "ttfb" not in rows or "si" not in rows:
            continue
        first, seen = rows["ttfb"], rows["si"]
        if first["low"] * first["high"] > 0:
            round_trip = f"; a round trip takes {ms(time)} ms" if (time := rtt_ms(answer.network)) else ""
            come = f"{amount(first['difference'])} {'sooner' if first['difference'] < 0 else 'later'}"
            text = f"the first byte of the page arrives {come} over HTTP/3{round_trip}."
            if answer.is_decided and answer.verdict != EQUIVALENT:
                text += f" {_share(first['difference'] / seen['difference'])}"
        elif math.isfinite(first["low"]):
            interval = f"{signed_ms(first['low'])} to {signed_ms(first['high'])} ms"
            text = f"a difference in the first byte is not shown ({interval})."
        else:
            text = "too few loads count to show when the first byte arrives."
        texts.append(f"{answer.heading}, {text}")
    return texts


def _share(share: float) -> str:
    """How much of the difference exists at the first byte. `share`: the difference at the first byte over the final
    one."""
    if share <= 0:
        return "The difference arises after that, while the page's parts are loaded."
    if share >= MOST_OF_IT:
        return "So the difference exists before the page begins to arrive: it comes from the handshakes."
    return (
        f"So about {100 * share:.0f} % of the difference exists before the page begins to arrive, from the "
        "handshakes; the rest arises while its parts are loaded."
    )
