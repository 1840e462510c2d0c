"""`python -m benchmarks.films`: the cost of a film and its exactness, compared with FFmpeg's, and the analysis's
cost."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from base.errors import reports_errors
from benchmarks.films.agreement import agreement_table
from benchmarks.films.analysis import analysis_table
from benchmarks.films.bounds import bounds_table
from benchmarks.films.costs import costs_table
from benchmarks.films.effects import effects_table
from benchmarks.films.marks import marks_table

HELP = {"help_option_names": ["-h", "--help"]}


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for loads, which is removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="eyelevel-films-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


@click.group(context_settings=HELP, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Print what films cost and how exact they are, by the product's recorder and by FFmpeg in the same run.

    Without a command, all parts are measured with few loads, in about 20 minutes. Run it on an idle machine, as root.

    Example: python -m benchmarks.films costs --loads 5
    """
    if context.invoked_subcommand is None:
        for command in (costs, bounds, marks, effects, agreement, analysis):
            context.invoke(command)


@main.command(context_settings=HELP)
@click.option("--loads", default=3, show_default=True, help="Loads of each page in each way.")
@click.option("--slow/--no-slow", default=True, help="Also demo-news on MSS, a minute a load.")
def costs(loads: int, slow: bool) -> None:
    """Processor time of film and screen: recorder, FFmpeg, no film.

    Example: python -m benchmarks.films costs --loads 5
    """
    with scratch() as folder:
        text = costs_table(folder, loads, slow=slow)
        click.echo(f"Processor time of a film (ms; medians of {loads} loads, one on MSS)\n{text}\n")


@main.command(context_settings=HELP)
@click.option("--loads", default=2, show_default=True, help="Loads of each page in each way.")
def bounds(loads: int) -> None:
    """Pages that never stop moving: processor time and bytes of their films a second.

    Example: python -m benchmarks.films bounds
    """
    with scratch() as folder:
        click.echo(f"Pages that never stop moving ({loads} loads)\n{bounds_table(folder, loads)}\n")


@main.command(context_settings=HELP)
@click.option("--loads", default=1, show_default=True, help="Loads of each page, with 80 changes each.")
def marks(loads: int) -> None:
    """How much later a change appears in the film than in the page.

    Example: python -m benchmarks.films marks --loads 3
    """
    with scratch() as folder:
        click.echo(f"Changes on the screen after the page's own mark (ms)\n{marks_table(folder, loads)}\n")


@main.command(context_settings=HELP)
@click.option("--blocks", default=3, show_default=True, help="Blocks of two loads, filmed and not, of each page.")
def effects(blocks: int) -> None:
    """PLT and FCP of filmed loads, divided by those of loads without a film, in randomised blocks.

    Example: python -m benchmarks.films effects --blocks 40
    """
    with scratch() as folder:
        click.echo(f"Filmed over not filmed ({blocks} blocks)\n{effects_table(folder, blocks)}\n")


@main.command(context_settings=HELP)
@click.option("--loads", default=4, show_default=True, help="Loads that both film.")
def agreement(loads: int) -> None:
    """Visual metrics of loads that the recorder and FFmpeg film together.

    Example: python -m benchmarks.films agreement --loads 60
    """
    with scratch() as folder:
        click.echo(f"Recorder less FFmpeg, after the shift of the zero (ms)\n{agreement_table(folder, loads)}\n")


@main.command(context_settings=HELP)
@click.option("--turns", default=3, show_default=True, help="How often each takes its turn.")
def analysis(turns: int) -> None:
    """The cost of analysing a film, including all files that a run keeps. Browsertime's script, for comparison,
    computes only metrics.

    Example: python -m benchmarks.films analysis --turns 5
    """
    with scratch() as folder:
        click.echo(f"Analysis of a film\n{analysis_table(folder, turns)}\n")


if __name__ == "__main__":
    reports_errors(main)()
