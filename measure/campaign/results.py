"""A campaign's folder: `campaign.json` (what was set), `plan.csv` (what is to be done), `runs.csv` (a row for each
attempt), `verdicts.jsonl` (what was decided of an attempt later), `runs/` (the rest).

A row counts only once its line is whole and on the disk, and is changed only by a verdict that is on the disk.
Nothing here knows how a run is made.
"""

import csv
import errno
import fcntl
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import sync_folder, write_atomically
from measure.campaign.plan import Block, Run, extended
from measure.campaign.planfile import read_plan, write_plan
from measure.campaign.verdicts import Verdict, add_verdict, read_verdicts

RUNS = "runs.csv"
SUPERSEDED = "superseded"

# What rejects a run for the machine's fault, not the page's: it does not count against the run, so often at most.
MACHINES_FAULTS = ("replay", "machine_busy", "clock_shifted")
PARDONS = 10
# What rejects a run that would take as long again: it counts as often against it.
OVER_TIME = "over_time"
OVER_TIME_WEIGHT = 100

# Settings of which more may be added to a campaign that exists.
GROWING = ("sites", "networks", "protocols")


@dataclass(frozen=True)
class Row:
    """One attempt at a run: whether it counts and why not, its metrics (ms), what the servers were asked, and where
    and when it was made: in which block of the plan, on which machine, and what that machine's canary took (ms)."""

    site: str
    network: str
    protocol: str
    run: int
    attempt: int
    valid: bool
    reason: str
    fvc: float | None
    lvc: float | None
    vc85: float | None
    si: float | None
    plt: float | None
    requests: int
    served: int
    missed: int
    exchanges: int
    unrecorded: int
    started_at: str
    seconds: float
    folder: str
    block: int = 0
    machine: str = ""
    canary_cpu_ms: float | None = None
    canary_page_ms: float | None = None

    @property
    def of(self) -> Run:
        """The run that this is an attempt at."""
        return Run(self.site, self.network, self.protocol, self.run)


COLUMNS = tuple(field.name for field in fields(Row))
KINDS = {field.name: field.type for field in fields(Row)}


class Results:
    """The folder of one campaign, held by one process at a time (see `opened`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []
        self._attempts: Counter[Run] = Counter()
        self._pardoned: Counter[Run] = Counter()
        self._late: Counter[Run] = Counter()
        self._valid: dict[Run, str] = {}
        self._verdicts: list[Verdict] = []

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        return self._attempts[run]

    def failures(self, run: Run) -> int:
        """How often `run` has been tried and did not count, for which it may be given up."""
        return counted(self._attempts[run], self._pardoned[run], self._late[run])

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""
        return run in self._valid

    def plan(self, wanted: list[Block]) -> list[Block]:
        """All blocks of the campaign, after adding to its plan what `wanted` has beyond it."""
        before = read_plan(self.folder)
        blocks = extended(before, wanted)
        if len(blocks) != len(before):
            write_plan(self.folder, blocks)
        return blocks

    def run_folder(self, run: Run, attempt: int) -> Path:
        """Where an attempt's evidence lies."""
        return run_folder(self.folder, run, attempt)

    def empty_run_folder(self, run: Run, attempt: int) -> Path:
        """The same, made anew; what an interrupted attempt left there goes."""
        return emptied(self.run_folder(run, attempt))

    def append(self, row: Row) -> None:
        """Add a row; when this returns it survives a power cut."""
        line = _lines([row]).encode()
        with self._runs_csv.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._runs_csv))
                os.fsync(file.fileno())
            except OSError:
                # Half a line would take the next one with it.
                os.ftruncate(file.fileno(), before)
                raise
        self._count(row)

    def decide(self, verdict: Verdict) -> None:
        """Note `verdict` and let `runs.csv` follow it."""
        add_verdict(self.folder, verdict)
        self.follow_verdicts()

    def follow_verdicts(self) -> None:
        """Make `runs.csv` say what the verdicts say, those included that other processes have added meanwhile."""
        verdicts = read_verdicts(self.folder)
        if len(verdicts) == len(self._verdicts):
            return
        self._verdicts = verdicts
        rows = followed(self.rows, verdicts)
        if rows != self.rows:
            write_atomically(self._runs_csv, ",".join(COLUMNS) + "\n" + _lines(rows))
            self.rows, self._valid = [], {}
            self._attempts, self._pardoned, self._late = Counter(), Counter(), Counter()
            for row in rows:
                self._count(row)

    def first_verdict(self, folder: str) -> Verdict | None:
        """The first word on the attempt in `folder`: what was said before it is what its own gates said."""
        return next((verdict for verdict in self._verdicts if verdict.folder == folder), None)

    @property
    def _runs_csv(self) -> Path:
        return self.folder / RUNS

    def _read(self) -> None:
        if not self._runs_csv.exists():
            write_atomically(self._runs_csv, ",".join(COLUMNS) + "\n")
        text = self._runs_csv.read_text()
        if not text.endswith("\n"):  # a power cut in the middle of a line: that run was not finished
            text = text[: text.rfind("\n") + 1]
            write_atomically(self._runs_csv, text)
        for row in read_rows(self.folder):
            self._count(row)
        self.follow_verdicts()

    def _count(self, row: Row) -> None:
        self.rows.append(row)
        self._attempts[row.of] += 1
        self._pardoned[row.of] += is_machines_fault(row)
        self._late[row.of] += is_over_time(row)
        if row.valid:
            if row.of in self._valid:
                raise EyelevelError(f"{self._runs_csv} has two valid rows of {row.of}; remove one by 'make review'")
            self._valid[row.of] = row.folder


