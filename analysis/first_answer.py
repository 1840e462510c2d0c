"""The first answer of a campaign."""

import math
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from analysis.gain import SIGNIFICANT_P, exclusions, gains, in_order, means
from analysis.hypotheses import Pair
from analysis.runs import METRICS, CampaignTable, load
from analysis.samples import samples


def report(folder: Path, console: Console) -> None:
    """Print a table for each network: runs and mean of each metric by site and protocol, gains, exclusions."""
    campaign = load(folder)
    if campaign.runs.empty:
        console.print("nothing has been measured yet")
        return
    reference = campaign.protocols[0]
    pairs = [Pair(reference, protocol) for protocol in campaign.protocols[1:]]
    measured = samples(campaign)
    against = gains(measured, [pair for pair in pairs if {reference, pair.compared} <= set(measured.protocols)])
    for network in campaign.networks:
        runs = campaign.runs[campaign.runs["network"] == network]
        if not runs.empty:
            console.print(network_table(runs, network, campaign.protocols, against[against["network"] == network]))
    console.print("Means over the valid runs, in ms from navigation start. Runs: valid/tried.", style="dim")
    if len(campaign.protocols) > 1:
        sure = f"* p < {SIGNIFICANT_P} (one-way ANOVA)"
        console.print(f"Gain against {reference}: negative is faster; {sure}.", style="dim")
    for line in exclusion_lines(campaign):
        console.print(line, markup=False, soft_wrap=True)


def network_table(runs: pd.DataFrame, network: str, protocols: tuple[str, ...], gained: pd.DataFrame) -> Table:
    """The table of one network, from the attempts made behind it and their gains, which stand below their protocol."""
    table = Table(
        title=network,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("site", overflow="fold")
    for name in ("protocol", "runs"):
        table.add_column(name, no_wrap=True)
    for metric in METRICS:
        table.add_column(metric.upper(), justify="right", no_wrap=True)
    against = gained.set_index(["site", "compared", "metric"]).sort_index()
    summary = in_order(means(runs), "protocol", protocols).sort_values("site", kind="stable")
    for site, settings in summary.groupby("site"):
        name = str(site)
        for _, setting in settings.iterrows():
            count = f"{setting['valid']}/{setting['attempts']}"
            table.add_row(name, setting["protocol"], count, *(_mean(setting[metric]) for metric in METRICS))
            name = ""
            if (site, setting["protocol"]) in against.index:
                gained = against.loc[(site, setting["protocol"])]
                table.add_row(
                    "",
                    "  gain",
                    "",
                    *(_gain(gained.loc[metric]) if metric in gained.index else "-" for metric in METRICS),
                )
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


def _mean(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"


def _gain(found: "pd.Series[float]") -> str:
    if math.isnan(found["gain"]):
        return "-"
    return f"{100 * found['gain']:+.1f}%" + ("*" if found["p"] < SIGNIFICANT_P else " ")
