"""`eyelevel reproduce`: measure a figure, table or claim of a source document again."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click

from base.errors import EyelevelError, Misuse
from base.structure import structured
from base.text import unknown
from eyelevel.make import command_lines, targets
from eyelevel.options import parameters_of
from eyelevel.study_command import REPORTED

FIGURES = Path(__file__).parents[1] / "reproduce.toml"


@dataclass(frozen=True)
class Reproduction:
    """A figure, as `reproduce.toml` explains it."""

    what: str
    command: str
    takes: str
    needs: str = ""

    def __str__(self) -> str:
        needs = f"; needs {self.needs}" if self.needs else ""
        return f"{self.what}; takes {self.takes} (estimated, two cores){needs}"

    @property
    def lines(self) -> list[list[str]]:
        """The lines that `make` runs for the command: those of a study write its report, too. Raises EyelevelError."""
        words = shlex.split(self.command)
        target = targets()[words[0]]
        return command_lines(target, target.read(words[1:]))


def reproductions() -> dict[str, Reproduction]:
    """All figures by name."""
    return structured(tomllib.loads(FIGURES.read_text()), dict[str, Reproduction], FIGURES.name)


@click.command(params=parameters_of("reproduce"))
@click.pass_context
def main(context: click.Context, figure: str | None) -> None:
    """Measure FIGURE, a figure, table or claim of a source document, again: print how long it takes, run its command,
    and write the report of a study. Without FIGURE, list all.

    Example: eyelevel reproduce slides-controlled
    """
    figures = reproductions()
    if figure is None:
        for name, one in figures.items():
            click.echo(f"{name}: {one}\n    eyelevel {one.command}")
        return
    if figure not in figures:
        raise Misuse(unknown("figure", figure, figures))
    one = figures[figure]
    require_recorded(one)
    click.echo(f"{one}: eyelevel {one.command}")
    for line in one.lines:
        status = context.find_root().command.main(line, "eyelevel", standalone_mode=False, obj=REPORTED)
        if isinstance(status, int) and status:
            context.exit(status)


def require_recorded(one: Reproduction) -> None:
    """Raise EyelevelError when the figure is of all recordings, but there are none: a campaign would take demo
    sites."""
    from record.collection import recorded_names
    from record.demo import DEMO_SITES
    from record.names import original_of

    if "--sites all" in one.command and all(original_of(name) in DEMO_SITES for name in recorded_names()):
        raise EyelevelError("nothing is recorded in sites/: run 'make record', or import sites ('make import')")
