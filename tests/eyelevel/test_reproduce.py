"""Figures of the source documents are measured by name, with commands that the program takes."""

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from base.places import PROJECT
from eyelevel.commands import site_info
from eyelevel.commands.reproduce import reproductions
from eyelevel.program import program
from eyelevel.study_command import REPORTED

SOURCES = (PROJECT / "docs" / "contributors" / "sources.md").read_text()


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
        assert f"{name}: {one.what}; takes {one.takes}{needs}\n    eyelevel {one.command}\n" in text
    assert "takes hours; needs 'make setup SERVERS=caddy'\n" in text


def test_a_figure_says_how_long_it_takes_and_then_its_command_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_info, "SITES", tmp_path)
    figure = reproductions()["wolsing-figure1"]
    result = CliRunner().invoke(program, ["reproduce", "wolsing-figure1"])
    assert result.output.startswith(f"{figure.what}; takes {figure.takes}: eyelevel site-info\n")
    assert f"there are no sites in {tmp_path}" in str(result.exception)


def test_the_report_of_a_study_is_written_and_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reproductions()["kakhki"].lines == [["grid", "--preset", "longlook"], ["report", "longlook"]]
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
