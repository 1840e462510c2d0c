"""Where the attempts at runs go: a campaign's folder (`measure.campaign.results`), or any folder."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from measure.campaign.counts import AttemptCounts
from measure.table import Row, Run


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
