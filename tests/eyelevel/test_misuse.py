"""Every command refuses a wrong command line in one line, with exit status 2."""

from collections.abc import Iterator

import click
import pytest

from eyelevel.commands.compare import NOT_DECIDED_STATUS, WORSE_STATUS
from eyelevel.program import program, status_of


def commands(command: click.Command, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, with the words that call it."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for below in command.list_commands(context):
        inner = command.get_command(context, below)
        assert inner is not None
        yield from commands(inner, (*name, below))


COMMANDS = list(commands(program))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[" ".join(name) for name, _ in COMMANDS])
def test_an_unknown_option_and_an_empty_value_are_refused(
    name: tuple[str, ...], command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    taking = [one for one in command.params if one.type is not click.UNPROCESSED and not getattr(one, "is_flag", False)]
    wrong = {(*name, "--nonsense"): "No such option"} if name != ("replay",) else {}
    for parameter in taking:
        words = ("",) if isinstance(parameter, click.Argument) else (parameter.opts[0], "")
        wrong[*name, *words] = "it is empty; give it a value, or leave it out"
    for line, text in wrong.items():
        assert status_of(line) == 2, line
        [printed] = capsys.readouterr().err.splitlines()
        assert printed.startswith("eyelevel: ") and text in printed and f"{' '.join(name)} --help" in printed


def test_each_way_to_end_has_a_status_of_its_own() -> None:
    assert len({0, 1, 2, WORSE_STATUS, NOT_DECIDED_STATUS}) == 5
