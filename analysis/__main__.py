"""`python -m analysis`: the first answer of a campaign."""

import math
from pathlib import Path

import click
import pandas as pd  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from analysis.gain import METRICS, SIGNIFICANT_P, exclusions, gains, in_order, means
from analysis.runs import CampaignTable, load
from eyelevel.errors import reports_errors
from eyelevel.places import RESULTS


def report(folder: Path, console: Console) -> None:
    """Print a table for each network: runs and mean of each metric by site and protocol, gains, exclusions."""
    campaign = load(folder)
    if campaign.runs.empty:
        console.print("nothing has been measured yet")
        return
    reference = campaign.protocols[0]
    for network in campaign.networks:
        runs = campaign.runs[campaign.runs["network"] == network]
        if not runs.empty:
            console.print(network_table(runs, network, campaign.protocols))
    console.print("Means over the valid runs, in ms from navigation start; runs: valid/tried.", style="dim")
    if len(campaign.protocols) > 1:
        sure = f"* p < {SIGNIFICANT_P} (one-way ANOVA)"
        console.print(f"Per cent: gain against {reference}, negative is faster; {sure}.", style="dim")
    for line in exclusion_lines(campaign):
        console.print(line, markup=False, soft_wrap=True)


def network_table(runs: pd.DataFrame, network: str, protocols: tuple[str, ...]) -> Table:
    """The table of one network, from the attempts made behind it."""
    table = Table(title=network, title_justify="left", title_style="bold")
    for name in ("site", "protocol", "runs"):
        table.add_column(name, no_wrap=True)
    for metric in METRICS:
        table.add_column(metric.upper(), justify="right", no_wrap=True)
    against = gains(runs, protocols[0]).set_index(["site", "protocol", "metric"])
    summary = in_order(means(runs), "protocol", protocols).sort_values("site", kind="stable")
    for site, settings in summary.groupby("site"):
        for place, (_, setting) in enumerate(settings.iterrows()):
            cells = [_cell(setting, metric, against) for metric in METRICS]
            count = f"{setting['valid']}/{setting['attempts']}"
            table.add_row("" if place else str(site), setting["protocol"], count, *cells)
        table.add_section()
    return table


def exclusion_lines(campaign: CampaignTable) -> list[str]:
    """What was excluded and why, a line for each network, protocol and gate."""
    excluded = exclusions(campaign.runs)
    if excluded.empty:
        return [f"No attempt of {len(campaign.runs)} was excluded."]
    lines = [f"Excluded: {excluded['excluded'].sum()} of {len(campaign.runs)} attempts."]
    for row in excluded.itertuples():
        lines.append(f"  {row.network} {row.protocol}: {row.excluded} x {row.example}")
    return lines


def _cell(setting: "pd.Series[object]", metric: str, against: pd.DataFrame) -> str:
    value = float(str(setting[metric]))
    if math.isnan(value):
        return "-"
    try:
        found = against.loc[(setting["site"], setting["protocol"], metric)]
    except KeyError:
        return f"{value:.0f}"
    mark = "*" if found["p"] < SIGNIFICANT_P else ""
    return f"{value:.0f} {100 * found['gain']:+.0f}%{mark}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("campaign")
def main(campaign: str) -> None:
    """Print what CAMPAIGN (a folder in results/, or any path of one) has found so far.

    Example: python -m analysis try
    """
    folder = Path(campaign)
    report(folder if (folder / "runs.csv").exists() else RESULTS / campaign, Console(highlight=False))


if __name__ == "__main__":
    reports_errors(main)()
