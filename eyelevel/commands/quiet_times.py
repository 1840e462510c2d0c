"""`eyelevel quiet-times`: compute how shorter quiet times would have changed the runs of a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError, Misuse
from base.files import write_file
from base.terminal import plain_table, print_json, print_line, terminal
from base.words import plural
from eyelevel.arguments import begin, campaign_folder
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


# At most this many attempts are named that are left out.
SHOWN_OMISSIONS = 3


@click.command(params=parameters_of("quiet-times"))
def main(campaigns: tuple[str, ...], candidates: str, file: Path | None, as_json: bool) -> None:
    """Show, for each network, how shorter quiet times would have changed the runs of each CAMPAIGN (a folder in
    results/, or a path). The runs stay unchanged.

    A page has finished when, after its load event, no response to it has ended for the quiet time (quiet_ms in
    networks.toml) and none is under way.

    Example: eyelevel quiet-times first --quiet-ms 1000,2000
    """
    times_ms = [text.strip() for text in candidates.split(",")]
    if not all(text.isdecimal() and int(text) for text in times_ms):
        raise Misuse(f"--quiet-ms takes whole numbers of ms, separated by commas, not {candidates!r}")
    folders = [campaign_folder(campaign) for campaign in campaigns]
    begin(f"reading {', '.join(campaigns)}")

    from measure.campaign.quiet_times import run_changes, summary

    outcome = run_changes(folders, [int(text) for text in times_ms])
    for line in outcome.omissions[:SHOWN_OMISSIONS]:
        click.echo(f"left out: {line}", err=True)
    if (more := len(outcome.omissions) - SHOWN_OMISSIONS) > 0:
        click.echo(f"left out: {plural('more attempt', more)}", err=True)
    table = outcome.table
    if table.empty and outcome.omissions:
        raise EyelevelError("no attempt has the evidence that this needs (see above)")
    if table.empty or not table["valid"].any():
        raise EyelevelError("no valid run had a longer quiet time than these, so none shows what they would change")
    if file:
        write_file(file, table.to_csv(index=False))
    console, numbers = terminal(), summary(table)
    if as_json:
        from analysis.report.changes import plain_rows

        print_json(plain_rows(numbers))
        return
    for network, of_network in table[table["valid"]].groupby("network", sort=False):
        console.print(network_table(str(network), numbers[numbers["network"] == network]))
        for line in network_lines(of_network):
            print_line(console, line)
        console.print()


def network_table(network: str, numbers: pd.DataFrame) -> Table:
    """The table of one network: one row for each quiet time in `numbers` (`measure.campaign.quiet_times.summary`)."""
    from analysis.text import label
    from measure.campaign.quiet_times import METRICS, STATISTICS

    table = plain_table(title=network, title_style="bold")
    changes = [f"{label(name)} earlier\nms" for name in METRICS]
    for column in ("quiet time\nms", "later\nresponse", "later\nchange", *changes, "gates\n+/-"):
        table.add_column(column, justify="right")
    for row in numbers.to_dict("records"):
        changes = ["/".join(f"{row[f'{name}_{part}']:.0f}" for part in STATISTICS) for name in METRICS]
        shares = (row["late_responses"], row["late_changes"])
        counts = [f"{share * row['runs']:.0f} ({100 * share:.0f} %)" for share in shares]
        table.add_row(f"{row['quiet_ms']}", *counts, *changes, f"{row['rejected']}/{row['accepted']}")
    return table


def network_lines(runs: pd.DataFrame) -> list[str]:
    """A summary of the runs on one network (`measure.campaign.quiet_times.run_changes`), and the conclusion."""
    from measure.campaign.quiet_times import MARGIN, sufficient_ms

    each = runs.drop_duplicates(["campaign", "site", "protocol", "run", "attempt"])
    kept = " or ".join(f"{value:g}" for value in sorted(each["kept_ms"].unique()))
    low, middle, high = each["lag_ms"].quantile([0.05, 0.5, 0.95])
    sufficient = sufficient_ms(runs)
    conclusion = (
        f"{sufficient} ms would have changed nothing, and is at least {MARGIN} times as long"
        if sufficient
        else f"no quiet time here is both without effect and at least {MARGIN} times as long"
    )
    return [
        f"{plural('run', len(each))} of {plural('site', each['site'].nunique())}, ended after {kept} ms without a "
        f"request, {(each['open_requests'] > 0).sum()} of them with requests under way. Later: in how many runs; "
        "earlier: median/p95/worst; gates: how many more attempts they would reject, and how many fewer.",
        f"The longest pause before a later response or change was {each['pause_ms'].max():.0f} ms: {conclusion}.",
        f"Browsers ended {middle:.0f} ms (90 %: {low:.0f} to {high:.0f}) later than computed here.",
    ]
