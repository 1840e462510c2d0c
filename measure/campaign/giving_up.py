"""Cells (a site on a network) that get no more runs: those where all protocols fail for the same reason in a few
blocks, and those that were withdrawn. Earlier runs of withdrawn cells do not count either, even valid ones: it may be
chance which runs were valid."""

from collections.abc import Iterable, Mapping

from base.clock import now_iso
from dataset.plan import PlannedBlock
from dataset.reasons import Reason
from dataset.table import WITHDRAWN, Cell, GivenUp, Run, write_given_up
from dataset.verdicts import Verdict
from measure.campaign.results import Results
from measure.run.gates import is_of_machine

# One block is not enough: a fault of the machine that no gate recognises may last as long as a block. The second block
# of a cell begins after all other sites have had their first. If it fails, too, by the same gate and in every attempt
# over every protocol, the cause is the page. With five protocols and three attempts at each run, this takes 30
# attempts; all blocks of a campaign of 31 runs would take 465.
BLOCKS = 2


class GivenUpSites:
    """The cells of a campaign that get no more runs.

    A cell is given up when all its attempts failed by one gate (faults of the machine aside), and all runs of `BLOCKS`
    blocks are given up. One of these blocks must have been measured since the campaign was resumed, so resuming gives
    each cell another try. A verdict that accepts one of its runs also brings a cell back. `withdrawn` cells (cell →
    why) stay given up.
    """

    def __init__(
        self, blocks: Iterable[PlannedBlock], results: Results, repeats: int, withdrawn: Mapping[Cell, str]
    ) -> None:
        self._results = results
        self._repeats = repeats
        self._withdrawn = {cell: Reason(WITHDRAWN, why) for cell, why in withdrawn.items()}
        self._blocks: dict[Cell, list[PlannedBlock]] = {}
        for block in blocks:
            for cell in dict.fromkeys(run.cell for run in block):
                runs = tuple(run for run in block if run.cell == cell)
                self._blocks.setdefault(cell, []).append(runs)
        self._entries = {
            cell: self._entry(cell, why, (run for run in self._runs(cell) if not results.attempts(run)))
            for cell, why in self._withdrawn.items()
            if cell in self._blocks
        }
        self._write()

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._withdrawn or cell in self._entries

    def follow_results(self, cells: Iterable[Cell]) -> list[GivenUp]:
        """Bring back cells that now have a valid run. Give up those of `cells`, whose blocks were just measured, that
        fail alike; returns the new entries."""
        lifted = [cell for cell in self._entries if cell not in self._withdrawn and self._reason(cell) is None]
        for cell in lifted:
            del self._entries[cell]
        reasons = {cell: self._reason(cell) for cell in dict.fromkeys(cells) if cell not in self._entries}
        new = {cell: self._entry(cell, why, self.runs_of(cell)) for cell, why in reasons.items() if why}
        self._entries |= new
        if lifted or new:
            self._write()
        return list(new.values())

    def reject_withdrawn(self) -> None:
        """Reject the valid runs of withdrawn cells."""
        rows = [(row, why) for cell, why in self._withdrawn.items() for row in self._results.rows_of_cell(cell)]
        self._results.decide(*(Verdict.of(row, why, by=why.gate) for row, why in rows if row.valid))

    def runs_of(self, cell: Cell) -> Iterable[Run]:
        """The open runs of `cell`."""
        return (run for run in self._runs(cell) if self._results.is_open(run, self._repeats))

    def _runs(self, cell: Cell) -> Iterable[Run]:
        return (run for block in self._blocks[cell] for run in block)

    def _entry(self, cell: Cell, reason: Reason, unmade: Iterable[Run]) -> GivenUp:
        return GivenUp(*cell, str(reason), sum(1 for _ in unmade), now_iso())

    def _reason(self, cell: Cell) -> Reason | None:
        """Why `cell` is given up: the reason of its last rejected attempt; None if it is not given up."""
        rows = self._results.rows_of_cell(cell)
        if any(row.valid for row in rows):
            return None
        reasons = [row.reason for row in rows if row.reason and not is_of_machine(row.reason)]
        if len({reason.gate for reason in reasons}) != 1:
            return None
        given_up = (all(self._results.is_given_up(run, self._repeats) for run in block) for block in self._blocks[cell])
        return reasons[-1] if sum(given_up) >= BLOCKS else None

    def _write(self) -> None:
        write_given_up(self._results.folder, self._entries.values())
