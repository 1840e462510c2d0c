"""A campaign's folder: `campaign.json` (the settings), `plan.csv` (the planned blocks), `runs.csv` (a row for each
attempt), `verdicts.jsonl` (later decisions on attempts), `runs/` (the evidence), and `hypotheses.toml` (the hypotheses
declared before the first run, `dataset.declaration`).

A row counts only once its whole line is on the disk, and only a verdict that is on the disk changes it. This module
does not depend on how runs are made. The files' formats are in `dataset.table`.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import Locked, lock_holder, locked, sync, write_atomically
from dataset.declaration import HYPOTHESES, continued_declaration, declaration, keep_hypotheses, require_same_hypotheses
from dataset.gates import SUPERSEDED
from dataset.plan import PlannedBlock, read_plan, write_plan
from dataset.reasons import Reason
from dataset.run_files import ATTEMPT
from dataset.table import (
    DOCUMENT,
    GROWING,
    RUNS,
    CampaignDocument,
    Row,
    Run,
    columns,
    header,
    lines,
    read_document,
    read_rows,
    read_table,
    reading_names,
    require_document,
    write_document,
)
from dataset.verdicts import Verdict, add_verdict, read_verdicts, state_of_verdicts
from measure.campaign.plan import extended
from measure.campaign.store import FolderStore
from measure.host.timekeeping import OF_ROOT
from measure.host.wakefulness import ASLEEP
from measure.instruments.contract import instrument_columns

# The files that a campaign may have before its `campaign.json` exists.
FIRST_FILES = (HYPOTHESES, "validation.json")

# The names of temporary files that an interrupted write leaves (`base.files`, `films.playable`).
TEMPORARY_NAME = re.compile(r"\.(?:[a-z_-]+\.(?:json|csv|toml)\.[a-z0-9_]{8}|film(?:-small)?\.mp4)")

# The name of an attempt's folder (`FolderStore.run_folder`).
ATTEMPT_NAME = re.compile(r"\d+-\d+(-[\w.-]+)?")

# A SHA-256, of which its first digits are enough for a reader.
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")

# The parts of `campaign.json` to which names may be added later. Programs may also be added to `versions`: a program
# that no run needed before may have any version.
GROUPS = [f"settings/{group}" for group in GROWING]


class Results(FolderStore):
    """The folder of one campaign, held by one process at a time (see `opened`)."""

    def __init__(self, folder: Path) -> None:
        """Raises EyelevelError when a file of the campaign is broken."""
        super().__init__(folder)
        self._runs_csv = folder / RUNS
        self._readings = tuple(instrument_columns())
        self._verdicts: list[Verdict] = []
        self._first_verdicts: dict[str, Verdict] = {}
        self._state_of_verdicts: tuple[int, int] | None = None
        if not self._runs_csv.exists():
            self._write(())
        text = self._runs_csv.read_text()
        present, rows = read_table(folder)
        # Columns of instruments that no longer exist are kept.
        self._readings = (*self._readings, *(name for name in reading_names(present) if name not in self._readings))
        # A text without a final line feed was cut by a power cut; the run of its last line is incomplete. Other columns
        # mean that another version wrote the file. In both cases, write it anew.
        if not text.endswith("\n") or present != (*columns(), *self._readings):
            self._write(rows)
        # Whoever opens the campaign to measure begins another sitting.
        self.sitting = 1 + max((row.sitting or 0 for row in rows), default=0)
        self.recount(rows)
        self.follow_verdicts()

    def extend_plan(self, blocks: list[PlannedBlock]) -> list[PlannedBlock]:
        """All blocks of the campaign, after adding the runs of `blocks` that its plan lacks."""
        first = read_plan(self.folder)
        # Attempts that were interrupted have a folder, but no row.
        begun = [number for number, block in enumerate(first, start=1) if any(map(self._has_begun, block))]
        blocks = extended(first, blocks, begun=max(begun, default=0))
        if blocks != first:
            write_plan(self.folder, blocks)
        return blocks

    def _has_begun(self, run: Run) -> bool:
        return self.attempts(run) > 0 or self.run_folder(run, 1).exists()

    def keep(self, *rows: Row) -> None:
        """Add `rows`; when this returns, they survive a power cut. After a crash, either all of them are in the table,
        or none."""
        line = lines(rows, self._readings).encode()
        # Mode "a" would create a table without a header if somebody had removed the file.
        with self._runs_csv.open("r+b", buffering=0) as file:
            before = file.seek(0, os.SEEK_END)
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._runs_csv))
                os.fsync(file.fileno())
            except OSError:
                # Remove a partial line, to which the next row would be appended.
                os.ftruncate(file.fileno(), before)
                raise
        super().keep(*rows)

    def count_attempt(self, row: Row) -> None:
        if row.valid and self.is_valid(row.of):
            raise EyelevelError(f"{self._runs_csv} has two valid rows of {row.of}; remove one by 'make review'")
        super().count_attempt(row)

    def decide(self, *verdicts: Verdict) -> None:
        """Store `verdicts` and apply them to `runs.csv`."""
        for verdict in verdicts:
            add_verdict(self.folder, verdict)
        self.follow_verdicts()

    def follow_verdicts(self) -> None:
        """Apply all verdicts to `runs.csv`, including those that other processes have added meanwhile."""
        # This is called after every block, and verdicts are rare.
        if (state := state_of_verdicts(self.folder)) == self._state_of_verdicts:
            return
        self._state_of_verdicts = state
        verdicts = read_verdicts(self.folder)
        if len(verdicts) == len(self._verdicts):
            return
        self._verdicts = verdicts
        for verdict in verdicts:
            if verdict.decides:
                self._first_verdicts.setdefault(verdict.folder, verdict)
        rows = followed(self.rows, verdicts)
        if rows != self.rows:
            self._rewrite(rows)
            self.recount(rows)

    def remove_unmade(self) -> None:
        """Remove the folders of attempts that a stop has interrupted, or that were prepared and never begun."""
        folders = {row.folder for row in self.rows}
        for path in self.folder.glob("runs/*/*/*/*"):
            is_folder = ATTEMPT_NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
            if is_folder and str(path.relative_to(self.folder)) not in folders and not (path / ATTEMPT).exists():
                shutil.rmtree(path)

    def first_verdict(self, folder: str) -> Verdict | None:
        """The first verdict that decided on the attempt in `folder`; before that verdict, its gates decided."""
        return self._first_verdicts.get(folder)

    def _rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the rows of the table by `rows`; the lines of equal rows do not change."""
        # No cell contains a line feed.
        _, *present, end = self._runs_csv.read_text().split("\n")
        if end or not len(present) == len(self.rows) == len(rows):
            self._write(rows)
            return
        for place, (before, row) in enumerate(zip(self.rows, rows, strict=True)):
            if row != before:
                present[place] = lines([row], self._readings).rstrip("\n")
        write_atomically(self._runs_csv, header(self._readings) + "".join(f"{line}\n" for line in present))

    def _write(self, rows: Iterable[Row]) -> None:
        write_atomically(self._runs_csv, header(self._readings) + lines(rows, self._readings))


