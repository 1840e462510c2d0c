"""Later decisions on attempts: from the comparison with later runs, or by a person.

`verdicts.jsonl` has one line for each verdict, in the order in which they were given; the last one on an attempt holds.
Lines are only ever added, and each is on the disk before it takes effect in `runs.csv`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from base.clock import now_iso
from base.files import lock
from base.structure import from_json, to_json
from dataset.reading import read_text
from dataset.reasons import Reason
from dataset.table import Row

VERDICTS = "verdicts.jsonl"
PERSON = "review"


@dataclass(frozen=True)
class Verdict:
    """A verdict on an attempt (by its folder): whether it counts, and why; who decided (`review` is a person, else a
    gate), and when; the previous entry in `runs.csv`; and the person's name, if given. A verdict of a person that
    changes nothing (`decides` is false) says that the person looked at the film."""

    folder: str
    valid: bool
    reason: str
    by: str
    at: str
    was_valid: bool
    was_reason: str
    who: str = ""

    @property
    def decides(self) -> bool:
        """Whether it changes the entry in `runs.csv`."""
        return (self.valid, self.reason) != (self.was_valid, self.was_reason)

    @classmethod
    def of(cls, row: Row, reason: Reason | None, *, by: str, valid: bool = False, who: str = "") -> "Verdict":
        """The verdict of `by` on the attempt in `row`, given now."""
        return cls(row.folder, valid, str(reason or ""), by, now_iso(), row.valid, str(row.reason or ""), who)


def read_verdicts(campaign: Path) -> list[Verdict]:
    """All verdicts in the campaign's folder, without a truncated last line. Raises EyelevelError."""
    path = campaign / VERDICTS
    try:
        lines = read_text(path).split("\n")
    except FileNotFoundError:
        return []
    return [from_json(line, Verdict, f"{path} is broken") for line in lines[:-1] if line]


def looked_at(campaign: Path) -> set[str]:
    """The attempts (by their folders) whose films a person looked at, whether or not that changed what counts. Raises
    EyelevelError."""
    return {verdict.folder for verdict in read_verdicts(campaign) if verdict.by == PERSON}


def state_of_verdicts(campaign: Path) -> tuple[int, int] | None:
    """A value that changes whenever a verdict is added in the campaign's folder; None if there is no verdict yet."""
    try:
        status = (campaign / VERDICTS).stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def add_verdict(campaign: Path, verdict: Verdict) -> None:
    """Add `verdict`. After this returns, the verdict survives a power cut. Any process may call this at any time."""
    descriptor = os.open(campaign / VERDICTS, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+b") as file:
        lock(file.fileno(), wait=True)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)
        file.write(to_json(verdict).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
