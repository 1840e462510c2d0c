"""`eyelevel answer`: record, close, measure and report one site, to answer what HTTP/3 would change for it."""

from typing import Any

import click

from eyelevel.arguments import begin
from eyelevel.make import same_command
from eyelevel.names import require_known_networks
from eyelevel.options import parameters_of


@click.command(params=parameters_of("answer"))
def main(**options: Any) -> None:
    """Answer in one sentence, and on one page, whether HTTP/3 instead of HTTP/2 would load the page at URL, or a SITE,
    faster.

    The command records the page, completes it, measures it on networks, and writes the report. Steps that are done are
    not repeated, so the same command resumes after a stop.

    Example: eyelevel answer https://www.gnu.org/ --net lte,dsl --budget 60m
    """
    require_known_networks(options["net"])
    begin("preparing an answer")

    from eyelevel.answer.answering import answer

    answer(options, same_command("answer", click.get_current_context()))
