"""The paper's claims: sentences of the paper, each with its own test on the campaign.

K. Wolsing, J. Rüth, K. Wehrle, O. Hohlfeld: A Performance Perspective on Web Optimized Protocol Stacks: TCP+TLS+HTTP/2
vs. QUIC (ANRW 2019). `claims.toml` has the claims. Each is tested at the threshold of the hypotheses, corrected for
the number of declared claims by Bonferroni's method, whether a campaign can test all of them or not. So the probability
that any verdict on a declared claim is wrong is at most that threshold. (Each claim is either true or false, so it can
be judged wrongly in one way only, and its two tests count once. Holm's method is not used: it is not proven to control
verdicts in two directions.)
A claim holds if all its conditions are shown to hold: its p value is the largest of theirs, which needs no correction
for their number (intersection-union test: Berger 1982, Multiparameter hypothesis testing and acceptance sampling). It
does not hold if the opposite of one condition is shown: its p value is then the smallest of theirs times the number of
conditions. Otherwise it is not decided. A contrast of the declared family is also corrected in the family, and the
larger of both corrected p values counts. So no claim says more of a contrast than the contrast's verdict does.
A campaign declared the claims that were there when it declared its hypotheses: these are corrected for their number
then, so later claims change nothing about them. A later claim is post hoc: it is corrected for the number of all
claims, and says so. Claims that no campaign can test do not count.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.paper import claim_tests
from analysis.paper.claim_correlations import few_gain_more, little_influence, metrics_disagree, spread_alike
from analysis.paper.claim_tests import CORRELATION, GAIN, ROUND_TRIPS, Claim, ClaimInputs, Condition, Test
from analysis.paper.comparison import PAPER_SITES, read_paper
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.text import label, pair_label, percent, plural
from base.structure import structured

HOLDS, DOES_NOT_HOLD = "holds", "does not hold"
CLAIM_COLUMNS = ["claim", "source", "paper", "number", "test", "verdict", "sentence", "p", "p_corrected", "sites"]
CLAIM_COLUMNS += ["runs", "missing"]
CONDITION_COLUMNS = ["claim", "decides", "subject", "unit", "value", "low", "high", "limit", "sites", "runs"]
CONDITION_COLUMNS += ["p_for", "p_for_corrected", "p_against", "p_against_corrected", "missing"]

# The tests, by their names in `claims.toml`.
TESTS: dict[str, Test] = {
    **dict.fromkeys(claim_tests.PAIR_TESTS, claim_tests.compare_pairs),
    "controls_matter_more": claim_tests.controls_matter_more,
    "lead_shrinks": claim_tests.lead_shrinks,
    "lead_per_round_trip": claim_tests.lead_per_round_trip,
    "lead_beyond_handshake": claim_tests.lead_beyond_handshake,
    "lead_grows": claim_tests.lead_grows,
    "little_influence": little_influence,
    "spread_alike": spread_alike,
    "few_gain_more": few_gain_more,
    "not_tested": claim_tests.not_tested,
    "metrics_disagree": metrics_disagree,
}
DECLARED = Path(__file__).with_suffix(".toml")
CLAIMS = structured(tomllib.loads(DECLARED.read_text()), dict[str, Claim], DECLARED.name)
# Those that a campaign may be able to test.
TESTABLE = [claim for claim in CLAIMS.values() if not claim.needs]
# The metrics of the paper's Figure 3.
FIGURE_METRICS = CLAIMS["metrics_disagree"].metrics
# The unit of a condition → how its value is written.
FORMS: dict[str, Callable[[float], str]] = {GAIN: percent, ROUND_TRIPS: "{:.2f}".format, CORRELATION: "{:+.2f}".format}
# The kind of a number of the paper → how it is written.
PAPER_FORMS: dict[str, Callable[[float], str]] = {
    "mean_gain": partial(percent, digits=0),
    "mean_delta": "{:+,.0f} ms".format,
    "sites_faster": f"{{:.0f}} of {PAPER_SITES} sites faster".format,
}


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
    paper = _by_contrast(read_paper())
    rows, numbers = [], []
    for name, claim in CLAIMS.items():
        conditions = TESTS[claim.test](inputs, claim)
        tested, is_later = family_of(claim, inputs.hypotheses.origin.declared_at)
        verdict, sentence, decisive, p, p_corrected = judge(conditions, inputs.hypotheses.significant_p, tested)
        if is_later and decisive:
            sentence = f"{sentence[:-1]}; post hoc, since the claim was declared after the campaign."
        size = (decisive.sites, decisive.runs) if decisive else (0, 0)
        said = [name, claim.source, claim.paper, paper_numbers(claim, paper), claim.how]
        rows.append([*said, verdict, sentence, p, p_corrected, *size, _missing(conditions)])
        for condition in conditions:
            p_for, p_against = corrected(condition, conditions, tested)
            of_claim = {"claim": name, "p_for_corrected": p_for, "p_against_corrected": p_against}
            numbers.append({**vars(condition), **of_claim, "missing": ", ".join(condition.missing)})
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS), pd.DataFrame(numbers)[CONDITION_COLUMNS]


def _by_contrast(paper: pd.DataFrame) -> dict[tuple[str, ...], dict[str, float]]:
    """The paper's numbers: kind, reference, compared and metric → network → number."""
    numbers = defaultdict[tuple[str, ...], dict[str, float]](dict)
    columns = paper[["network", "value", "kind", "reference", "compared", "metric"]]
    for network, value, *key in columns.itertuples(index=False):
        numbers[tuple(key)][network] = value
    return numbers


