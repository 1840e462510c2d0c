"""The answer for one site: how HTTP/3 in place of HTTP/2 changes its load on each network, in one sentence.

The verdicts are those of the declared family (`analysis.statistics.confirmatory`); nothing else is tested here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from analysis.attempts import exclusions
from analysis.defaults import PREFIX
from analysis.hypotheses import origin_sentence
from analysis.losses import success_rates
from analysis.runs import CampaignTable, metrics_in, records, rows_of
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confidences, confirmatory
from analysis.statistics.contrast_table import GAIN, contrast_columns
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.statistics.planning import needed_after
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import counts
from analysis.statistics.spending import levels, looks_of_plan
from analysis.stopping import looks_of, planned_runs
from analysis.text import label, level, listing, ms, plural, signed_ms
from base.errors import EyelevelError

# The milestones of a page load, in order. A report shows those that the campaign measured.
MILESTONES = ("ttfb", "fcp", "si", "vc85", "lcp", "plt")
# Nobody waits for more runs than this to get a decision.
MOST_RUNS = 500
# A larger difference between the shares of lost runs is part of the answer.
LOST_SHARE = 0.05
# From this share on, the whole difference counts as present at the first byte.
MOST_OF_IT = 0.9
ASKED = "HTTP/3 in place of HTTP/2"
# The pair that is compared, and the metric; `analysis/answer.toml` declares both.
PAIR, METRIC = Pair("tcp+", "quic"), "si"
MILESTONE_COLUMNS = ["network", "metric", "typical_reference", "typical_compared", "difference", "low", "high"]


@dataclass(frozen=True)
class NetworkAnswer:
    """The result on one network.

    `verdict`: the verdict on the compared protocol (`analysis.statistics.outcomes`). `gain`: its time over the
    reference's, less 1 (negative: sooner); `low` and `high`: the interval of the gain. `margin`: a smaller gain counts
    as no difference. `reference_ms`: the typical time over the reference.
    `shrunken`: on a network that ended early, the gain without the part that ending early adds. All are NaN where
    unknown.
    `pairs`: how many pairs of runs count; a pair is one run over each protocol, measured one after the other.
    `attempts`: the number of attempts; `excluded`: why attempts do not count. `more_runs`: how many more runs of each
    protocol would probably show a difference of `margin` if there is one (inf: more than MOST_RUNS; NaN: unknown).
    `lost`: the number of lost runs over the reference and over the compared protocol (`analysis.losses`), and `tried`:
    of how many.
    """

    network: str
    verdict: str
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    margin: float = math.nan
    reference_ms: float = math.nan
    pairs: int = 0
    attempts: int = 0
    excluded: tuple[str, ...] = ()
    more_runs: float = math.nan
    shrunken: float = math.nan
    lost: tuple[int, ...] = (0, 0)
    tried: tuple[int, ...] = (0, 0)

    @property
    def difference_ms(self) -> float:
        """The gain as a time in ms: negative is sooner."""
        return self.gain * self.reference_ms

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict."""
        return self.pairs > 0 and self.verdict != NOT_DECIDED

    @property
    def loses_unequally(self) -> bool:
        """Whether the share of lost runs differs by more than LOST_SHARE between the protocols."""
        reference, compared = (lost / max(1, tried) for lost, tried in zip(self.lost, self.tried, strict=True))
        return abs(compared - reference) > LOST_SHARE

    @property
    def place(self) -> str:
        """The network of this result, for a sentence."""
        return f"behind {label(self.network)}"


def require_question(question: Hypotheses, campaign: str) -> None:
    """Raises EyelevelError unless one sentence on the Speed Index can answer `question`, which the campaign named
    `campaign` declared."""
    is_answered = question.family == (PAIR,) and question.family_metrics == (METRIC,)
    if not is_answered or question.equivalence_round_trips:
        raise EyelevelError(
            f"the campaign {campaign} was begun with another question than that of 'make answer' (analysis/answer.toml)"
            f", so one sentence cannot answer it; 'make report CAMPAIGN={campaign}' does, or name another with CAMPAIGN"
        )


