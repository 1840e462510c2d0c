"""How a campaign stands, at any time, also while it runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from base.errors import EyelevelError
from measure.campaign.counts import AttemptCounts
from measure.campaign.forecast import Forecast, forecast
from measure.campaign.plan import Run
from measure.campaign.planfile import read_plan
from measure.campaign.results import run_folder
from measure.run.evidence import ATTEMPT
from measure.run.films import FilmPolicy
from measure.table import Row, read_rows, require_document
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
    document = require_document(folder)
    repeats = document.settings["repeats"]
    rows = read_rows(folder)
    planned = [run for block in read_plan(folder) for run in block]
    counts = AttemptCounts(rows)
    valid = {row.of for row in rows if row.valid}
    given_up = {row.of for row in rows if counts.is_given_up(row.of, repeats)}
    left = tuple(run for run in planned if counts.is_open(run, repeats))
    try:
        sites = {name: shelf.take(name) for name in document.sites}
        films = FilmPolicy(**document.films)
        expected = forecast(left, rows, folder, sites, networks.load(), films, filmed=document.filmed)
    except (EyelevelError, KeyError):  # a site or a network has gone from this machine since
        expected = None
    current = tuple(str(run) for run in left if _being_made(run_folder(folder, run, counts.attempts(run) + 1)))
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
    for gate, _ in Counter(gate_of(row) for row in rejected).most_common():
        own = [row for row in rejected if gate_of(row) == gate]
        counts = [str(sum(row.protocol == protocol for row in own) or "") for protocol in protocols]
        shown.add_row(gate, *counts, f"{own[-1].of}: {own[-1].reason.text if own[-1].reason else ''}")
    attempts = Counter(row.protocol for row in rows)
    shown.add_section()
    shown.add_row("of attempts", *(str(attempts[protocol]) for protocol in protocols), "")
    return shown


def gate_of(row: Row) -> str:
    """The gate that rejected the attempt; nothing when it counts."""
    return row.reason.gate if row.reason else ""


def _being_made(folder: Path) -> bool:
    return folder.exists() and not (folder / ATTEMPT).exists()


def _is_running(folder: Path) -> bool:
    """Whether a process holds the campaign (`results.opened`); asked without touching its lock."""
    held = f":{folder.stat().st_ino} "
    return any("FLOCK" in line and held in line for line in Path("/proc/locks").read_text().splitlines())
