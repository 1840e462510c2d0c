"""`eyelevel results`: print the main results of a campaign as a table."""

import click

from base.terminal import terminal
from eyelevel.arguments import begin, campaign_folder
from eyelevel.options import parameters_of


@click.command(params=parameters_of("results"))
def main(campaign: str) -> None:
    """Print the results of CAMPAIGN (a folder in results/, or a path) so far.

    Example: eyelevel results try
    """
    folder = campaign_folder(campaign)
    begin(f"reading {folder}")

    from analysis.report.first_answer import report

    report(folder, terminal())
