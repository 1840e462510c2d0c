"""`eyelevel try` needs no options, measures once, and ends with the answer, its page and the next command."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from support.figure_layout import draw_nothing

from base.errors import EyelevelError
from dataset.plan import write_plan
from dataset.table import RUNS, read_rows, require_document, write_document
from eyelevel.answer.request import QUESTION
from eyelevel.commands import campaign
from eyelevel.commands.try_ import NETWORK, PROTOCOLS, RUNS_OF_EACH, SITE, main
from eyelevel.make import command_lines, targets
from eyelevel.simulate import Truth, write


def simulated(folder: Path, network: str = NETWORK) -> Path:
    """The campaign of `try` in `folder`, as if it had been measured, and had ended."""
    truth = Truth(1, (network,), PROTOCOLS, RUNS_OF_EACH, effects={"quic": -0.3}, noise_sd=0.02, block_sd=0)
    write(folder, truth, QUESTION)
    document = require_document(folder)
    write_document(folder, replace(document, settings=replace(document.settings, sites={SITE: {}})))
    (folder / RUNS).write_text((folder / RUNS).read_text().replace("site-01", SITE))
    write_plan(folder, [(row.of,) for row in read_rows(folder)])
    return folder


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A function that runs the command, whose loads are simulated, and returns the lines that it prints."""
    draw_nothing(monkeypatch)

    def measured(options: dict[str, Any], console: Console, again: str) -> tuple[Path, bool]:
        assert again.startswith("make try")
        assert (options["net"], options["proto"], options["sites"]) == (NETWORK, ",".join(PROTOCOLS), SITE)
        assert (options["runs"], options["hypotheses"]) == (str(RUNS_OF_EACH), QUESTION)
        return simulated(options["results"] / options["name"]), False

    monkeypatch.setattr(campaign, "measured", measured)

    def lines() -> list[str]:
        outcome = CliRunner().invoke(main, ["--results", str(tmp_path)], catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        return outcome.stdout.splitlines() + outcome.stderr.splitlines()[-1:]

    return lines


def test_it_measures_once_and_ends_with_the_answer_its_page_and_the_next_command(
    tmp_path: Path, attempt: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = attempt()
    sentence, _, report, following = first
    assert re.match(rf"QUIC showed {SITE} \d+\.\d % sooner than TCP\+ on geo \(Speed Index, 95 % interval ", sentence)
    assert sentence.endswith(f" {RUNS_OF_EACH} loads of each).")
    index = tmp_path / "try" / "report" / "index.html"
    assert report == f"report: {index}"
    assert following.startswith("next: make ")
    # The second time, it neither measures nor writes.
    written = index.stat().st_mtime_ns

    def write_again(*_: object) -> None:
        raise EyelevelError("it writes again")

    monkeypatch.setattr("analysis.report.write.report_and_findings", write_again)
    assert attempt() == first
    assert index.stat().st_mtime_ns == written
    # After a change, the report is written again.
    later = index.stat().st_mtime + 1
    os.utime(tmp_path / "try" / RUNS, (later, later))
    with pytest.raises(EyelevelError, match="it writes again"):
        attempt()


def test_another_campaign_of_its_name_is_refused_in_one_line(tmp_path: Path) -> None:
    simulated(tmp_path / "try", "lte")
    with pytest.raises(EyelevelError, match=r"other settings; .*: make try CAMPAIGN=demo$"):
        CliRunner().invoke(main, ["--results", str(tmp_path)], catch_exceptions=False)
    assert json.loads((tmp_path / "try" / "campaign.json").read_text())["settings"]["networks"].keys() == {"lte"}


def test_make_needs_no_variables() -> None:
    assert command_lines(targets()["try"], {}) == [["try"]]
