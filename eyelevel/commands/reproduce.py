"""`eyelevel reproduce`: measure a figure, table or claim of a source document again."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click

from base.errors import Misuse
from base.structure import structured
from base.text import unknown
from eyelevel.options import parameters_of

FIGURES = Path(__file__).parents[1] / "reproduce.toml"


@dataclass(frozen=True)
class Reproduction:
    """A figure, as `reproduce.toml` explains it."""

    what: str
    command: str
    takes: str


def reproductions() -> dict[str, Reproduction]:
    """All figures by name."""
    return structured(tomllib.loads(FIGURES.read_text()), dict[str, Reproduction], FIGURES.name)


@click.command(params=parameters_of("reproduce"))
@click.pass_context
def main(context: click.Context, figure: str | None) -> None:
    """Measure FIGURE, a figure, table or claim of a source document, again: print how long it takes, and run its
    command. Without FIGURE, list all.

    Example: eyelevel reproduce slides-controlled
    """
    figures = reproductions()
    if figure is None:
        for name, one in figures.items():
            click.echo(f"{name}: {one.what} ({one.takes})\n    eyelevel {one.command}")
        return
    if figure not in figures:
        raise Misuse(unknown("figure", figure, figures))
    one = figures[figure]
    click.echo(f"{one.what}; takes {one.takes}: eyelevel {one.command}")
    status = context.find_root().command.main(shlex.split(one.command), "eyelevel", standalone_mode=False)
    context.exit(status if isinstance(status, int) else 0)
