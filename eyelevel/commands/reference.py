"""`eyelevel reference`: measure the campaign that a file declares, and keep it as a package that can be resumed."""

from typing import Any

import click

from eyelevel.arguments import begin
from eyelevel.make import same_command
from eyelevel.options import parameters_of


@click.command(params=parameters_of("reference"))
def main(**options: Any) -> None:
    """Measure the reference campaign as data/reference.toml declares it, and write it as the package data/reference.

    Missing sites are imported from the corpus and completed. The command resumes where it stopped; on another machine,
    or if the results are missing, it resumes from the package.

    Example: eyelevel reference --budget 2h
    """
    begin(f"reading {options['declaration']}")

    from eyelevel.commands.reference_campaign import measure_reference

    measure_reference(**options, again=same_command("reference", click.get_current_context()))