def is_machines_fault(row: Row) -> bool:
    """Whether an attempt was rejected for what the machine did, not the page."""
    return not row.valid and row.reason.partition(":")[0] in MACHINES_FAULTS


def is_over_time(row: Row) -> bool:
    """Whether an attempt was rejected since it was not over in the time that it may take."""
    return row.reason.partition(":")[0] == OVER_TIME


def counted(attempts: int, pardoned: int, late: int = 0) -> int:
    """How many of so many attempts count against a run, when so many failed for the machine's fault, and so many were
    not over in time."""
    return attempts - min(pardoned, PARDONS) + OVER_TIME_WEIGHT * late


def run_folder(folder: Path, run: Run, attempt: int) -> Path:
    """Where an attempt's evidence lies in a campaign's `folder`."""
    return folder / "runs" / run.site / run.network / run.protocol / f"{run.number}-{attempt}"


def emptied(folder: Path) -> Path:
    """`folder`, new and empty."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def read_rows(folder: Path) -> list[Row]:
    """The rows of `runs.csv` in a campaign's `folder`, whole lines only. Raises EyelevelError."""
    path = folder / RUNS
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise EyelevelError(f"{folder} is no campaign: {RUNS} is missing") from None
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise EyelevelError(f"{path} has other columns than this version writes; use a new campaign")
    try:
        return [Row(**{name: _value(KINDS[name], cell) for name, cell in row.items()}) for row in reader]
    except (ValueError, TypeError) as error:
        raise EyelevelError(f"{path} is broken: {error}") from None


def followed(rows: Sequence[Row], verdicts: Iterable[Verdict]) -> list[Row]:
    """`rows` as `verdicts` have them, of which the last on an attempt holds.

    An attempt that was accepted after another at the same run had succeeded stays out: each run counts once.
    """
    last = {verdict.folder: verdict for verdict in verdicts}
    valid = {row.of for row in rows if row.valid and row.folder not in last}
    told = []
    for row in rows:
        verdict = last.get(row.folder)
        if verdict is None:
            told.append(row)
        elif verdict.valid and row.of in valid:
            told.append(replace(row, valid=False, reason=f"{SUPERSEDED}: another attempt counts"))
        else:
            told.append(replace(row, valid=verdict.valid, reason=verdict.reason))
            valid |= {row.of} if verdict.valid else set()
    return told


