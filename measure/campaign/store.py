"""A folder for attempts at runs: a campaign's (`measure.campaign.results`) or any other. It counts how often each run
has been tried, and has the rule by which a run is given up."""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dataset.table import Cell, Row, Run
from measure.run.gates import MACHINE_RETRIES, attempts_against, is_of_machine
from tuning.defaults import DEFAULT_BROWSER


class FolderStore:
    """A folder for attempts at runs; their rows are kept in memory only.

    A rejected attempt's gate decides how far the attempt counts against its run (`measure.run.gates.Gate`).
    """

    def __init__(
        self, folder: Path, rows: Iterable[Row] = (), earlier: Mapping[Run, tuple[int, int]] | None = None
    ) -> None:
        """`rows` are the attempts so far. `earlier`: run → how often it was tried elsewhere, and how many of these
        attempts count against it."""
        self.folder = folder
        self._earlier = earlier or {}
        self.recount(rows)

    def recount(self, rows: Iterable[Row]) -> None:
        """Replace the attempts so far by `rows`."""
        self.rows: list[Row] = []
        self._rows_of: defaultdict[Run, list[Row]] = defaultdict(list)
        self._rows_of_cell: defaultdict[Cell, list[Row]] = defaultdict(list)
        for row in rows:
            self.count_attempt(row)

    def count_attempt(self, row: Row) -> None:
        """Add the attempt in `row`."""
        self.rows.append(row)
        run = row.of
        self._rows_of[run].append(row)
        self._rows_of_cell[run.cell].append(row)

    def rows_of(self, runs: Iterable[Run]) -> list[Row]:
        """The attempts at `runs`, without those made elsewhere."""
        return [row for run in runs for row in self._rows_of[run]]

    def rows_of_cell(self, cell: Cell) -> Sequence[Row]:
        """The attempts at all runs of `cell`, in the order in which they were made."""
        return self._rows_of_cell[cell]

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        earlier, _ = self._earlier.get(run, (0, 0))
        return earlier + len(self._rows_of[run])

    def failures(self, run: Run) -> int:
        """How many attempts count against `run`."""
        _, earlier = self._earlier.get(run, (0, 0))
        reasons = [row.reason for row in self._rows_of[run] if not row.valid]
        of_machine = sum(map(is_of_machine, reasons))
        return earlier + sum(map(attempts_against, reasons)) - min(of_machine, MACHINE_RETRIES)

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has a valid attempt."""
        return any(row.valid for row in self._rows_of[run])

    def is_given_up(self, run: Run, repeats: int) -> bool:
        """Whether `run` has no valid attempt, and more than `repeats` attempts count against it."""
        return not self.is_valid(run) and self.failures(run) > repeats

    def is_open(self, run: Run, repeats: int) -> bool:
        """Whether `run` has no valid attempt and is not given up."""
        return not self.is_valid(run) and self.failures(run) <= repeats

    def made_elsewhere(self, blocks: Iterable[Sequence[Run]]) -> frozenset[Run]:
        """The runs of those of `blocks` that were begun before the campaign was resumed from its package. Their
        unmeasured runs are given up, since no other run of their block was made on this machine."""
        begun = (block for block in blocks if any(row.is_of_earlier_machine for row in self.rows_of(block)))
        return frozenset(run for block in begun for run in block)

    def run_folder(self, run: Run, attempt: int) -> Path:
        """The folder of an attempt's evidence; its path is the same as in a campaign."""
        browser = "" if run.browser == DEFAULT_BROWSER else f"-{run.browser}"
        return self.folder / "runs" / run.site / run.network / run.protocol / f"{run.number}-{attempt}{browser}"

    def empty_run_folder(self, run: Run, attempt: int) -> Path:
        """The attempt's folder, emptied or created. Raises FileNotFoundError when the store's folder is missing."""
        folder = self.run_folder(run, attempt)
        if folder.exists():
            shutil.rmtree(folder)
        self.folder.stat()
        folder.mkdir(parents=True)
        return folder

    def keep(self, *rows: Row) -> None:
        """Store `rows` of attempts."""
        for row in rows:
            self.count_attempt(row)
