"""`eyelevel status`: how a campaign stands, at any time, also while it runs."""

import json
from collections import Counter

import click
from rich.console import Console

from eyelevel.options import campaign_argument, campaign_folder
from measure.campaign.forecast import in_bytes
from measure.campaign.progress import in_words
from measure.status import gate_of, status, table


@click.command()
@campaign_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(campaign: str, as_json: bool) -> None:
    """Tell how CAMPAIGN (a folder in results/, or any path of one) stands.

    Example: eyelevel status try
    """
    found = status(campaign_folder(campaign))
    counts = {"planned": found.planned, "done": found.done, "left": len(found.left), "given_up": found.given_up}
    if as_json:
        gates = Counter(gate_of(row) for row in found.rows if not row.valid)
        seconds = found.expected.seconds if found.expected else None
        click.echo(json.dumps({**counts, "running": found.running, "rejected": gates, "seconds_left": seconds}))
        return
    console = Console(highlight=False)
    told = f"{found.done} of {found.planned} runs done, {len(found.left)} left, {found.given_up} given up"
    console.print(f"{told}; {'running' if found.running else 'not running'}")
    if found.left and found.expected:
        console.print(f"left: about {in_words(found.expected.seconds)}, {in_bytes(found.expected.bytes)}")
    for run in found.current if found.running else ():
        console.print(f"now: {run}")
    if any(not row.valid for row in found.rows):
        console.print(table(found.rows))
    elif found.rows:
        console.print(f"none of {len(found.rows)} attempts was rejected")