def answers(campaign: CampaignTable, question: Hypotheses) -> list[NetworkAnswer]:
    """The result on each network of `campaign`, which has one site, for the one contrast that `question` declares.

    Raises EyelevelError for any other kind of campaign.
    """
    require_question(question, campaign.name)
    if len(campaign.settings.sites) != 1 or not PAIR.is_of(campaign.protocols):
        raise EyelevelError(f"{campaign.name} does not ask one question of one site, so one sentence cannot answer it")
    declared = question.restricted_to(campaign.protocols, (METRIC,))
    samples, looks = samples_of(campaign), looks_of(campaign)
    table = confirmatory(samples, declared, campaign.rtt_ms, looks, campaign.networks)
    confidence = confidences(declared, looks, samples.rounds)
    excluded, rates = exclusions(campaign.runs), success_rates(campaign)
    by_network = []
    for row in records(table):
        network = row["network"]
        attempts = rows_of(campaign.runs, network=network)
        reasons = [f"{one['excluded']} x {one['example']}" for one in records(rows_of(excluded, network=network))]
        of_pair = [rows_of(rates, network=network, protocol=name).iloc[0] for name in PAIR]
        lost, tried = (tuple(int(one[column]) for one in of_pair) for column in ("lost", "tried"))
        answer = NetworkAnswer(
            network, row["verdict"], attempts=len(attempts), excluded=tuple(reasons), lost=lost, tried=tried
        )
        if not row["blocks"]:
            by_network.append(answer)
            continue
        column, place = samples.metrics.index(METRIC), samples.networks.index(network)
        ratios = block_ratios(samples, PAIR)[place, :, column]
        ratio, pairs = mean_over_sites(ratios), int(counts(ratios).sum())
        reference = samples.of(PAIR.reference)[place, :, column][np.isfinite(ratios)]
        size = len(declared.declared_with(network, campaign.networks))
        lacking = max(campaign.settings.runs or 0, pairs) - pairs
        needed = needed_after(
            math.log1p(row["margin"]),
            float(ratio.centre),
            pairs,
            float(ratio.error) * math.sqrt(pairs),
            float(ratio.freedom),
            partial(_level_at_end, campaign, declared.significant_p / size, lacking),
            pairs + MOST_RUNS,
        )
        more = needed - pairs
        # A verdict is always shown with the interval that it rests on, however wide the interval is.
        is_decided = row["verdict"] != NOT_DECIDED and float(ratio.error) > 0
        has_interval = is_decided or bool(ratio.has_interval(confidence[place]))
        by_network.append(
            replace(
                answer,
                gain=row["gain"],
                low=row["gain_low"] if has_interval else math.nan,
                high=row["gain_high"] if has_interval else math.nan,
                margin=row["margin"],
                reference_ms=float(np.exp(np.log(reference).mean())),
                pairs=pairs,
                more_runs=more if has_interval else math.nan,
                shrunken=row["gain_shrunken"],
            )
        )
    return by_network


def _level_at_end(campaign: CampaignTable, error: float, lacking: int, pairs: int) -> float:
    """The level of the two-sided test at the end of `campaign` if that has `pairs` pairs of runs, when it has planned
    `lacking` more runs than it has pairs now."""
    runs, planned = pairs + lacking, planned_runs(campaign)
    ends = [*planned, runs] if planned and runs > max(planned) else [runs]
    looks = looks_of_plan(ends, 1, may_end=campaign.settings.auto)
    return 2 * levels(looks.blocks, looks.planned, error / 2)[-1]


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
    nothing = [label(answer.network) for answer in by_network if not answer.pairs]
    nothing_counts = f"no pair of loads counts behind {listing(nothing)}" if nothing else ""
    if verbs:
        clauses = [f"For {site}, {ASKED} would {', and '.join(verbs)}"]
        if undecided:
            clauses.append(f"it is not decided {_open(undecided)}")
    elif undecided:
        clauses = [f"For {site}, it is not decided whether {ASKED} would show the page sooner: {_open(undecided)}"]
    else:
        return f"For {site}, there is no answer on {ASKED}: {nothing_counts}."
    if nothing:
        clauses.append(nothing_counts)
    if losing := [answer for answer in by_network if answer.loses_unequally]:
        clauses.append(f"but {listing([_losses(answer) for answer in losing])}")
    return f"{'; '.join(clauses)}."


