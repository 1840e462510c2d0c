"""`python -m analysis.stopping`: which sites behind which networks need no more runs, for a campaign of RUNS=auto.

The rule is that of `analysis.sequential`; it is asked for Speed Index, each protocol against the first.
"""

from pathlib import Path

import click

from analysis.runs import CampaignTable, load
from analysis.sequential import decide
from eyelevel.errors import reports_errors

METRICS = ("si",)


def decided(campaign: CampaignTable) -> list[tuple[str, str]]:
    """Site and network of all that are decided, as far as has been measured."""
    reference, *others = campaign.protocols
    found = []
    for (site, network), runs in campaign.valid.groupby(["site", "network"], sort=False):
        ordered = runs.sort_values("run", kind="stable")
        times = {
            str(name): {metric: own[metric].tolist() for metric in METRICS}
            for name, own in ordered.groupby("protocol", sort=False)
        }
        if not decide(times, [(reference, other) for other in others], METRICS).go_on:
            found.append((str(site), str(network)))
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Print a line for each site and network of the campaign in FOLDER that is decided: their names and a tab.

    Example: python -m analysis.stopping results/try
    """
    for site, network in decided(load(folder)):
        click.echo(f"{site}\t{network}")


if __name__ == "__main__":
    reports_errors(main)()
