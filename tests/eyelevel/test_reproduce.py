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
        assert f"{name}: {one.what} ({one.takes})\n    eyelevel {one.command}\n" in text


def test_a_figure_says_how_long_it_takes_and_then_its_command_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_info, "SITES", tmp_path)
    figure = reproductions()["wolsing-figure1"]
    result = CliRunner().invoke(program, ["reproduce", "wolsing-figure1"])
    assert result.output.startswith(f"{figure.what}; takes {figure.takes}: eyelevel site-info\n")
    assert f"there are no sites in {tmp_path}" in str(result.exception)


def test_an_unknown_figure_is_refused_with_the_nearest() -> None:
    result = CliRunner().invoke(program, ["reproduce", "kakhki-vidoe"])
    assert "unknown figure 'kakhki-vidoe': did you mean kakhki-video?" in str(result.exception)