def followed(rows: Sequence[Row], verdicts: Iterable[Verdict]) -> list[Row]:
    """`rows` after applying `verdicts`; the last verdict that decides on an attempt holds.

    If a verdict accepts an attempt, but another attempt at the same run is valid, the accepted one still does not
    count: each run counts once.
    """
    last = {verdict.folder: verdict for verdict in verdicts if verdict.decides}
    valid = {row.of for row in rows if row.valid and row.folder not in last}
    following_rows = []
    for row in rows:
        verdict = last.get(row.folder)
        if verdict is None:
            following_rows.append(row)
        elif verdict.valid and row.of in valid:
            following_rows.append(replace(row, valid=False, reason=Reason(SUPERSEDED, "another attempt counts")))
        else:
            following_rows.append(replace(row, valid=verdict.valid, reason=Reason.parse(verdict.reason)))
            valid |= {row.of} if verdict.valid else set()
    return following_rows


@contextmanager
def opened(folder: Path, document: CampaignDocument, hypotheses: str = "") -> Iterator[Results]:
    """The campaign in `folder`, begun or resumed with the settings and versions in `document`, and with the text of its
    `hypotheses` if it declares any.

    Raises EyelevelError when another process has it open, when it was begun with other settings or hypotheses, or when
    the folder belongs to something else.
    """
    require_no_others(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, _in_use(folder)):
        _settle(folder, document, hypotheses)
        _sweep(folder)
        results = Results(folder)
        sync(folder.parent)
        yield results


def require_unused(folder: Path) -> None:
    """Raises Locked when another process on this machine has the campaign in `folder` open."""
    if lock_holder(folder) is not None:
        raise Locked(_in_use(folder))


def _in_use(folder: Path) -> str:
    return f"another process is measuring the campaign {folder.name}"


def keep_lanes(folder: Path, machine: str, record: Mapping[str, Any]) -> None:
    """Add to the campaign in `folder` the lanes of `machine`; `record` is `measure.host.lanes.Lanes.record`."""
    document = require_document(folder)
    if record and machine not in document.lanes:
        write_document(folder, replace(document, lanes={**document.lanes, machine: dict(record)}))


def lanes_fault(document: CampaignDocument, machine: str, record: Mapping[str, Any]) -> str | None:
    """Why `machine`, whose lanes have this `record`, must not resume the campaign of `document`; or None."""
    cores, cores_before = record.get("cores", []), document.lanes.get(machine, {}).get("cores", [])
    if machine not in document.lanes or cores == cores_before:
        return None
    return f"the lanes of {machine} had the processors {cores_before} when it began to measure, and now {cores}"


