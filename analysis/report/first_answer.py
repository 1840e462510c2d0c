"""The first answer of a campaign, for a terminal."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.attempts import SETTING, exclusions, means
from analysis.report.conditions import of_conditions
from analysis.runs import CampaignTable, load, metrics_in, rows_of
from analysis.samples import samples_of
from analysis.statistics.gain import gains, in_order
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.text import NOTHING, label_with_unit
from base.terminal import print_line
from tuning.devices import described


def report(folder: Path, console: Console) -> None:
    """Print a table for each network: runs, mean of each metric by site and protocol, changes, exclusions."""
    campaign = load(folder)
    if campaign.runs.empty:
        console.print("nothing has been measured yet")
        return
    reference = campaign.protocols[0]
    pairs = [Pair(reference, protocol) for protocol in campaign.protocols[1:]]
    samples = samples_of(campaign)
    gain_table = gains(samples, samples.measured(pairs))
    for network in campaign.networks:
        runs = rows_of(campaign.runs, network=network)
        if not runs.empty:
            client = campaign.clients[network]
            title = network if network == client.network else f"{client.network} in {described(client.program)}"
            of_network = rows_of(gain_table, network=network)
            table_of = partial(network_table, title, runs, campaign.protocols, of_network)
            console.print(*fitting_tables(console, table_of, metrics_in(runs)))
    most = campaign.valid.groupby(SETTING).size().max()
    values = "One valid run each" if most == 1 else "Means over the valid runs"
    console.print(f"{values}; times from navigation start. Runs: valid/attempts.", style="dim")
    if pairs:
        text = f"Change against {reference}: negative is faster; * p < {SIGNIFICANT_P} (the paper's one-way ANOVA)."
        console.print(text, style="dim")
    for line in [*of_conditions(campaign.document), *exclusion_lines(campaign)]:
        print_line(console, line)


def fitting_tables(console: Console, table_of: Callable[[Sequence[str]], Table], metrics: Sequence[str]) -> list[Table]:
    """The tables of `metrics`: one table, or as many as are needed so that none is wider than the screen."""
    table, half = table_of(metrics), (len(metrics) + 1) // 2
    unlimited = console.options.update(width=sys.maxsize)
    if half == len(metrics) or console.measure(table, options=unlimited).maximum <= console.width:
        return [table]
    return [one for part in (metrics[:half], metrics[half:]) for one in fitting_tables(console, table_of, part)]


def network_table(
    title: str, runs: pd.DataFrame, protocols: tuple[str, ...], gain_table: pd.DataFrame, metrics: Sequence[str]
) -> Table:
    """The table of one network in `metrics`, from its attempts and their gains. A protocol's changes stand below it."""
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("site", overflow="fold")
    for name in ("protocol", "runs"):
        table.add_column(name, no_wrap=True)
    for metric in metrics:
        table.add_column(Text(label_with_unit(metric).replace(" ", "\n")), justify="right")
    gains_of = gain_table.set_index(["site", "compared", "metric"]).sort_index()
    summary = in_order(means(runs), protocol=protocols).sort_values("site", kind="stable")
    for site, settings in summary.groupby("site"):
        name = str(site)
        for _, setting in settings.iterrows():
            count = f"{setting['valid']}/{setting['attempts']}"
            table.add_row(Text(name), Text(setting["protocol"]), count, *(_mean(setting[metric]) for metric in metrics))
            name = ""
            if (site, setting["protocol"]) in gains_of.index:
                rows = gains_of.loc[(site, setting["protocol"])]
                texts = (_gain(rows.loc[metric]) if metric in rows.index else NOTHING for metric in metrics)
                table.add_row("", "  change", "", *texts)
        table.add_section()
    return table


def exclusion_lines(campaign: CampaignTable) -> list[str]:
    """The excluded attempts and their reasons, one line for each network, protocol and gate."""
    table = exclusions(campaign.runs)
    if table.empty:
        return [f"No attempt of {len(campaign.runs)} was rejected."]
    lines = [f"Rejected: {table['excluded'].sum()} of {len(campaign.runs)} attempts."]
    for row in table.itertuples():
        lines.append(f"  {row.network} {row.protocol}: {row.excluded} x {row.example}")
    return lines


def _mean(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.0f}"


def _gain(row: "pd.Series[float]") -> str:
    if math.isnan(row["gain"]):
        return NOTHING
    return f"{100 * row['gain']:+.1f}%" + ("*" if row["p"] < SIGNIFICANT_P else " ")
