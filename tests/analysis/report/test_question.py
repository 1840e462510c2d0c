"""The answer of the first screen in words."""

from support.first_screens import findings_of
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.question import answer
from analysis.report.tables import confirmatory


def test_what_differs_by_less_than_counts_as_equivalent_is_told_as_both() -> None:
    world = World(effects={"quic": -0.01}, runs=31, scatter=0.005, blocks=0.005)
    findings = findings_of(campaign(world, 1), hypotheses.load())
    (sentence,) = answer(findings)
    assert sentence.startswith("QUIC against TCP+: faster in all 4 (")
    assert "; 4 of these by less than counts as equivalent)" in sentence
    table = confirmatory(findings)
    assert set(table.texts["verdict"]) == {"faster, within the margin"}
    assert set(table.data["verdict"]) == {"faster"}


def test_what_differs_by_more_is_not() -> None:
    world = World(effects={"quic": -0.2}, runs=10)
    findings = findings_of(campaign(world, 1), hypotheses.load())
    assert "counts as equivalent" not in " ".join(answer(findings))
    assert set(confirmatory(findings).texts["verdict"]) == {"faster"}
