"""`eyelevel answer`: what HTTP/3 would change for one site: record, close, measure and report it in one go."""

from pathlib import Path
from typing import Any

import click

from analysis.defaults import PREFIX
from base.places import RESULTS, SITES
from eyelevel.arguments import PATH, begin
from eyelevel.defaults import ANSWER_BUDGET, ANSWER_NETWORKS
from eyelevel.options import OFF_OR_RECORDED, SERVER_RTTS_HELP, THINK_TIME_HELP, allow_private, require_known_networks


@click.command()
@click.argument("url", required=False)
@click.option("--site", help="A site that is recorded or imported already, or the name for that of URL.")
@click.option("--net", help=f"Networks of tuning/networks.toml ({ANSWER_NETWORKS}).")
@click.option("--runs", help="Runs of each protocol behind each network, or auto (unless given): until it is decided.")
@click.option(
    "--budget", help=f"How long all may take, by which the most runs are chosen: 90s, 60m, 2h15m ({ANSWER_BUDGET})."
)
@click.option("--server-rtts", help=SERVER_RTTS_HELP)
@click.option("--think-time", type=click.Choice(OFF_OR_RECORDED), help=THINK_TIME_HELP)
@click.option("--campaign", "name", help=f"The folder in results/; {PREFIX}SITE unless given.")
@click.option("--results", type=PATH, default=RESULTS, help="Another folder for results.")
@click.option("--sites", "folder", type=PATH, default=SITES, help="Another folder than sites/.")
@click.option("--validate/--no-validate", default=True, help="Whether to measure networks and protocols before.")
@click.option("--origin-ca", type=click.Path(path_type=Path, resolve_path=True), help="As of 'eyelevel record'.")
@click.option("--plain", is_flag=True, help="Lines only, for logs.")
@allow_private
def main(**options: Any) -> None:
    """Answer what HTTP/3 in place of HTTP/2 would change for the page at URL, or for a SITE, in one sentence and on one
    page: record it, close it, measure it behind networks, and report. What was done before is not done again, so the
    same command goes on after a stop.

    Example: eyelevel answer https://www.gnu.org/ --net lte,dsl --budget 60m
    """
    require_known_networks(options["net"])
    begin("preparing an answer")

    from eyelevel.commands.answering import answer

    answer(**options)