def _losses(answer: NetworkAnswer) -> str:
    (reference, compared), (of_reference, of_compared) = answer.lost, answer.tried
    return (
        f"{answer.place} {compared} of {of_compared} loads over HTTP/3 failed, and {reference} of {of_reference} over "
        "HTTP/2"
    )


def _difference(answer: NetworkAnswer) -> str:
    bounds = f" ({text})" if (text := ends(answer.low, answer.high)) else ""
    direction = "sooner" if answer.verdict == FASTER else "later"
    # An interval with one sign comes before the direction: "(9 to 12 %) sooner". An interval with both signs names its
    # own directions, so it comes after the direction: "sooner (between 3 % sooner and 1 % later)".
    words = f"{bounds} {direction}" if answer.low * answer.high > 0 else f" {direction}{bounds}"
    return f"{amount(answer.difference_ms)}{words} {answer.place}"


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
    digits = 0 if high - low >= 0.02 else 1
    if low * high <= 0:
        return f"between {100 * abs(low):.{digits}f} % sooner and {100 * abs(high):.{digits}f} % later"
    least, most = sorted((abs(low), abs(high)))
    return f"{100 * least:.{digits}f} to {100 * most:.{digits}f} %"


def _open(undecided: Sequence[NetworkAnswer]) -> str:
    """The networks on which the difference is not decided, each with the interval of the difference."""
    texts = []
    for answer in undecided:
        text = ends(answer.low, answer.high)
        if text and answer.low * answer.high > 0:
            direction = "sooner" if answer.low < 0 else "later"
            texts.append(f"{answer.place} (probably {text} {direction}, which is not certain enough)")
        elif text:
            texts.append(f"{answer.place} (it may be {text})")
        else:
            texts.append(f"{answer.place} ({plural('pair', answer.pairs)} of loads cannot tell)")
    return listing(texts)


def how_sure(by_network: Sequence[NetworkAnswer], campaign: CampaignTable, question: Hypotheses) -> list[str]:
    """The evidence on each network, the runs that would decide an open answer, and the meaning of the words."""
    (site,) = campaign.settings.sites
    texts = [_evidence(answer, site, campaign) for answer in by_network]
    bound = level(question.equivalence_margin)
    # Networks that were added later are a family of their own, with a level of its own.
    families = len({question.added_networks.get(answer.network) for answer in by_network})
    wrong = level(families * question.significant_p)
    added = [label(one.network) for one in by_network if one.network in question.added_networks]
    later = f" ({listing(added)} came to the campaign later, and is corrected alone)" if added else ""
    texts.append(
        "What is compared is the Speed Index: the mean time at which what is visible of the page appears. A pair is "
        "one load over each protocol, made one after the other, in random order. “Sooner” and “later” are said only "
        "where a test shows a difference, “no difference” only where a test shows that it is less than "
        f"{bound} either way. The chance that any of these words above is wrong is at most {wrong}, however often the "
        f"test was made on the way{later}. Intervals hold with {level(question.confidence)} each. "
        f"{origin_sentence(question.origin)}"
    )
    if "simulated" in campaign.document.further:
        texts.append("This campaign is simulated: nothing in it was measured.")
    return texts


def _evidence(answer: NetworkAnswer, site: str, campaign: CampaignTable) -> str:
    """The evidence for the answer on one network."""
    place = answer.place[:1].upper() + answer.place[1:]
    text = f"{place}: {plural('pair', answer.pairs)} of loads count, of {plural('attempt', answer.attempts)}"
    if answer.pairs:
        text += f"; over HTTP/2 the Speed Index is {ms(answer.reference_ms)} ms"
    text += "."
    if math.isfinite(answer.shrunken) and answer.verdict in (FASTER, SLOWER):
        text += (
            f" The loads ended early, when the difference was large enough to be certain, and chance helps with that: "
            f"expect rather {amount(answer.shrunken * answer.reference_ms)}."
        )
    if answer.pairs and not answer.is_decided:
        text += f" {_what_decides(answer, site, campaign)}"
    if answer.excluded:
        text += f" Not counted: {'; '.join(answer.excluded)}."
    return text


def _what_decides(answer: NetworkAnswer, site: str, campaign: CampaignTable) -> str:
    """The runs that would decide an open answer, with the command if the runs are few enough to wait for."""
    difference = f"a difference of {level(answer.margin)} if there is one"
    if math.isnan(answer.more_runs):
        return "These are too few to tell how many more would decide."
    if math.isinf(answer.more_runs):
        return f"More than {MOST_RUNS} runs more of each would be needed to show {difference}."
    runs = campaign.settings.runs or 0
    of_site = "" if campaign.name == f"{PREFIX}{site}" else f" CAMPAIGN={campaign.name}"
    # The planned runs include those that do not count.
    command = f"make answer SITE={site}{of_site} RUNS={max(runs, answer.pairs) + math.ceil(answer.more_runs)}"
    return f"About {answer.more_runs:.0f} runs more of each would show {difference}: {command}"


def milestones(campaign: CampaignTable, question: Hypotheses) -> pd.DataFrame:
    """The milestones of the page over each protocol of the pair, from the pairs of loads that count.

    One row for each network and each of MILESTONES that was measured. Columns are MILESTONE_COLUMNS, in ms: the typical
    time over the reference (a geometric mean), the typical time over the compared protocol, and the difference with its
    interval (NaN with too few pairs). All values come from the ratios within blocks, as the answer does, so they agree
    with the answer on its metric.
    """
    runs = campaign.valid
    names = [name for name in MILESTONES if name in metrics_in(runs) and runs[name].notna().any()]
    samples = samples_of(campaign, names)
    rows = []
    if names and PAIR.is_of(samples.protocols):
        ratios = block_ratios(samples, PAIR)[:, 0]
        ratio = mean_over_sites(ratios[:, :, None])
        confidence = confidences(question, looks_of(campaign), samples.rounds)[:, None]
        columns = contrast_columns(ratio, confidence, where_known=True)
        logs = np.log(np.where(np.isfinite(ratios), samples.of(PAIR.reference)[:, 0], np.nan))
        for n, network in enumerate(samples.networks):
            for m, name in enumerate(names):
                if math.isfinite(ratio.centre[n, m]):
                    typical_ms = float(np.exp(np.nanmean(logs[n, m])))
                    difference, low, high = (typical_ms * float(columns[name][n, m]) for name in GAIN)
                    rows.append((network, name, typical_ms, typical_ms + difference, difference, low, high))
    return pd.DataFrame(rows, columns=MILESTONE_COLUMNS)


def why(by_network: Sequence[NetworkAnswer], table: pd.DataFrame, rtt_ms: Callable[[str], float | None]) -> list[str]:
    """Where in the load the difference arises, according to `table` (from `milestones`). `rtt_ms` returns the
    round-trip time of a network."""
    texts = []
    for answer in by_network:
        rows = {row["metric"]: row for row in records(rows_of(table, network=answer.network))}
        if "ttfb" not in rows or "si" not in rows:
            continue
        first, seen = rows["ttfb"], rows["si"]
        place = answer.place[:1].upper() + answer.place[1:]
        is_first_known = first["low"] * first["high"] > 0
        if is_first_known:
            round_trip = f"; a round trip takes {ms(time)} ms" if (time := rtt_ms(answer.network)) else ""
            text = f"{place}, the first byte of the page comes {_later(first['difference'])} over HTTP/3{round_trip}."
        elif math.isfinite(first["low"]):
            text = (
                f"{place}, no difference in the first byte is certain ({signed_ms(first['low'])} to "
                f"{signed_ms(first['high'])} ms)."
            )
        else:
            text = f"{place}, too few loads count to tell when the first byte comes."
        if answer.is_decided and answer.verdict != EQUIVALENT and is_first_known:
            text += f" {_share(first['difference'] / seen['difference'])}"
        texts.append(text)
    return texts


def _share(share: float) -> str:
    """How much of the difference exists at the first byte. `share`: the difference at the first byte over the final
    one."""
    if share <= 0:
        return "What differs when the page is seen comes after that, while the page's parts are loaded."
    if share >= MOST_OF_IT:
        return "So the difference is there before the page begins to arrive: it is that of the handshakes."
    return (
        f"So about {100 * share:.0f} % of the difference is there before the page begins to arrive, from the "
        "handshakes; the rest comes while its parts are loaded."
    )


def _later(difference_ms: float) -> str:
    return f"{amount(difference_ms)} {'sooner' if difference_ms < 0 else 'later'}"
