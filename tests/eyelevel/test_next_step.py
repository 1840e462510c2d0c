"""The last line of a command is the next command."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from analysis.report.conclusion import Conclusion
from base.places import PROJECT, RESULTS
from eyelevel import measuring
from eyelevel.commands import campaign
from eyelevel.next_step import after_campaign, after_report
from eyelevel.simulate import Truth, write
from eyelevel.study_command import study_command
from measure.campaign.campaign import Campaign
from studies.ladder import STUDY
from studies.study import Measurement

LOADS = {"SITE": "shop", "NET": "lte", "PROTO": "tcp+,quic"}


def test_after_a_campaign_comes_its_report(tmp_path: Path) -> None:
    folder = write(tmp_path / "a b", Truth(1, ("lte",), ("tcp+", "quic"), 1))
    assert after_campaign(folder) == f"make report CAMPAIGN='{folder}'"


def test_a_campaign_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "c", Truth(1, ("lte",), ("tcp+", "quic"), 1))
    monkeypatch.setattr(campaign, "measured", lambda options, console: (folder, False))
    done = CliRunner().invoke(campaign.main, [], catch_exceptions=False)
    assert "No attempt of 2 was rejected." in done.stdout
    assert done.stderr.splitlines()[-1] == f"next: {after_campaign(folder)}"


@pytest.mark.parametrize("by_make", [True, False])
def test_a_study_names_its_report_unless_make_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_make: bool
) -> None:
    if by_make:
        monkeypatch.setenv("MAKELEVEL", "1")
    else:
        monkeypatch.delenv("MAKELEVEL", raising=False)
    truth = Truth(1, ("lte",), ("tcp+", "quic"), 1)
    monkeypatch.setattr(measuring, "carry_out", lambda *_: write(tmp_path / STUDY.command, truth))
    study = replace(STUDY, campaign=lambda _: Measurement(cast("Campaign", None)))
    done = CliRunner().invoke(study_command(study), ["--results", str(tmp_path)], catch_exceptions=False)
    assert ("next: make report" in done.stderr) != by_make


def test_a_campaign_without_a_run_that_counts_is_looked_into(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", Truth(1, ("lte",), ("tcp+", "quic"), 1, excluded={"tcp+": 1, "quic": 1}))
    assert after_campaign(folder) == f"make status CAMPAIGN={folder}"


@pytest.mark.parametrize(
    ("runs", "has_loads", "step"),
    [
        (24, True, "make campaign CAMPAIGN=c RUNS=24 RESULTS="),
        (None, True, "make waterfall CAMPAIGN="),
        (None, False, "make package CAMPAIGN="),
    ],
)
def test_after_a_report_comes_what_it_lacks(tmp_path: Path, runs: int | None, has_loads: bool, step: str) -> None:
    folder = tmp_path / "c"
    (folder / ("runs" if has_loads else "report")).mkdir(parents=True)
    assert after_report(folder, Conclusion(("yes",), runs, LOADS)).startswith(step)


def test_a_study_is_handed_on_and_a_package_resumed() -> None:
    assert after_report(RESULTS / "grid", None) == "make package CAMPAIGN=grid"
    package = PROJECT / "data" / "reference"
    assert after_report(package, None) == f"make campaign PACKAGE={package}"
