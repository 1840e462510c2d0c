"""Figures of the source documents are measured by name, with commands that the program takes."""

import csv
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from analysis.paper.claims import HOLDS
from analysis.text import label
from base.places import PROJECT
from eyelevel.commands import site_info
from eyelevel.commands.reproduce import reproductions
from eyelevel.program import program
from eyelevel.study_command import REPORTED

SOURCES = (PROJECT / "docs" / "contributors" / "sources.md").read_text()
TABLES = PROJECT / "data" / "reference" / "report" / "tables"
# The factors from the tables' units to those of the document.
FACTORS = {"ratio": 100, "ms": 1, "sites of 38": 1}
# The kinds of numbers of the paper, and the beginnings of their rows in the document.
KINDS = {
    "mean_gain": "mean change",
    "max_gain": "largest change",
    "mean_delta": "mean difference",
    "sites_faster": "sites faster",
    "example": "example",
    "rtt_delta": "Table 3",
}


def published(name: str) -> list[dict[str, str]]:
    with (TABLES / name).open(newline="") as file:
        return [*csv.DictReader(file)]


def rows(beginning: str) -> Iterator[list[str]]:
    """The cells of each row of the document whose first cell begins with `beginning` (a regular expression)."""
    yield from (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in SOURCES.splitlines()
        if re.match(rf"\| ({beginning})", line)
    )


def as_the_document_says(claim: dict[str, str]) -> list[str]:
    """The cells that the document has of a row of the table of claims."""
    here = claim["sentence"].partition(": ")[2].removesuffix(".").partition("; post hoc")[0]
    agrees = "yes" if claim["verdict"] == HOLDS else claim["verdict"]
    if claim["missing"]:
        here, agrees = f"not measured: the campaign lacks {claim['missing']}", ""
    return [f"claim `{claim['claim']}`: {claim['paper']}", here, agrees]


def name_of(number: dict[str, str]) -> str:
    """The document's name of a number of the paper: protocols, network, metric, and the site if it is of one."""
    compared, reference, network = (label(number[column]) for column in ("compared", "reference", "network"))
    pair = f"{compared or 'any'} against {reference}" if reference else compared
    metric = " ".join(label(name) for name in number["metric"].split())
    return ", ".join(filter(None, (pair, network, metric, number["site"])))


def test_the_claims_are_those_of_the_reference_s_report() -> None:
    copied = [[what, here, agrees] for what, _, here, agrees, _ in rows("claim ")]
    assert copied == [as_the_document_says(claim) for claim in published("claims.csv")]


def test_the_numbers_are_those_of_the_reference_s_report() -> None:
    copied_rows = rows("|".join(KINDS.values()))
    for (what, _, here, agrees, _), number in zip(copied_rows, published("beside_the_paper.csv"), strict=True):
        assert what.startswith(KINDS[number["kind"]]) and f": {name_of(number)}: " in what
        assert agrees == number["agrees"], what
        if number["missing"]:
            assert here == "not measured"
            continue
        factor = FACTORS[number["unit"]]
        ours = [factor * float(number[name]) for name in ("ours", "ours_low", "ours_high") if number[name]]
        # The document also has the unscaled count of sites.
        copied = re.findall(r"[-+]?[\d,]*\d", here.partition("scaled to 38, ")[2] or here)
        assert [float(text.replace(",", "")) for text in copied] == pytest.approx(ours, abs=0.51), what


@pytest.mark.parametrize("name", reproductions())
def test_the_program_takes_the_command_of_each_figure(name: str) -> None:
    words = shlex.split(reproductions()[name].command)
    with click.Context(program) as context:
        command = program.get_command(context, words[0])
        assert command
        command.make_context(words[0], words[1:], parent=context)
    assert f"`{name}`" in SOURCES


def test_the_list_has_each_figure_with_its_time_and_command() -> None:
    text = CliRunner().invoke(program, ["reproduce"]).output
    for name, one in reproductions().items():
        needs = f"; needs {one.needs}" if one.needs else ""
        assert (
            f"{name}: {one.what}; takes {one.takes} (estimated, two cores){needs}\n    eyelevel {one.command}\n" in text
        )
    assert "takes hours (estimated, two cores); needs 'make setup SERVERS=caddy'\n" in text


def test_a_figure_says_how_long_it_takes_and_then_its_command_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_info, "SITES", tmp_path)
    figure = reproductions()["wolsing-figure1"]
    result = CliRunner().invoke(program, ["reproduce", "wolsing-figure1"])
    assert result.output.startswith(f"{figure.what}; takes {figure.takes} (estimated, two cores): eyelevel site-info\n")
    assert f"there are no sites in {tmp_path}" in str(result.exception)


def test_the_report_of_a_study_is_written_and_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reproductions()["kakhki"].lines == [["grid", "--yes", "--preset", "longlook"], ["report", "longlook"]]
    invoke, called = click.Command.invoke, list[str | None]()

    def noted(self: click.Command, context: click.Context) -> object:
        if isinstance(self, click.Group) or context.find_root().obj is not REPORTED:
            return invoke(self, context)
        called.append(context.info_name)
        return None

    monkeypatch.setattr(click.Command, "invoke", noted)
    assert CliRunner().invoke(program, ["reproduce", "kakhki"]).exit_code == 0
    assert called == ["grid", "report"]


def test_the_paper_is_not_reproduced_with_demo_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("record.collection.recorded_names", lambda: ["demo-news", "demo-news@no-fonts"])
    result = CliRunner().invoke(program, ["reproduce", "wolsing"])
    assert "nothing is recorded in sites/: run 'make record'" in str(result.exception) and not result.output


def test_an_unknown_figure_is_refused_with_the_nearest() -> None:
    result = CliRunner().invoke(program, ["reproduce", "kakhki-vidoe"])
    assert "unknown figure 'kakhki-vidoe': did you mean kakhki-video?" in str(result.exception)
