"""`python -m measure.status`: how a campaign stands, at any time, also while it runs."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from eyelevel.errors import EyelevelError, reports_errors
from eyelevel.places import RESULTS
from measure.campaign.forecast import Forecast, forecast, in_bytes
from measure.campaign.plan import Run
from measure.campaign.planfile import read_plan
from measure.campaign.progress import in_words
from measure.campaign.results import Row, counted, is_machines_fault, is_over_time, read_document, read_rows, run_folder
from measure.run.evidence import ATTEMPT
from measure.run.films import FilmPolicy
from record import shelf
from tuning import networks


@dataclass(frozen=True)
class Status:
    """How a campaign stands: its runs, those that are done, given up and left, all attempts, which attempts are being
    made right now, and what the rest will take if that can be told."""

    planned: int
    done: int
    given_up: int
    left: tuple[Run, ...]
    rows: tuple[Row, ...]
    current: tuple[str, ...]
    running: bool
    expected: Forecast | None


def status(folder: Path) -> Status:
    """How the campaign in `folder` stands. Raises EyelevelError when there is none."""
    document = read_document(folder)
    if document is None:
        raise EyelevelError(f"{folder} is no campaign: campaign.json is missing")
    settings = document["settings"]
    rows = read_rows(folder)
    planned = [run for block in read_plan(folder) for run in block]
    tried = Counter(row.of for row in rows)
    pardoned = Counter(row.of for row in rows if is_machines_fault(row))
    late = Counter(row.of for row in rows if is_over_time(row))
    valid = {row.of for row in rows if row.valid}
    failed = {run: counted(times, pardoned[run], late[run]) for run, times in tried.items() if run not in valid}
    given_up = {run for run, times in failed.items() if times > settings["repeats"]}
    left = tuple(run for run in planned if run not in valid and run not in given_up)
    try:
        sites = {name: shelf.take(name) for name in settings["sites"]}
        films = FilmPolicy(**document.get("films", {}))
        filmed = settings.get("filmed", True)
        expected = forecast(left, rows, folder, sites, networks.load(), films, filmed=filmed)
    except (EyelevelError, KeyError):  # a site or a network has gone from this machine since
        expected = None
    current = tuple(str(run) for run in left if _being_made(run_folder(folder, run, tried[run] + 1)))
    return Status(len(planned), len(valid), len(given_up), left, tuple(rows), current, _is_running(folder), expected)


def table(rows: Sequence[Row]) -> Table:
    """What was rejected: a row for each gate, a column for each protocol, with examples."""
    rejected = [row for row in rows if not row.valid]
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("rejected by")
    for protocol in protocols:
        shown.add_column(protocol, justify="right")
    shown.add_column("the last was", overflow="fold")
    for gate, _ in Counter(_gate(row) for row in rejected).most_common():
        own = [row for row in rejected if _gate(row) == gate]
        counts = [str(sum(row.protocol == protocol for row in own) or "") for protocol in protocols]
        shown.add_row(gate, *counts, f"{own[-1].of}: {own[-1].reason.partition(': ')[2]}")
    attempts = Counter(row.protocol for row in rows)
    shown.add_section()
    shown.add_row("of attempts", *(str(attempts[protocol]) for protocol in protocols), "")
    return shown


def _gate(row: Row) -> str:
    return row.reason.partition(":")[0]


def _being_made(folder: Path) -> bool:
    return folder.exists() and not (folder / ATTEMPT).exists()


def _is_running(folder: Path) -> bool:
    """Whether a process holds the campaign (`results.opened`); asked without touching its lock."""
    held = f":{folder.stat().st_ino} "
    return any("FLOCK" in line and held in line for line in Path("/proc/locks").read_text().splitlines())


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("campaign")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(campaign: str, as_json: bool) -> None:
    """Tell how CAMPAIGN (a folder in results/, or any path of one) stands.

    Example: python -m measure.status try
    """
    folder = Path(campaign)
    found = status(folder if (folder / "campaign.json").exists() else RESULTS / campaign)
    counts = {"planned": found.planned, "done": found.done, "left": len(found.left), "given_up": found.given_up}
    if as_json:
        gates = Counter(_gate(row) for row in found.rows if not row.valid)
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


if __name__ == "__main__":
    reports_errors(main)()
