"""RUNS=auto: a site gets more runs until the predeclared rule has decided, and none after that."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from factories import ROW, with_metrics

from analysis.hypotheses import DECLARED
from base.errors import EyelevelError
from base.structure import structured
from dataset.plan import write_plan
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, require_document, write_document
from eyelevel.commands.campaign import declared_text, main
from eyelevel.commands.status import main as status
from eyelevel.defaults import MAX_RUNS
from eyelevel.runs import enough_runs, number_of_runs
from measure.campaign.plan import plan
from measure.campaign.results import opened

Times = Callable[[int], float]


def campaign(folder: Path, runs: int, tcp: Times, quic: Times, hypotheses: str = "") -> Path:
    """A campaign with this many runs of two protocols, whose Speed Indexes are functions of the run's number."""
    names: dict[str, Any] = {"sites": {"s": {}}, "networks": {"lte": {}}, "protocols": {"tcp": {}, "quic": {}}}
    document = CampaignDocument(structured({"seed": 1, "runs": 31, "repeats": 2, **names}, CampaignSettings, ""))
    with opened(folder, document, hypotheses) as results:
        for run in range(1, runs + 1):
            for protocol, si in (("tcp", tcp), ("quic", quic)):
                place = f"runs/s/lte/{protocol}/{run}-1"
                results.keep(
                    replace(
                        with_metrics(ROW, si=si(run), plt=si(run)), protocol=protocol, run=run, block=run, folder=place
                    )
                )
    return folder


@pytest.mark.parametrize(
    ("runs", "tcp", "quic", "enough"),
    [
        (5, lambda n: 1000 + n, lambda n: 700 + n, True),
        (4, lambda n: 1000 + n, lambda n: 700 + n, False),
        # Protocols differ by about 3 % within each block, although times in odd blocks are twice those in even blocks.
        (5, lambda n: 1000 * (1 + n % 2), lambda n: 1030 * (1 + n % 2) + n, True),
        (5, lambda n: 1000 + 300 * (n % 2), lambda n: 1330 - 300 * (n % 2), False),
        (31, lambda n: 1000 + 300 * (n % 2), lambda n: 1330 - 300 * (n % 2), True),
    ],
)
def test_a_site_that_is_decided_needs_no_more_runs(
    tmp_path: Path, runs: int, tcp: Times, quic: Times, enough: bool
) -> None:
    folder = campaign(tmp_path / "c", runs, tcp, quic)
    assert enough_runs(folder) == ([("s", "lte")] if enough else [])


def test_status_says_what_was_saved(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c", 5, lambda n: 1000 + n, lambda n: 700 + n)
    document = require_document(folder)
    write_plan(folder, plan(["s"], ["lte"], ["tcp", "quic"], 31, 1))
    undecided = CliRunner().invoke(status, [str(folder), "--json"], catch_exceptions=False)
    assert json.loads(undecided.output)["left"] == 52, "it is not a campaign of RUNS=auto"
    write_document(folder, replace(document, settings=replace(document.settings, auto=True)))
    stands = CliRunner().invoke(status, [str(folder), "--json"], catch_exceptions=False)
    assert {name: json.loads(stands.output)[name] for name in ("planned", "done", "left", "saved")} == {
        "planned": 62,
        "done": 10,
        "left": 0,
        "saved": 52,
    }
    printed = CliRunner().invoke(status, [str(folder)], catch_exceptions=False).output
    assert "RUNS=auto saved 52 of 62 runs (84 %)" in printed


def test_enough_is_what_the_campaign_declared(tmp_path: Path) -> None:
    text = DECLARED.read_text()
    stricter = text.replace("significant_p = 0.01", "significant_p = 1e-30")
    for name, hypotheses, enough in (("declared", text, True), ("stricter", stricter, False), ("old", "", True)):
        folder = campaign(tmp_path / name, 5, lambda n: 1000 + n, lambda n: 700 + n, hypotheses)
        assert bool(enough_runs(folder)) == enough, name


def eyelevel_campaign(results: Path, *options: str | Path) -> str:
    """The message with which `eyelevel campaign` refuses; needs no root."""
    done = CliRunner().invoke(
        main, ["--sites", "demo-light", "--campaign", "c", "--results", str(results), *map(str, options)]
    )
    return str(done.exception)


def test_hypotheses_are_read_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(DECLARED.read_text().replace("significant_p = 0.01", "significant_p = 2"))
    assert "wrong.toml: significant_p is 2.0, must lie between 0 and 1" in eyelevel_campaign(
        tmp_path, "--hypotheses", tmp_path / "wrong.toml"
    )
    assert eyelevel_campaign(tmp_path, "--hypotheses", "/nowhere") == "/nowhere is missing"
    assert not (tmp_path / "c").exists()


def test_a_campaign_declares_what_is_given_and_goes_on_with_its_own(tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.toml", tmp_path / "c"
    mine.write_text(DECLARED.read_text() + "# mine\n")
    assert declared_text(None, folder, None) == DECLARED.read_text()
    assert declared_text(mine, folder, None) == mine.read_text()
    document = CampaignDocument(CampaignSettings(runs=1))
    with opened(folder, document, mine.read_text()):
        begun = require_document(folder)
    assert declared_text(None, folder, begun) == mine.read_text()
    assert declared_text(None, folder, document) == "", "an old campaign declared none"
    (folder / "hypotheses.toml").write_text("another")
    with pytest.raises(EyelevelError, match=r"hypotheses\.toml is missing, or no longer"):
        declared_text(None, folder, begun)


def test_a_broken_campaign_is_told(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is not a campaign: campaign\.json is missing"):
        enough_runs(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "most", "original", "runs"),
    [
        ("5", None, None, 5),
        (None, None, 7, 7),
        (None, None, None, 31),
        ("auto", None, None, MAX_RUNS),
        ("auto", 12, None, 12),
    ],
)
def test_the_number_of_runs(wanted: str | None, most: int | None, original: int | None, runs: int) -> None:
    document = CampaignDocument(CampaignSettings(runs=original)) if original else None
    assert number_of_runs(wanted, most, document) == runs


@pytest.mark.parametrize("wanted", ["0", "-1", "many", "1.5"])
def test_a_number_of_runs_that_is_none_is_told(wanted: str, tmp_path: Path) -> None:
    assert eyelevel_campaign(tmp_path / "r", "--runs", wanted).endswith(f"must be 1 or more, or auto, not '{wanted}'")
    assert not (tmp_path / "r").exists()