def family_of(claim: Claim, declared_at: str) -> tuple[int, bool]:
    """The number of claims for which `claim` is corrected in a campaign that declared its hypotheses at `declared_at`
    (empty or no time: never), and whether the claim was declared later."""
    begun = _time(declared_at)

    def is_later(one: Claim) -> bool:
        return bool(begun and (declared := _time(one.declared)) and declared > begun)

    tested = TESTABLE if is_later(claim) else [one for one in TESTABLE if not is_later(one)]
    return len(tested), is_later(claim)


def _time(text: str) -> datetime | None:
    """The time in ISO 8601, in UTC unless it has an offset; None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _missing(conditions: Sequence[Condition]) -> str:
    """The data that any of `conditions` lacks."""
    return ", ".join(dict.fromkeys(what for condition in conditions for what in condition.missing))


class Judged(NamedTuple):
    """The verdict on a claim; a sentence with the decisive number; and that number's condition, None if no number was
    measured. `p`, `p_corrected`: of the claim's opposite if it does not hold, else of the claim; NaN without a
    number."""

    verdict: str
    sentence: str
    decisive: Condition | None = None
    p: float = float("nan")
    p_corrected: float = float("nan")


def judge(conditions: Sequence[Condition], significant_p: float, tested: int = len(TESTABLE)) -> Judged:
    """The verdict on a claim with these conditions, one of `tested` claims."""
    deciding = [condition for condition in conditions if condition.decides]
    measured = [(*corrected(one, conditions, tested), one) for one in deciding if not one.missing]
    # A protocol that is shown to be faster counts as faster, even if it is also shown to differ by little.
    if open_ := [(p_against, one) for p_for, p_against, one in measured if not p_for < significant_p]:
        p, strongest = min(open_, key=itemgetter(0))
        if p < significant_p:
            uncorrected = min(1.0, strongest.p_against * len(deciding))
            return Judged(DOES_NOT_HOLD, f"Does not hold: {written(strongest)}.", strongest, uncorrected, p)
    if len(measured) < len(deciding):
        return Judged(NOT_DECIDED, f"Not decided: the campaign lacks {_missing(deciding)}.")
    p, _, weakest = max(measured, key=lambda one: (one[0], one[2].p_for))  # corrected p values end at 1
    verdict = HOLDS if p < significant_p else NOT_DECIDED
    others = f"; of {len(measured)} numbers this is the least certain" if len(measured) > 1 else ""
    return Judged(verdict, f"{verdict.capitalize()}: {written(weakest)}{others}.", weakest, weakest.p_for, p)


def corrected(
    condition: Condition, conditions: Sequence[Condition], tested: int = len(TESTABLE)
) -> tuple[float, float]:
    """The p values for and against the claim of `condition`, corrected for the number of claims that are `tested`, and
    the latter also for the `conditions` of this one that decide."""
    p_values = [tested * condition.p_for, tested * sum(one.decides for one in conditions) * condition.p_against]
    p_for, p_against = np.clip(p_values, condition.family_p, 1).tolist()
    return p_for, p_against


def paper_numbers(claim: Claim, paper: Mapping[tuple[str, ...], Mapping[str, float]]) -> str:
    """The numbers of `paper` (kind, reference, compared and metric → network → number) for a claim, in words; empty if
    it gives none."""
    texts = []
    for pair, metric in product(claim.pairs, claim.metrics):
        numbers = paper.get((claim.numbers, *pair, metric), {})
        values = {name: PAPER_FORMS[claim.numbers](number) for name, number in numbers.items()}
        if places := [f"{label(name)} {values[name]}" for name in claim.networks if name in values]:
            texts.append(f"{pair_label(pair.compared, pair.reference)} in {label(metric)}: {', '.join(places)}")
    return "; ".join(texts)


def balance_of(table: pd.DataFrame, runs: int, sites: int) -> str:
    """A sentence: how many claims of the first table of `claims` hold in a campaign of these `runs` and `sites`."""
    counts = table["verdict"].value_counts()
    holding, failing, open_ = (int(counts.get(verdict, 0)) for verdict in (HOLDS, DOES_NOT_HOLD, NOT_DECIDED))
    return (
        f"{holding} of {plural('claim', len(table))} of the paper {'holds' if holding == 1 else 'hold'} in this "
        f"campaign, {failing} {'does' if failing == 1 else 'do'} not hold, and {open_} {'is' if open_ == 1 else 'are'} "
        f"not decided, by {plural('run', runs)} that count, of {plural('site', sites)}."
    )


def written(condition: Condition) -> str:
    """A condition in words: its subject, value, interval and limit."""
    form = FORMS[condition.unit]
    numbers = form(condition.value) if np.isfinite(condition.value) else "is unknown"
    if np.isfinite(condition.low) and np.isfinite(condition.high):
        numbers += f" ({form(condition.low)} to {form(condition.high)})"
    return f"{condition.subject} {numbers}" + (f", where {condition.limit}" if condition.limit else "")