def require_no_others(folder: Path) -> None:
    """Raises EyelevelError when `folder` is not a campaign and contains anything that is not a campaign's."""
    if not folder.exists() or (folder / DOCUMENT).exists():
        return
    if not folder.is_dir():
        raise EyelevelError(f"{folder} is not a folder; use another campaign name")
    for path in sorted(folder.iterdir()):
        if path.name not in FIRST_FILES and not TEMPORARY_NAME.fullmatch(path.name):
            raise EyelevelError(f"{folder} is not a campaign, and has {path.name} in it; use another campaign name")


def _sweep(folder: Path) -> None:
    """Remove the temporary files of interrupted writes from a campaign's folder, and nothing else."""
    for path in [*folder.glob(".*"), *folder.glob("runs/*/*/*/*/.*")]:
        if not TEMPORARY_NAME.fullmatch(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def follow_decisions(folder: Path) -> None:
    """Apply a campaign's verdicts to its `runs.csv`. While the campaign is being measured, do nothing: its own process
    applies them later."""
    with suppress(Locked), locked(folder):
        Results(folder)


def changes(original: CampaignDocument, document: CampaignDocument) -> list[str]:
    """The differences of `document` from its campaign's `original`, except for permitted additions."""
    return list(_differences(_terms(original), _terms(document)))


def require_resumable(folder: Path, document: CampaignDocument, hypotheses: str = "") -> None:
    """Raises EyelevelError when `folder` has a campaign that was begun with settings, versions or `hypotheses` other
    than those in `document`."""
    if original := read_document(folder):
        if differences := changes(original, document):
            raise _continuation_fault(folder, differences)
        require_same_hypotheses(folder, original, hypotheses)


def _continuation_fault(folder: Path, differences: Sequence[str]) -> EyelevelError:
    """The error that the campaign in `folder` cannot be resumed because of these `differences` (see `changes`)."""
    texts = [re.sub("^(settings|versions)/", "", difference) for difference in differences]
    texts = [DIGEST.sub(r"\1…", text) for text in texts]
    text = "; ".join(texts[:8]) + (f"; and {len(texts) - 8} more" if len(texts) > 8 else "")
    if all(difference.startswith("versions/") for difference in differences):
        return EyelevelError(
            f"the campaign {folder.name} was begun with other versions: {text}; resume it where these are "
            "installed (docs/package.md), or use another campaign name ('make compare' compares both)"
        )
    if all(difference.startswith("settings/runs ") for difference in differences):
        remedy = "use at least as many runs as before, or another campaign name"
    else:
        remedy = "use the same settings, or another campaign name"
    return EyelevelError(f"the campaign {folder.name} was begun with other settings: {text}; {remedy}")


def _differences(original: Any, document: Any, place: str = "") -> Iterator[str]:
    """The `changes` between the values of two documents at `place` (for example `settings/networks/lte/up_mbps`); None
    stands for a missing value."""
    if isinstance(original, dict | None) and isinstance(document, dict | None):
        original, document = original or {}, document or {}
        for name in sorted(original | document):
            if place in GROUPS and name not in document:
                yield f"{place} include {name}"
            elif name in original or place not in (*GROUPS, "versions"):
                yield from _differences(original.get(name), document.get(name), f"{place}/{name}".removeprefix("/"))
    elif original != document and (place != "settings/runs" or document < original):
        original, document = ("absent" if value is None else value for value in (original, document))
        yield f"{place} was {original}, is {document}"


def _settle(folder: Path, document: CampaignDocument, hypotheses: str) -> None:
    """Write `document` and the text of `hypotheses`; for a campaign that exists, check first that they agree with it.

    Raises EyelevelError.
    """
    if original := read_document(folder):
        require_resumable(folder, document, hypotheses)
        keep_hypotheses(folder, hypotheses)
        has_runs = (folder / RUNS).exists() and bool(read_rows(folder))
        # A resumed campaign keeps its declaration. It also keeps the facts about each site and protocol as they were
        # when that was added.
        document = replace(
            document,
            begun_at=original.begun_at,
            hypotheses=continued_declaration(folder, original, document.settings, has_runs=has_runs),
            site_facts={**document.site_facts, **original.site_facts},
            server_choices={**document.server_choices, **original.server_choices},
            lanes={**document.lanes, **original.lanes},
            columns={**original.columns, **document.columns},
            further={**original.further, **document.further},
        )
        # If only the machine differs, write nothing.
        if _as_json(replace(document, machine=original.machine).content()) == _as_json(original.content()):
            return
    else:
        # Hypotheses come first, so that no campaign claims a declaration that it does not have.
        keep_hypotheses(folder, hypotheses)
        document = replace(document, hypotheses=declaration(hypotheses, document.settings))
    write_document(folder, document)


def _terms(document: CampaignDocument) -> dict[str, Any]:
    """The settings and versions that results depend on."""
    versions = {"timekeeping": OF_ROOT, "idle_processors": ASLEEP, **document.versions}
    return _as_json({"settings": vars(document.settings), "versions": versions})


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` as read back from JSON: tuples become lists."""
    content: dict[str, Any] = json.loads(json.dumps(values))
    return content
