"""The head of the page counts what was planned, not only what was measured."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.report.sections.paper import gains_by_site
from analysis.report.sentences import account, runs_per_setting, scope, warnings
from analysis.runs import CampaignTable
from dataset.plan import write_plan
from dataset.table import WITHDRAWN, GivenUp, Run, write_given_up

WORLD = campaign(World(sites=4, runs=6), 1)
SITES: dict[str, dict[str, Any]] = {f"s0{number}": {} for number in range(4)}
TABLE = replace(WORLD, document=replace(WORLD.document, settings=replace(WORLD.document.settings, sites=SITES)))


def without(column: str, value: str) -> CampaignTable:
    """The campaign TABLE, changed so that all runs with this `value` in `column` failed."""
    is_lost = TABLE.runs[column] == value
    runs = TABLE.runs.assign(valid=TABLE.runs["valid"] & ~is_lost)
    return replace(TABLE, runs=runs.assign(reason=runs["reason"].mask(is_lost, "load_failed: no")))


def test_a_whole_campaign_has_what_it_was_to_have() -> None:
    findings = findings_of(TABLE, hypotheses.load())
    assert scope(findings).startswith("4 sites on DSL and LTE over TCP, TCP+ and QUIC. ")
    assert runs_per_setting(findings) == (6, 6)


@pytest.mark.parametrize(
    ("column", "value", "beginning"),
    [
        ("site", "s01", "3 of 4 sites on DSL and LTE over TCP, TCP+ and QUIC. "),
        ("protocol", "quic", "4 sites on DSL and LTE over TCP, TCP+ and QUIC. "),
        ("network", "lte", "4 sites on DSL and LTE over TCP, TCP+ and QUIC. "),
    ],
)
def test_what_has_no_run_that_counts_is_counted(column: str, value: str, beginning: str) -> None:
    """The page once said "6 valid runs of each setting" although some settings had none."""
    findings = findings_of(without(column, value), hypotheses.load())
    assert scope(findings).startswith(beginning)
    assert runs_per_setting(findings) == (0, 6)
    assert "0 to 6 of each setting" in scope(findings)


def test_runs_that_were_planned_tried_and_count_are_one_account(tmp_path: Path) -> None:
    """Two attempts at a run are one run, and planned runs without an attempt were not tried."""
    runs, tried = TABLE.runs, len(TABLE.runs)
    again = runs[:1].assign(valid=False, reason="film_unclean: no")
    findings = findings_of(
        replace(TABLE, runs=pd.concat([again, runs], ignore_index=True), folder=tmp_path), hypotheses.load()
    )
    end = f"{tried} were tried ({tried + 1} attempts), and {tried} count: 6 of each setting."
    assert account(findings) == end.replace("were", "runs were")
    write_plan(tmp_path, [(Run("s01", "dsl", "tcp", number),) for number in range(1000)])
    assert account(findings) == f"1,000 runs were planned, {end}"


def test_what_was_withdrawn_is_said_with_the_reason(tmp_path: Path) -> None:
    """A site that was not withdrawn, but given up because all its loads failed, gets another sentence. A site has one
    warning for all its networks."""
    reasons = {"s01": f"{WITHDRAWN}: its picture turns", "s02": "load_failed: no"}
    entries = [GivenUp(site, "lte", reason, 12, "then") for site, reason in reasons.items()]
    write_given_up(tmp_path, [*entries, replace(entries[0], network="dsl", runs=5)])
    texts = warnings(findings_of(replace(TABLE, folder=tmp_path), hypotheses.load()))
    withdrawn = "s01 was withdrawn on LTE and DSL. Its runs there do not count, and 17 were not made. "
    failed = "s02 failed alike over all protocols on LTE. So 12 of its runs were not made; the last reason was, on "
    assert f"{withdrawn}LTE: its picture turns. DSL: its picture turns." in texts
    assert f"{failed}LTE: load_failed: no." in texts


def test_the_numbers_of_runs_are_those_of_each_metric() -> None:
    """Two runs over QUIC have no SI, but other metrics; they are too few of 48 for all the others to be left out."""
    table = campaign(World(sites=8, runs=6), 1)
    runs = table.runs.copy()
    runs.loc[
        runs.index[(runs["site"] == "s01") & (runs["protocol"] == "quic") & (runs["network"] == "dsl")][:2], "si"
    ] = None
    findings = findings_of(replace(table, runs=runs), hypotheses.load())
    texts = gains_by_site(findings, findings.declared.family[0]).texts.set_index(["network", "site"])["runs"]
    assert sorted(re.split(r"; ", texts["DSL", "s01"])) == ["6, 4 (SI)", "6, 6 (PLT)"]
    assert texts["DSL", "s02"] == "6, 6"
