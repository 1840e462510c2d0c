"""The clauses of a verdict on the first screen: pages that differ, slow loads and metrics that contradict it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.first_screens import said
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import LazyFindings, findings_of
from analysis.report.sections.declared import confirmatory
from analysis.report.sentences import headlines
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Hypotheses

DECLARED = hypotheses.load()
# A margin as large as LTE's is for a page of 1.6 s.
NARROW = replace(DECLARED, equivalence_margin=0.03)


def pages(gains: Sequence[float], runs: int, seed: int, declared: Hypotheses = DECLARED) -> LazyFindings:
    """The findings on a campaign in which QUIC's times differ by these `gains`, one for each site."""
    table = campaign(World(sites=len(gains), runs=runs), seed)
    of_site = dict(zip(sorted(set(table.runs["site"])), gains, strict=True))
    factor = 1 + table.runs["site"].map(of_site).where(table.runs["protocol"] == "quic", 0)
    return findings_of(changed(table, si=factor, plt=factor), declared)


def changed(table: CampaignTable, **factors: Any) -> CampaignTable:
    """`table` with its metrics multiplied by these factors."""
    return replace(table, runs=table.runs.assign(**{name: table.runs[name] * by for name, by in factors.items()}))


def differ(findings: LazyFindings) -> bool:
    text = said(findings)
    return "Pages differ, so the answer is about these pages on average. " in text


@pytest.mark.parametrize("seed", range(5))
def test_pages_that_differ_are_named_in_the_verdict(seed: int) -> None:
    """Ten pages, three runs, true gains with a standard deviation of 22 %: it was said in one of ten campaigns."""
    gains = np.expm1(np.random.default_rng([seed, 1]).normal(np.log(0.87), 0.22, 10))
    findings = pages(gains.tolist(), 3, seed)
    text = said(findings)
    match = re.search(
        r"average\. (?:SI|PLT) on (?:DSL|LTE): (\d+) of 10 are faster, from -(\d+) % to \+?(-?\d+) %, the next page "
        r"like these: -(\d+) % to \+(\d+) %; also ",
        text,
    )
    assert match, text
    faster, least, most, low, high = map(int, match.groups())
    assert (gains < -0.1).sum() <= faster <= (gains < 0.1).sum()
    assert -least == pytest.approx(100 * gains.min(), abs=16)
    assert most == pytest.approx(100 * gains.max(), abs=16)
    assert low > least and high > most


@pytest.mark.parametrize("seed", range(4))
def test_half_faster_and_half_slower_are_no_equivalence(seed: int) -> None:
    """14 pages, five runs, by twice the margin: *equivalent*, with no warning, was said in nine of ten campaigns."""
    findings = pages([-0.06, 0.064] * 7, 5, seed, NARROW)
    text = said(findings)
    assert "equivalent" not in text
    assert differ(findings)
    assert set(confirmatory(findings).data["verdict"]) <= {"equal on average", "not decided", "faster", "slower"}


