"""`eyelevel results`: print the main results of a campaign as a table."""

from pathlib import Path
from typing import Any

import click

from base.terminal import print_json, terminal
from eyelevel.arguments import begin, campaign_folder
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of


@click.command(params=parameters_of("results"))
def main(campaign: str, as_json: bool) -> None:
    """Print the results of CAMPAIGN (a folder in results/, or a path) so far: the mean of each metric, and its change
    against the first protocol.

    Example: eyelevel results first
    """
    folder = campaign_folder(campaign)
    begin(f"reading {folder}")

    if as_json:
        print_json(document(folder))
        return

    from analysis.report.first_answer import report

    report(folder, terminal())
    suggest(make_line("report", {"CAMPAIGN": campaign}))


def document(folder: Path) -> dict[str, Any]:
    """The results of the campaign in `folder` for other programs. `means`: valid runs, attempts and the mean of each
    metric for each site, network and protocol; `changes`: the change of each metric against the first protocol, as a
    share, with its interval and p value. Raises EyelevelError."""
    from analysis.attempts import means
    from analysis.report.changes import plain_rows
    from analysis.runs import load
    from analysis.samples import samples_of
    from analysis.statistics.gain import gains
    from analysis.statistics.hypotheses import Pair

    campaign = load(folder)
    if campaign.runs.empty:
        return {"means": [], "changes": []}
    pairs = [Pair(campaign.protocols[0], protocol) for protocol in campaign.protocols[1:]]
    samples = samples_of(campaign)
    changes = gains(samples, samples.measured(pairs))
    return {"means": plain_rows(means(campaign.runs)), "changes": plain_rows(changes)}
