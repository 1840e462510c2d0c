"""A campaign's folder: `campaign.json` (what was set), `runs.csv` (a row for each attempt), `runs/` (the rest).

A row is on the disk before the next run begins, and counts only once its line is whole. Nothing here
knows how a run is made.
"""

import csv
import fcntl
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from eyelevel.errors import EyelevelError
from eyelevel.files import sync_folder, write_atomically
from measure.plan import Run

# Settings of which more may be added to a campaign that exists.
GROWING = ("sites", "networks", "protocols")


@dataclass(frozen=True)
class Row:
    """One attempt at a run: whether it counts and why not, its metrics (ms), what the servers were asked."""

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


COLUMNS = tuple(field.name for field in fields(Row))


class Results:
    """The folder of one campaign, held by one process at a time (see `opened`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._attempts: dict[Run, int] = {}
        self._valid: set[Run] = set()

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        return self._attempts.get(run, 0)

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""
        return run in self._valid

    def run_folder(self, run: Run, attempt: int) -> Path:
        """An empty folder for an attempt; what an interrupted one left there goes."""
        folder = self.folder / "runs" / run.site / run.network / run.protocol / f"{run.number}-{attempt}"
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder

    def append(self, row: Row) -> None:
        """Add a row; when this returns it survives a power cut."""
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(_cell(getattr(row, column)) for column in COLUMNS)
        with self._runs_csv.open("a") as file:
            file.write(line.getvalue())
            file.flush()
            os.fsync(file.fileno())
        self._count(row.site, row.network, row.protocol, row.run, row.valid)

    @property
    def _runs_csv(self) -> Path:
        return self.folder / "runs.csv"

    def _read(self) -> None:
        if not self._runs_csv.exists():
            write_atomically(self._runs_csv, ",".join(COLUMNS) + "\n")
        text = self._runs_csv.read_text()
        if not text.endswith("\n"):  # a power cut in the middle of a line: that run was not finished
            text = text[: text.rfind("\n") + 1]
            write_atomically(self._runs_csv, text)
        reader = csv.DictReader(io.StringIO(text))
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise EyelevelError(f"{self._runs_csv} has other columns than this version writes; use a new campaign")
        for row in reader:
            self._count(row["site"], row["network"], row["protocol"], int(row["run"]), row["valid"] == "true")

    def _count(self, site: str, network: str, protocol: str, number: int, valid: bool) -> None:
        run = Run(site, network, protocol, number)
        self._attempts[run] = self.attempts(run) + 1
        if valid:
            self._valid.add(run)


@contextmanager
def opened(folder: Path, document: Mapping[str, Any]) -> Iterator[Results]:
    """The campaign in `folder`, begun or continued with the settings and versions in `document`.

    Raises EyelevelError when another process has it open, or when it was begun with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EyelevelError(f"another process is measuring the campaign {folder.name}") from None
        _settle(folder, document)
        results = Results(folder)
        results._read()
        sync_folder(folder.parent)
        yield results
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
    if old is None or _compared(old) != _compared(document):
        write_atomically(folder / "campaign.json", json.dumps(document, indent=1) + "\n")


def _compared(document: Mapping[str, Any]) -> dict[str, Any]:
    compared = {key: document[key] for key in ("settings", "versions")}
    normal: dict[str, Any] = json.loads(json.dumps(compared))
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