def test_equal_on_average_is_said_as_such() -> None:
    findings = pages([-0.06, 0.064] * 7, 10, 2, NARROW)
    text = said(findings)
    assert text.count(": equal on average, not page by page, ") == 4
    beginning = "On average, QUIC shows these 14 pages about as soon as TCP+, but not page by page, on DSL and LTE."
    assert text.startswith(beginning)
    assert set(confirmatory(findings).texts["verdict"]) == {"equal on average, not page by page"}
    assert all(
        "; on these pages on average; pages differ: 7 of 14 are faster, from " in one for one in headlines(findings)
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_decided_for_pages_of_both_signs_says_so(seed: int) -> None:
    """Half 20 % faster and half 25 % slower, ten pages, three runs: nothing was said in ten of ten campaigns."""
    assert differ(pages([-0.2, 0.25] * 5, 3, seed))


@pytest.mark.parametrize(("runs", "sites"), [(3, 10), (10, 12)])
def test_pages_that_are_alike_do_not_differ(runs: int, sites: int) -> None:
    """At most one in 100 such campaigns (tests/analysis/statistics/test_heterogeneity.py)."""
    assert not any(differ(pages([-0.1] * sites, runs, seed)) for seed in range(3, 6))
    text = said(pages([0.0] * 12, 31, 1))
    assert text.count(": equivalent, ") == 4
    assert text.startswith("On average, QUIC shows these 12 pages about as soon as TCP+ on DSL and LTE.")


def with_long_loads(protocol: str, seed: int) -> LazyFindings:
    """QUIC is 7 % faster in 14 of 15 loads (7.5 % slower, if `protocol` is another), and the fifteenth load over
    `protocol` takes five times as long."""
    table = campaign(World(sites=8, runs=31, effects={"quic": -0.07 if protocol == "quic" else 0.075}), seed)
    factor, draw = np.ones(len(table.runs)), np.random.default_rng([seed, 2])
    for network in ("dsl", "lte"):
        places = np.flatnonzero((table.runs["protocol"] == protocol) & (table.runs["network"] == network))
        factor[draw.permutation(places)[: len(places) // 15]] = 5
    return findings_of(changed(table, si=factor, plt=factor), DECLARED)


@pytest.mark.parametrize(("protocol", "signs"), [("quic", "-+"), ("tcp+", "+-")])
def test_slow_loads_that_contradict_the_typical_load_are_named(protocol: str, signs: str) -> None:
    """The page said *faster* in eight of ten such campaigns, and nothing of the mean."""
    typical, mean = map(re.escape, signs)
    name = re.escape({"quic": "QUIC", "tcp+": "TCP+"}[protocol])
    text = said(with_long_loads(protocol, 1))
    pattern = (
        rf" Slow loads contradict the answer\. \w+ on \w+: typical load {typical}[3-8] %, mean {mean}\d\d %"
        rf"(, 95th percentile {mean}\d+ %)?: one load in 1[2-8] over {name} is long"
    )
    assert re.search(pattern, text), text


def test_slow_loads_of_both_protocols_alike_contradict_nothing() -> None:
    table = campaign(World(sites=8, runs=31, effects={"quic": -0.1}, heavy=True), 1)
    assert "Slow loads" not in said(findings_of(table, DECLARED))


def with_lcp(gain: float, seed: int, declared: Hypotheses) -> LazyFindings:
    """QUIC's Speed Index is 10 % lower (12 pages, 10 runs), and its LCP differs by `gain`; LCP scatters as SI does."""
    table = campaign(World(sites=12, runs=10, effects={"quic": -0.1}), seed)
    noise = np.exp(np.random.default_rng([seed, 3]).normal(0, 0.05, len(table.runs)))
    factor = np.where(table.runs["protocol"] == "quic", (1 + gain) / 0.9, 1)
    return findings_of(replace(table, runs=table.runs.assign(lcp=1.3 * table.runs["si"] * noise * factor)), declared)


OLD = replace(DECLARED, family_metrics=("si", "plt"))


@pytest.mark.parametrize(("declared", "name"), [(OLD, r"LCP \(not declared\)"), (DECLARED, "LCP")])
def test_a_metric_that_does_not_follow_is_named(declared: Hypotheses, name: str) -> None:
    """LCP was only in a table of differences in ms."""
    findings = with_lcp(0.0, 1, declared)
    text = said(findings)
    assert re.search(rf" {name} does not follow SI\. [+-][0-2]\.\d % on DSL and [+-][0-2]\.\d % on LTE\.", text), text
    assert "PLT does not" not in text and "PLT contradicts" not in text
    for sentence in headlines(findings):
        assert re.search(rf": faster; {name} does not follow SI: [+-][0-2]\.\d %\.", sentence), sentence


@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.06, r"contradicts SI\. \+\d"), (0.0, r"does not follow SI\. "), (-0.1, "")],
)
def test_a_metric_is_named_by_how_it_contradicts(gain: float, words: str) -> None:
    text = said(with_lcp(gain, 1, OLD))
    assert re.search(rf"LCP \(not declared\) {words}", text) if words else "LCP" not in text
