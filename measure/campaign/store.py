"""Where the attempts at runs go, a campaign's folder (`measure.campaign.results`) or any folder; and how often each run
has been tried, and when that is enough: the rule by which a run is given up."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from measure.gates import PARDONS, attempts_against, is_pardoned
from measure.table import Row, Run


class AttemptCounts:
    """Counts the attempts at runs. An attempt counts against its run as its gate says (`measure.gates.Gate`)."""

    def __init__(self, rows: Iterable[Row] = (), earlier: Mapping[Run, tuple[int, int]] | None = None) -> None:
        """`rows` are the attempts so far. `earlier`: of runs whose rows are elsewhere, their attempts and failures."""
        earlier = earlier or {}
        self._attempts = Counter({run: attempts for run, (attempts, _) in earlier.items()})
        self._weights = Counter({run: failures for run, (_, failures) in earlier.items()})
        self._pardoned: Counter[Run] = Counter()
        self._valid: dict[Run, str] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Count the attempt in `row`."""
        self._attempts[row.of] += 1
        self._weights[row.of] += attempts_against(row.reason)
        self._pardoned[row.of] += not row.valid and is_pardoned(row.reason)
        if row.valid:
            self._valid[row.of] = row.folder

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        return self._attempts[run]

    def failures(self, run: Run) -> int:
        """How many attempts count against `run`."""
        return self._weights[run] - min(self._pardoned[run], PARDONS)

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""
        return run in self._valid

    def is_given_up(self, run: Run, repeats: int) -> bool:
        """Whether `run` has not been measured in the first attempt, and not in so many repeats either."""
        return not self.is_valid(run) and self.failures(run) > repeats

    def is_open(self, run: Run, repeats: int) -> bool:
        """Whether `run` is still to be measured."""
        return not self.is_valid(run) and self.failures(run) <= repeats


class FolderStore(AttemptCounts):
    """A folder for attempts whose rows are in memory alone."""

    def __init__(self, folder: Path, earlier: Mapping[Run, tuple[int, int]] | None = None) -> None:
        """`earlier`: how often each run has been tried elsewhere, and how many of these attempts count against it."""
        super().__init__(earlier=earlier)
        self.folder = folder
        self.rows: list[Row] = []

    def run_folder(self, run: Run, attempt: int) -> Path:
        """Where an attempt's evidence lies; the same place as in a campaign."""
        return run_folder(self.folder, run, attempt)

    def empty_run_folder(self, run: Run, attempt: int) -> Path:
        """The same, made anew."""
        return emptied(self.run_folder(run, attempt))

    def append(self, row: Row) -> None:
        """Add the row of an attempt."""
        self.rows.append(row)
        self.add(row)


def run_folder(folder: Path, run: Run, attempt: int) -> Path:
    """Where an attempt's evidence lies in a campaign's `folder`."""
    return folder / "runs" / run.site / run.network / run.protocol / f"{run.number}-{attempt}"


def emptied(folder: Path) -> Path:
    """`folder`, new and empty."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder
