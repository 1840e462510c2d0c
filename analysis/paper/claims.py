"""The paper's claims: sentences of the paper, each with its own test on the campaign.

K. Wolsing, J. Rüth, K. Wehrle, O. Hohlfeld: A Performance Perspective on Web Optimized Protocol Stacks: TCP+TLS+HTTP/2
vs. QUIC (ANRW 2019). The sentences are paraphrased. They are declared here before any campaign. Each claim is tested at
the threshold of the hypotheses, corrected for the number of declared claims by Bonferroni's method, whether a campaign
can test all of them or not. So the probability that any verdict on a claim is wrong is at most that threshold. (Each
claim is either true or false, so it can be judged wrongly in one way only, and its two tests count once. Holm's method
is not used: it is not proven to control verdicts in two directions.)
A claim holds if all its conditions are shown to hold: its p value is the largest of theirs, which needs no correction
for their number (intersection-union test: Berger 1982, Multiparameter hypothesis testing and acceptance sampling). It
does not hold if the opposite of one condition is shown: its p value is then the smallest of theirs times the number of
conditions. Otherwise it is not decided. A contrast of the declared family is also corrected in the family, and the
larger of both corrected p values counts. So no claim says more of a contrast than the contrast's verdict does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.paper import claim_correlations, claim_tests
from analysis.paper.claim_tests import CORRELATION, GAIN, ROUND_TRIPS, ClaimInputs, Condition, Test
from analysis.paper.comparison import PAPER_SITES, read_paper
from analysis.runs import records, rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.text import label, pair_label, percent, plural

HOLDS, DOES_NOT_HOLD = "holds", "does not hold"
CLAIM_COLUMNS = ["claim", "source", "paper", "number", "test", "verdict", "sentence", "p", "p_corrected", "sites"]
CLAIM_COLUMNS += ["runs", "missing"]
CONDITION_COLUMNS = ["claim", "decides", "subject", "unit", "value", "low", "high", "limit", "sites", "runs"]
CONDITION_COLUMNS += ["p_for", "p_for_corrected", "p_against", "p_against_corrected", "missing"]

QUIC, QUIC_BBR = Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr")
TCP_BBR, QUIC_CONTROL = Pair("tcp+", "tcp+bbr"), Pair("quic", "quic+bbr")
TUNED, TUNED_BBR = Pair("tcp", "tcp+"), Pair("tcp", "tcp+bbr")
WITHOUT_LOSS, LOSSY = ("dsl", "lte"), ("da2gc", "mss")
# The metrics of the paper's Figure 3.
FIGURE_METRICS = ("fvc", "si", "vc85", "plt")
HEADLINE_METRICS = ("si", "plt")


@dataclass(frozen=True)
class PaperNumber:
    """The paper's numbers (`analysis.paper.comparison.read_paper`) that belong to a claim: the numbers of a `kind`, for
    a pair and a metric on `networks`."""

    kind: str
    pair: Pair
    networks: Sequence[str]
    metric: str = "si"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper. `source`: its place in the paper; `paper`: the sentence; `how`: the test in words;
    `numbers`: the paper's measurements, where it gives them."""

    name: str
    source: str
    paper: str
    how: str
    test: Test
    numbers: tuple[PaperNumber, ...] = ()


def _quic_claim(network: str, source: str) -> Claim:
    return Claim(
        f"quic_{network}",
        f"Abstract; {source}",
        f"Behind {label(network)}, QUIC is faster than TCP+, the TCP that was tuned to its level.",
        "mean over sites of the ratio of SI within blocks, two-sided",
        partial(claim_tests.faster, pairs=[QUIC], networks=[network], metrics=["si"]),
        (PaperNumber(GAINS, QUIC, [network]),),
    )


GAINS, DELTAS, COUNTS = "mean_gain", "mean_delta", "sites_faster"
DSL_AND_LTE, IN_FLIGHT = "Evaluation, DSL and LTE", "Evaluation, in-flight networks"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "tuning",
        f"Abstract; {DSL_AND_LTE}",
        "Tuning TCP pays: TCP+ is faster than stock TCP behind DSL and LTE.",
        "mean over sites of the ratio of SI within blocks, two-sided, in both networks",
        partial(claim_tests.faster, pairs=[TUNED], networks=WITHOUT_LOSS, metrics=["si"]),
        (PaperNumber(GAINS, TUNED, WITHOUT_LOSS),),
    ),
    *(_quic_claim(network, DSL_AND_LTE) for network in WITHOUT_LOSS),
    *(_quic_claim(network, IN_FLIGHT) for network in LOSSY),
    Claim(
        "quic_bbr",
        "Abstract; Evaluation, all networks",
        "With BBR on both sides, QUIC is faster than TCP+ in all four networks.",
        "mean over sites of the ratio of SI within blocks, two-sided, in every network",
        partial(claim_tests.faster, pairs=[QUIC_BBR], networks=(*WITHOUT_LOSS, *LOSSY), metrics=["si"]),
        (PaperNumber(GAINS, QUIC_BBR, (*WITHOUT_LOSS, *LOSSY)),),
    ),
    Claim(
        "controls_dsl_lte",
        DSL_AND_LTE,
        "Behind DSL and LTE it does not matter whether congestion control is Cubic or BBR.",
        "equivalence (two one-sided tests) of Cubic and BBR, over TCP+ and over QUIC, in SI and PLT",
        partial(claim_tests.equivalent, pairs=[TCP_BBR, QUIC_CONTROL], networks=WITHOUT_LOSS, metrics=HEADLINE_METRICS),
    ),
    *(
        Claim(
            f"controls_mss_{metric}",
            IN_FLIGHT,
            f"Behind MSS congestion control matters more than the protocol ({label(metric)}).",
            "main effects in blocks of four protocols: the larger is BBR's for Cubic, not QUIC's for TCP+, whichever "
            "signs they have",
            partial(claim_tests.controls_matter_more, network="mss", metric=metric),
            numbers,
        )
        for metric, numbers in (
            ("si", (PaperNumber(GAINS, TCP_BBR, ["mss"]), PaperNumber(GAINS, QUIC, ["mss"]))),
            ("plt", (PaperNumber(DELTAS, TCP_BBR, ["mss"], "plt"),)),
        )
    ),
    Claim(
        "lead_mss",
        IN_FLIGHT,
        "Behind MSS QUIC's lead over TCP+ is smaller with BBR (-18 % in SI) than with Cubic (-36 %).",
        "interaction in blocks of four protocols (contrast of contrasts), two-sided",
        partial(claim_tests.lead_shrinks, network="mss", metric="si"),
        (PaperNumber(GAINS, QUIC, ["mss"]), PaperNumber(GAINS, QUIC_BBR, ["mss"])),
    ),
    Claim(
        "tcps_da2gc",
        IN_FLIGHT,
        "Behind DA2GC TCP, TCP+ and TCP+BBR do not differ.",
        "equivalence (two one-sided tests) of each two of them, in SI and PLT",
        partial(
            claim_tests.equivalent, pairs=[TUNED, TUNED_BBR, TCP_BBR], networks=["da2gc"], metrics=HEADLINE_METRICS
        ),
    ),
    Claim(
        "quic_bbr_da2gc",
        IN_FLIGHT,
        "Behind DA2GC QUIC+BBR is not faster than QUIC (PLT, on none of the sites).",
        "mean over sites of the ratio of PLT within blocks, one-sided, beyond the margin of equivalence",
        partial(claim_tests.not_faster, pairs=[QUIC_CONTROL], networks=["da2gc"], metrics=["plt"]),
        (PaperNumber(COUNTS, QUIC_CONTROL, ["da2gc"], "plt"),),
    ),
    Claim(
        "handshake",
        "Abstract; Table 3",
        "QUIC's lead over TCP+ is mostly the round trip that its handshake saves.",
        "slopes of the lead within blocks on the network's RTT, in ms and as shares of TCP+'s time, over all sites and "
        "networks, are 1",
        partial(claim_tests.lead_per_round_trip, pair=QUIC, metric="si"),
        (PaperNumber(DELTAS, QUIC, (*WITHOUT_LOSS, *LOSSY)),),
    ),
    Claim(
        "handshake_dsl_lte",
        "Abstract; Table 3",
        "Without loss (DSL, LTE), QUIC's lead over TCP+ is the round trip that its handshake saves.",
        "slopes of the lead within blocks on the network's RTT, in ms and as shares of TCP+'s time, over all sites and "
        "both networks, are 1",
        partial(claim_tests.lead_per_round_trip, pair=QUIC, metric="si", networks=WITHOUT_LOSS),
        (PaperNumber(DELTAS, QUIC, WITHOUT_LOSS),),
    ),
    Claim(
        "loss",
        "Abstract; Table 3",
        "With loss (DA2GC, MSS) QUIC gains more than the handshake, since lost packets hold up fewer others.",
        "mean lead in round trips within blocks, less the site's behind DSL and LTE, two-sided (no test of the cause)",
        partial(claim_tests.lead_beyond_handshake, pair=QUIC, networks=LOSSY, without_loss=WITHOUT_LOSS, metric="si"),
        (PaperNumber(DELTAS, QUIC, (*WITHOUT_LOSS, *LOSSY)),),
    ),
    Claim(
        "size_and_structure",
        "Evaluation",
        "A site's size and structure have little influence on QUIC's gain.",
        "rank correlation of sites' gains in SI with bytes, requests and servers, mean over networks, is small, also "
        "when corrected for the noise of the runs",
        partial(
            claim_correlations.little_influence,
            pair=QUIC,
            networks=(*WITHOUT_LOSS, *LOSSY),
            metric="si",
            facts=("bytes", "requests", "servers"),
        ),
    ),
    Claim(
        "metrics_disagree",
        "Discussing Metrics; Figure 4",
        "Metrics disagree: a site can be faster in one and slower in another.",
        "sites that are faster in one metric and slower in another within blocks, each tested, Holm over all of them",
        partial(claim_correlations.metrics_disagree, pairs=[Pair("tcp", "quic"), QUIC], metrics=FIGURE_METRICS),
    ),
)


def claims(inputs: ClaimInputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every claim with its verdict, and every number that it rests on.

    The first table has a row for each claim; columns: claim (its name), source (its place in the paper), paper (the
    sentence), number (the paper's own), test, verdict (holds, does not hold, not decided), sentence (the verdict with
    its decisive number), p and p_corrected (of the verdict, or of holding if it is not decided; NaN if something was
    not measured), sites and runs (that the decisive number rests on) and missing (what was not measured).
    The second table has a row for each condition of a claim; columns: claim, decides (False: the number is only shown),
    subject, unit (gain, round trips or correlation), value with low and high (its interval), limit (the threshold in
    words), sites, runs, p_for and p_against (for the claim, and for the opposite), both also corrected, and missing.
    """
    rows, conditions = [], []
    for claim in CLAIMS:
        evidence = claim.test(inputs)
        judged = judge(evidence, inputs.hypotheses.significant_p)
        missing = ", ".join(dict.fromkeys(what for condition in evidence for what in condition.missing))
        size = (judged.decisive.sites, judged.decisive.runs) if judged.decisive else (0, 0)
        said = [claim.name, claim.source, claim.paper, paper_numbers()[claim.name], claim.how]
        rows.append([*said, judged.verdict, judged.sentence, judged.p, judged.p_corrected, *size, missing])
        conditions += [
            {
                **vars(condition),
                "claim": claim.name,
                "p_for_corrected": p_for_corrected(condition),
                "p_against_corrected": p_against_corrected(condition, evidence),
            }
            for condition in evidence
        ]
    table = pd.DataFrame(conditions)[CONDITION_COLUMNS]
    table["missing"] = table["missing"].map(", ".join)
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS), table


class Judged(NamedTuple):
    """The verdict on a claim; a sentence with the decisive number; and that number's condition, None if no number was
    measured. `p`, `p_corrected`: of the claim's opposite if it does not hold, else of the claim; NaN without a
    number."""

    verdict: str
    sentence: str
    decisive: Condition | None = None
    p: float = float("nan")
    p_corrected: float = float("nan")


def judge(conditions: Sequence[Condition], significant_p: float, tested: int = len(CLAIMS)) -> Judged:
    """The verdict on a claim with these conditions, one of `tested` claims."""
    deciding = [condition for condition in conditions if condition.decides]
    measured = [condition for condition in deciding if not condition.missing]
    p_for = [p_for_corrected(condition, tested) for condition in measured]
    # A protocol that is shown to be faster counts as faster, even if it is also shown to differ by less than the
    # margin.
    open_ = [condition for condition, p in zip(measured, p_for, strict=True) if not p < significant_p]
    if open_:
        p_against = [p_against_corrected(condition, conditions, tested) for condition in open_]
        p, strongest = min(zip(p_against, open_, strict=True), key=lambda entry: entry[0])
        if p < significant_p:
            uncorrected = min(1.0, strongest.p_against * len(deciding))
            return Judged(DOES_NOT_HOLD, f"Does not hold: {written(strongest)}.", strongest, uncorrected, p)
    if len(measured) < len(deciding):
        lacks = dict.fromkeys(what for condition in deciding for what in condition.missing)
        return Judged(NOT_DECIDED, f"Not decided: the campaign lacks {', '.join(lacks)}.")
    p, weakest = max(zip(p_for, measured, strict=True), key=lambda entry: entry[0])
    verdict = HOLDS if p < significant_p else NOT_DECIDED
    others = f"; of {len(measured)} numbers this is the least certain" if len(measured) > 1 else ""
    return Judged(verdict, f"{verdict.capitalize()}: {written(weakest)}{others}.", weakest, weakest.p_for, p)


def p_for_corrected(condition: Condition, tested: int = len(CLAIMS)) -> float:
    """The p value for the claim of `condition`, corrected for the number of claims that are `tested`."""
    return float(np.clip(tested * condition.p_for, condition.family_p[0], 1))


def p_against_corrected(condition: Condition, conditions: Sequence[Condition], tested: int = len(CLAIMS)) -> float:
    """The p value against the claim of `condition`, corrected for the number of claims that are `tested`, and of the
    `conditions` of this one that decide."""
    tests = tested * sum(one.decides for one in conditions)
    return float(np.clip(tests * condition.p_against, condition.family_p[1], 1))


@cache
def paper_numbers() -> dict[str, str]:
    """The name of each claim → the paper's numbers for it in words; empty if the paper gives none."""
    paper = read_paper()
    return {claim.name: _paper_numbers(claim, paper) for claim in CLAIMS}


def _paper_numbers(claim: Claim, paper: pd.DataFrame) -> str:
    texts = []
    for wanted in claim.numbers:
        reference, compared = wanted.pair
        of_pair = rows_of(paper, kind=wanted.kind, reference=reference, compared=compared, metric=wanted.metric)
        values = {row["network"]: _written_number(wanted.kind, row["value"]) for row in records(of_pair)}
        places = ", ".join(f"{label(name)} {values[name]}" for name in wanted.networks if name in values)
        if places:
            texts.append(f"{pair_label(compared, reference)} in {label(wanted.metric)}: {places}")
    return "; ".join(texts)


def _written_number(kind: str, value: float) -> str:
    if kind == GAINS:
        return percent(value, 0)
    return f"{value:.0f} of {PAPER_SITES} sites faster" if kind == COUNTS else f"{value:+,.0f} ms"


def balance_of(table: pd.DataFrame, runs: int, sites: int) -> str:
    """A sentence: how many claims of the first table of `claims` hold in a campaign with `runs` valid runs and `sites`
    sites."""
    counts = table["verdict"].value_counts()
    holding, failing, open_ = (int(counts.get(verdict, 0)) for verdict in (HOLDS, DOES_NOT_HOLD, NOT_DECIDED))
    return (
        f"Of {plural('claim', len(table))} of the paper, {holding} {'holds' if holding == 1 else 'hold'} in this "
        f"campaign, {failing} {'does' if failing == 1 else 'do'} not hold, and {open_} {'is' if open_ == 1 else 'are'} "
        f"not decided, by {plural('run', runs)} that count, of {plural('site', sites)}."
    )


def written(condition: Condition) -> str:
    """A condition in words: its subject, value, interval and limit."""
    form = _FORMS[condition.unit]
    numbers = form(condition.value) if np.isfinite(condition.value) else "is unknown"
    if np.isfinite(condition.low) and np.isfinite(condition.high):
        numbers += f" ({form(condition.low)} to {form(condition.high)})"
    return f"{condition.subject} {numbers}" + (f", where {condition.limit}" if condition.limit else "")


_FORMS: dict[str, Callable[[float], str]] = {GAIN: percent, ROUND_TRIPS: "{:.2f}".format, CORRELATION: "{:+.2f}".format}