def _lines(rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(getattr(row, column)) for column in COLUMNS] for row in rows)
    return text.getvalue()


def _value(kind: object, cell: str) -> Any:
    if kind is bool:
        return cell == "true"
    if kind is str:
        return cell
    if kind is int:
        return int(cell)
    return float(cell) if cell else None


@contextmanager
def opened(folder: Path, document: Mapping[str, Any]) -> Iterator[Results]:
    """The campaign in `folder`, begun or continued with the settings and versions in `document`.

    Raises EyelevelError when another process has it open, or when it was begun with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _held(folder):
        _sweep(folder)
        _settle(folder, document)
        results = Results(folder)
        results._read()
        sync_folder(folder.parent)
        yield results


def _sweep(folder: Path) -> None:
    """Remove what a write that was broken off has left: its temporary name begins with a dot."""
    for path in [*folder.rglob(".*")]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def following(folder: Path) -> None:
    """Make the `runs.csv` of a campaign follow its verdicts; whoever is measuring it does so in a while."""
    with suppress(Held), _held(folder):
        Results(folder)._read()


class Held(EyelevelError):
    """Another process has the campaign."""


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(f"another process is measuring the campaign {folder.name}") from None
        yield
    finally:
        os.close(descriptor)


def read_document(folder: Path) -> dict[str, Any] | None:
    """The `campaign.json` of the campaign in `folder`, or None when there is none. Raises EyelevelError."""
    path = folder / "campaign.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EyelevelError(f"{path} is broken: {error}") from None
    return document


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two campaigns' `settings` and `versions`, except for what may be added."""
    before, after = _compared(old), _compared(new)
    found = []
    for group in GROWING:
        had, has = before["settings"][group], after["settings"][group]
        found += [f"settings/{group} had {name}" for name in had if name not in has]
        before["settings"][group] = {name: had[name] for name in had if name in has}
        after["settings"][group] = {name: has[name] for name in has if name in had}
    after["settings"]["runs"] = min(before["settings"]["runs"], after["settings"]["runs"])
    # A program that no run needed before may be any.
    after["versions"] = {name: after["versions"].get(name, "absent") for name in before["versions"]}
    leaves, values = _flat(before), _flat(after)
    for key in sorted(leaves.keys() | values.keys()):
        if leaves.get(key) != values.get(key):
            found.append(f"{key} was {leaves.get(key, 'absent')}, is {values.get(key, 'absent')}")
    return found


def _settle(folder: Path, document: Mapping[str, Any]) -> None:
    old = read_document(folder)
    if old is not None and (found := changes(old, document)):
        shown = "; ".join(found[:8]) + (f"; and {len(found) - 8} more" if len(found) > 8 else "")
        raise EyelevelError(f"the campaign {folder.name} was begun otherwise: {shown}; use another campaign name")
    if old is None or _compared(old) != _compared(document) or old.get("study") != document.get("study"):
        write_atomically(folder / "campaign.json", json.dumps(document, indent=1) + "\n")


def _compared(document: Mapping[str, Any]) -> dict[str, Any]:
    compared = {key: document[key] for key in ("settings", "versions")}
    normal: dict[str, Any] = json.loads(json.dumps(compared))
    # What campaigns begun by earlier versions did not say, and did.
    normal["settings"] = {"filmed": True, "limit_s": None, **normal["settings"]}
    networks = normal["settings"].get("networks")
    if isinstance(networks, dict):
        normal["settings"]["networks"] = {name: {"loss_on": "both", **told} for name, told in networks.items()}
    return normal


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every leaf of nested dicts, by its path (`settings/networks/lte/up_mbps`)."""
    if not isinstance(value, dict):
        return {path: value}
    flat = {}
    for key, inner in value.items():
        flat.update(_flat(inner, f"{path}/{key}" if path else key))
    return flat


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    # One row, one line: that is how a torn last row is recognised.
    return " ".join(value.split()) if isinstance(value, str) else value
