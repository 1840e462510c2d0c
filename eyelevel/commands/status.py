"""`eyelevel status`: how a campaign stands, at any time, also while it runs."""

import json
from collections import Counter

import click
from rich.console import Console

from analysis.auto_runs import saved_line, saving
from eyelevel.commands.campaign import enough_runs
from eyelevel.options import campaign_argument, campaign_folder
from measure.campaign.campaign import never_enough
from measure.campaign.forecast import in_bytes
from measure.campaign.progress import clock_in, in_words
from measure.status import last_rejections, rejections, status, troubles
from measure.table import require_document


@click.command()
@campaign_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(campaign: str, as_json: bool) -> None:
    """Print how CAMPAIGN (a folder in results/, or any path of one) stands.

    Example: eyelevel status try
    """
    folder = campaign_folder(campaign)
    is_auto = require_document(folder).settings.get("auto", False)
    now = status(folder, enough_runs if is_auto else never_enough)
    counts = {"planned": now.planned, "done": now.done, "left": len(now.open_runs), "given_up": now.given_up}
    if is_auto:
        counts["spared"] = now.spared
    if as_json:
        gates = Counter(row.gate for row in now.rows if not row.valid)
        seconds = now.expected.seconds if now.expected else None
        state = {"running": now.running, "lanes": now.lanes, "rejected": gates, "seconds_left": seconds}
        click.echo(json.dumps({**counts, **state}))
        return
    console = Console(highlight=False)
    rejected = sum(not row.valid for row in now.rows)
    runs = f"{now.done} of {now.planned} runs done, {len(now.open_runs)} left, {now.given_up} given up"
    lanes = f" in {now.lanes} lanes" if now.lanes > 1 else ""
    attempts = f"{rejected} of {len(now.rows)} attempts rejected"
    console.print(f"{runs}; {attempts}; {'running' if now.running else 'not running'}{lanes}", soft_wrap=True)
    if now.spared:
        console.print(saved_line(saving(folder, enough_runs(folder))), markup=False, soft_wrap=True)
    if now.open_runs and now.expected:
        rest = f"left: about {in_words(now.expected.seconds)}, {in_bytes(now.expected.bytes)}"
        end = f"done {clock_in(now.expected.seconds)}{'' if now.running else ' if it went on now'}"
        console.print(f"{rest}; {end}", soft_wrap=True)
    for run in now.current if now.running else ():
        console.print(f"now: {run}", markup=False, soft_wrap=True)
    for line in troubles(now, folder):
        console.print(f"wrong: {line}", style="yellow", markup=False, soft_wrap=True)
    if any(not row.valid for row in now.rows):
        console.print(rejections(now.rows))
        for line in last_rejections(now.rows):
            console.print(line, markup=False, soft_wrap=True)
