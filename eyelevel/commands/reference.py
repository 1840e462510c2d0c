"""`eyelevel reference`: measure the campaign that a file declares, and keep it as a package, from which it goes on."""

from typing import Any

import click

from base.places import RESULTS
from eyelevel.arguments import PATH, begin
from eyelevel.defaults import CORPUS_VARIABLE, DECLARATION
from eyelevel.options import BUDGET_HELP


@click.command()
@click.option("--declaration", type=PATH, default=DECLARATION, help="Another file than data/reference.toml.")
@click.option(
    "--into",
    type=PATH,
    help="The package that it goes on from and that it writes; beside the declaration unless given.",
)
@click.option(
    "--corpus", type=PATH, help=f"The folder with the recordings: {CORPUS_VARIABLE} unless given, or ../shared/corpus."
)
@click.option("--campaign", "name", help="The folder in results/; named after the declaration unless given.")
@click.option("--budget", help=BUDGET_HELP)
@click.option("--results", type=PATH, default=RESULTS, help="Another folder for results.")
@click.option("--validate/--no-validate", default=True, help="Whether to measure networks and protocols before.")
@click.option(
    "--estimate", is_flag=True, help="Tell what is to be measured, and how long it takes, and measure nothing."
)
@click.option("--plain", is_flag=True, help="Lines only, for logs.")
def main(**options: Any) -> None:
    """Measure the reference campaign as data/reference.toml declares it, and write it as the package data/reference.

    Sites that are not there are imported from the corpus, and closed. It goes on where it stopped; on another machine,
    or where its results are gone, from the package.

    Example: eyelevel reference --budget 2h
    """
    begin(f"reading {options['declaration']}")

    from eyelevel.commands.reference_campaign import measure_reference

    measure_reference(**options)
