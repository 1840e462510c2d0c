"""Votes of a user study: their fields, their lines in CSV, and reading the votes that participants sent.

A vote comes from a browser, or from anyone who pretends to be one, so all its fields are checked.
"""

import csv
import fcntl
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.user_study.clips import Clip, Key
from analysis.user_study.settings import HIGHEST, LOWEST, PAIRS
from base.bounded import read_regular
from base.errors import EyelevelError
from base.structure import structured

FILE = "votes.csv"
LEFT, RIGHT, SAME = "left", "right", "same"
LAYOUTS = ("beside", "stacked", "single")
MOST_TRIALS, MOST_PLAYS = 10_000, 10_000
# The longest time is a day; the largest window is this wide or high.
MOST_MS, MOST_PIXELS = 86_400_000, 100_000
# A larger file of votes is not read.
MOST_BYTES = 100_000_000
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


@dataclass(frozen=True)
class Vote:
    """An answer to one clip. docs/user-study.md describes the columns."""

    study: str
    participant: str
    group: str
    part: str
    trial: int
    trials: int
    clip: str
    swapped: bool
    answer: str
    plays: int
    answer_ms: int
    away_ms: int
    still_ms: int
    session_ms: int
    layout: str
    width: int
    height: int
    answered_at: str

    @property
    def identity(self) -> tuple[str, int]:
        """The identity of a vote; copies of the same vote share it."""
        return self.participant, self.trial


COLUMNS = tuple(field.name for field in fields(Vote))


def parse_vote(document: Any, clips: Mapping[str, Clip], study: str) -> Vote:
    """The vote in `document`, which is JSON, on one of the `clips` of the kit `study`. Raises EyelevelError."""
    vote = structured(document, Vote, "the vote")
    if fault := _fault(vote, clips, study):
        raise EyelevelError(f"the vote: {fault}")
    return vote


def _fault(vote: Vote, clips: Mapping[str, Clip], study: str) -> str:
    """The fault of a vote; empty if there is none."""
    if vote.study != study:
        return f"it is on another study than {study}"
    clip = clips.get(vote.clip)
    if clip is None or clip.part != vote.part:
        return "there is no such clip"
    answers = (LEFT, RIGHT, SAME) if vote.part == PAIRS else map(str, range(LOWEST, HIGHEST + 1))
    checks = {
        "participant": re.fullmatch(r"[0-9a-f]{32}", vote.participant),
        "group": re.fullmatch(r"[a-z0-9-]{0,32}", vote.group),
        "answer": vote.answer in answers,
        "trial": 1 <= vote.trial <= vote.trials <= MOST_TRIALS,
        "plays": 1 <= vote.plays <= MOST_PLAYS,
        "layout": vote.layout in LAYOUTS,
        "answered_at": TIME.fullmatch(vote.answered_at),
        **{name: 0 <= getattr(vote, name) <= MOST_MS for name in ("answer_ms", "away_ms", "still_ms", "session_ms")},
        **{name: 0 <= getattr(vote, name) <= MOST_PIXELS for name in ("width", "height")},
    }
    return next((f"{name} is wrong" for name, is_right in checks.items() if not is_right), "")


def line(values: Iterable[object]) -> str:
    """Values as a line of CSV."""
    text = io.StringIO()
    cells = (str(value).lower() if isinstance(value, bool) else value for value in values)
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def append_vote(file: Path, vote: Vote) -> None:
    """Append `vote` to `file` as its last line. Afterwards the vote is on the disk; a power cut loses no earlier vote.

    Raises OSError.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        text = line(getattr(vote, name) for name in COLUMNS)
        if size == 0:
            text = line(COLUMNS) + text
        elif os.pread(descriptor, 1, size - 1) != b"\n":
            # A power cut or a full disk truncated the previous line. It stays broken, and this line must not join it.
            text = "\n" + text
        data = text.encode()
        if os.write(descriptor, data) < len(data):
            raise OSError(f"{file} took only a part of a line")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class VotesRead:
    """The votes of a kit, one per row; the number of lines that were not votes, that were on other studies, and that
    repeated a vote."""

    table: pd.DataFrame
    broken: int = 0
    of_others: int = 0
    repeated: int = 0


def read_votes(folder: Path, key: Key) -> VotesRead:
    """All votes in the CSV files in `folder`, each once. Raises EyelevelError if a file cannot be read."""
    clips = key.by_name()
    votes: dict[tuple[str, int], Vote] = {}
    broken = of_others = repeated = 0
    for file in sorted(folder.glob("*.csv")):
        for cells in _rows(file):
            if cells.get("study") not in (None, "study", key.study):
                of_others += 1
                continue
            try:
                vote = parse_vote(_document(cells), clips, key.study)
            except (EyelevelError, ValueError):
                broken += 1
                continue
            repeated += vote.identity in votes
            votes.setdefault(vote.identity, vote)
    table = pd.DataFrame([vars(vote) for vote in votes.values()], columns=list(COLUMNS))
    return VotesRead(table, broken, of_others, repeated)


def _rows(file: Path) -> list[dict[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(read_regular(file, MOST_BYTES, follow=True).decode(), newline=""))
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise EyelevelError(f"{file} is not a file of votes: its first line must be {','.join(COLUMNS)}")
        return list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise EyelevelError(f"{file} cannot be read: {error}") from None


_TYPES = {field.name: field.type for field in fields(Vote)}


def _document(cells: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a line with the types that JSON would have. Raises ValueError."""
    if None in cells or None in cells.values():
        raise ValueError("it has another number of cells")
    whole = {name: int(cells[name]) for name, kind in _TYPES.items() if kind is int}
    truths = {"true": True, "false": False}
    if cells["swapped"] not in truths:
        raise ValueError("swapped is neither true nor false")
    return {**cells, **whole, "swapped": truths[cells["swapped"]]}
