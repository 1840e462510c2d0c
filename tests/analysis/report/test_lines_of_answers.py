"""The answer on the first screen, in words and lines."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.first_screens import said
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.report.sections.declared import confirmatory
from analysis.report.sentences import scope, warnings
from analysis.runs import load
from eyelevel.simulate import Truth, write


def test_a_difference_that_is_shown_not_to_matter_is_equivalent_and_told_with_its_size() -> None:
    """The page once said "faster in all 4 (-1.0 %; 4 of these by less than counts as equivalent)"."""
    world = World(effects={"quic": -0.01}, runs=31, scatter=0.005, blocks=0.005)
    findings = findings_of(campaign(world, 1), hypotheses.load())
    text = said(findings)
    size = r"(0\.[89]|1\.[01]) %"
    assert len(re.findall(rf"QUIC against TCP\+: equivalent \({size} faster\), -{size} \(", text)) == 4
    table = confirmatory(findings)
    assert all(re.fullmatch(r"equivalent \((0\.[89]|1\.[01]) % faster\)", text) for text in table.texts["verdict"])
    assert set(table.data["verdict"]) == {"equivalent"}


def test_what_differs_by_more_is_not() -> None:
    world = World(effects={"quic": -0.2}, runs=10)
    findings = findings_of(campaign(world, 1), hypotheses.load())
    assert "equivalent" not in said(findings)
    assert set(confirmatory(findings).texts["verdict"]) == {"faster"}


def test_a_margin_that_these_blocks_could_not_have_shown_is_marked() -> None:
    few = confirmatory(findings_of(campaign(World(runs=5, scatter=0.1), 1), hypotheses.load()))
    assert set(few.texts["verdict"]) == {"not decided"}
    assert few.texts["equivalent within"].str.endswith("†").all()
    assert "not even have shown that a change of 0 is equivalent" in few.note
    # Here chance alone decides whether a contrast is shown to be equivalent.
    many = confirmatory(findings_of(campaign(World(runs=31, scatter=0.02), 1), hypotheses.load()))
    assert not many.texts["equivalent within"].str.endswith("†").any()
    assert "†" not in many.note
    # A decided contrast has no mark, though its margin is out of reach as well.
    large = confirmatory(
        findings_of(campaign(World(effects={"quic": -0.5}, runs=5, scatter=0.1), 1), hypotheses.load())
    )
    decided = large.texts["verdict"] == "faster"
    assert decided.any()
    assert not large.texts.loc[decided, "equivalent within"].str.endswith("†").any()


@pytest.mark.parametrize("metrics", [("si", "plt"), ("fvc",)])
@pytest.mark.parametrize("protocols", [("quic",), ("tcp", "quic")])
def test_a_campaign_without_a_family_has_tables_and_an_answer(
    protocols: tuple[str, ...], metrics: tuple[str, ...], tmp_path: Path
) -> None:
    table = load(write(tmp_path / "c", Truth(sites=2, networks=("dsl",), protocols=protocols, runs=3)))
    absent = [metric for metric in table.metrics if metric not in metrics]
    settings = replace(table.document.settings, networks={}, protocols={})
    table = replace(table, runs=table.runs.drop(columns=absent), document=replace(table.document, settings=settings))
    findings = findings_of(table, hypotheses.load())
    assert confirmatory(findings).texts["verdict"].notna().all()
    assert scope(findings)
    assert warnings(findings)
    assert len(findings["power"]) == 0 or set(findings["power"]["metric"]) <= set(metrics)
