"""`eyelevel answer`: record, close, measure and report one site, to answer what HTTP/3 would change for it."""

from typing import Any

import click

from eyelevel.arguments import begin
from eyelevel.make import same_command
from eyelevel.names import require_known_networks
from eyelevel.options import parameters_of


@click.command(params=parameters_of("answer"))
def main(**options: Any) -> None:
    """Answer what HTTP/3 in place of HTTP/2 would change for the page at URL, or for a SITE, in one sentence and on one
    page: record it, close it, measure it behind networks, and report. Steps that were done before are not done again,
    so the same command resumes after a stop.

    Example: eyelevel answer https://www.gnu.org/ --net lte,dsl --budget 60m
    """
    require_known_networks(options["net"])
    begin("preparing an answer")

    from eyelevel.answer.answering import answer

    answer(options, same_command("answer", click.get_current_context()))
