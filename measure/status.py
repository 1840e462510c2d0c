"""How a campaign stands, at any time, also while it runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from base.errors import EyelevelError
from measure.campaign.forecast import Forecast, forecast
from measure.campaign.plan import Run
from measure.campaign.planfile import read_plan
from measure.campaign.results import Row, counted, is_machines_fault, is_over_time, read_document, read_rows, run_folder
from measure.run.evidence import ATTEMPT
from measure.run.films import FilmPolicy
from record import collection
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
        sites = {name: collection.load_site(name) for name in settings["sites"]}
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
    for gate, _ in Counter(gate_of(row) for row in rejected).most_common():
        own = [row for row in rejected if gate_of(row) == gate]
        counts = [str(sum(row.protocol == protocol for row in own) or "") for protocol in protocols]
        shown.add_row(gate, *counts, f"{own[-1].of}: {own[-1].reason.partition(': ')[2]}")
    attempts = Counter(row.protocol for row in rows)
    shown.add_section()
    shown.add_row("of attempts", *(str(attempts[protocol]) for protocol in protocols), "")
    return shown


def gate_of(row: Row) -> str:
    return row.reason.partition(":")[0]


def _being_made(folder: Path) -> bool:
    return folder.exists() and not (folder / ATTEMPT).exists()


def _is_running(folder: Path) -> bool:
    """Whether a process holds the campaign (`results.opened`); asked without touching its lock."""
    held = f":{folder.stat().st_ino} "
    return any("FLOCK" in line and held in line for line in Path("/proc/locks").read_text().splitlines())
