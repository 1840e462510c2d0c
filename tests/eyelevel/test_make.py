"""Make's variables are the options of the program's commands."""

import contextlib
import shlex
from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner

from base.errors import EyelevelError
from eyelevel.commands.answer import main as answer
from eyelevel.make import Target, carry_out, command_lines, require_known, same_command, targets
from eyelevel.options import OPTIONS
from eyelevel.program import program

TARGETS = targets()


def lines(name: str, **given: str) -> list[list[str]]:
    return command_lines(TARGETS[name], given)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_the_example_of_each_command_is_one_of_make_that_the_command_takes(target: Target) -> None:
    make_word, name, *variables = shlex.split(target.example)
    assert (make_word, name) == ("make", target.name)
    words = command_lines(target, dict(word.split("=", 1) for word in variables))[0]
    command: click.Command = program
    context = click.Context(program)
    while isinstance(command, click.Group):
        _, below, words = command.resolve_command(context, words)
        assert below is not None
        command = below
    with contextlib.suppress(click.exceptions.Exit):  # of --help
        command.make_context(name, words)


def test_every_option_is_one_of_a_command_that_is_there_and_takes_it() -> None:
    root = click.Context(program)
    for option in OPTIONS:
        for name in set(option.commands) - {"*"}:
            command: click.Command | None = program
            for word in name.split():
                assert isinstance(command, click.Group)
                command = command.get_command(root, word)
            assert command is not None
            names = {text for parameter in command.params for text in (*parameter.opts, parameter.human_readable_name)}
            assert option.click_parameter().opts[0] in names
            assert option.help.endswith(".")


def test_a_variable_is_an_option_a_flag_or_an_argument() -> None:
    assert lines("campaign", NET="lte", YES="1", REPEATABLE="no", VALIDATE="yes") == [
        ["campaign", "--net", "lte", "--as-recorded", "--validate", "--yes"]
    ]
    assert lines("import", FROM="a.har", KEEP_COOKIES="no") == [["import", "a.har"]]
    edit = {"SITE": "shop", "AS": "lean", "DROP": "*.woff2"}
    assert lines("edit", **edit) == [["edit", "--as", "lean", "--drop", "*.woff2", "shop"]]
    assert lines("import", FROM="--help") == [["import", "--", "--help"]]
    with pytest.raises(EyelevelError, match="YES is yes or no, not 'maybe'"):
        lines("campaign", YES="maybe")


def test_what_is_recorded_is_closed_with_the_options_that_both_have() -> None:
    first, second = lines("record", SITES="sites.txt", LIVE="2", NET="cable", ALLOW_PRIVATE="yes")
    assert first[0] == "record" and first[-1] == "sites.txt"
    assert sorted(first[1:-1]) == sorted(["--live", "2", "--net", "cable", "--allow-private"])
    assert second == ["close", "--recorded", "--allow-private"]


def test_a_study_is_measured_and_reported() -> None:
    assert lines("grid", PRESET="mobile") == [["grid", "--preset", "mobile"], ["report", "mobile"]]
    assert lines("grid", CAMPAIGN="c", RESULTS="/r")[1] == ["report", "/r/c"]
    assert lines("figure2") == [["figure2"], ["report", "figure2"]]


@pytest.mark.parametrize(("name", "commands"), [("record", ["record", "close"]), ("grid", ["grid"])])
def test_pages_are_closed_though_one_failed_and_nothing_else_follows_a_failure(name: str, commands: list[str]) -> None:
    called = []

    def fail(line: Sequence[str]) -> int:
        called.append(line[0])
        return 3 if len(called) == 1 else 0

    assert carry_out(TARGETS[name], {}, fail) == 3
    assert called == commands


def test_a_variable_that_no_target_has_is_refused() -> None:
    require_known(["setup", "campaign"], ["SERVERS", "NET", "EYELEVEL_CORPUS", "https_proxy", "TUNING"])
    with pytest.raises(EyelevelError, match="make campaign takes no NETS; did you mean NET"):
        require_known(["campaign"], ["NETS"])
    with pytest.raises(EyelevelError, match="make import takes no SITE; did you mean NAME"):
        require_known(["import"], ["SITE"])
    with pytest.raises(EyelevelError, match="make status takes no XYZ; it takes CAMPAIGN,"):
        require_known(["status"], ["XYZ"])


def test_the_command_that_resumes_has_all_that_was_given() -> None:
    printed = []

    @click.command(params=answer.params)
    @click.pass_context
    def repeated(context: click.Context, /, **_: object) -> None:
        printed.append(same_command("answer", context))

    CliRunner().invoke(
        repeated, ["https://a.example/?x=1&y", "--net", "dsl", "--allow-private"], catch_exceptions=False
    )
    assert sorted(printed[0].split()) == sorted(
        ["make", "answer", "URL='https://a.example/?x=1&y'", "NET=dsl", "ALLOW_PRIVATE=yes"]
    )
