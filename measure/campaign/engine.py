"""Measures a campaign: hands its open runs, block by block, to a `place`, and does what must follow each block."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from base.ownership import give_to_caller
from dataset.plan import Enough, PlannedBlock, never_enough
from dataset.reasons import Reason
from dataset.table import Cell, Row, Run
from dataset.verdicts import Verdict
from measure.campaign.block import Block, apply_policy
from measure.campaign.budget import Budget
from measure.campaign.campaign import Campaign
from measure.campaign.expectations import Expectation, judge
from measure.campaign.forecast import Forecast, require_space
from measure.campaign.giving_up import GivenUpSites
from measure.campaign.outcomes import RunOutcomes
from measure.campaign.place import Place, Work, measure_here
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results, opened
from measure.run.setting import Setting

# When a campaign is resumed, this many of its last rows are compared with the other runs again: the campaign may have
# stopped before it compared them.
UNSETTLED_ROWS = 200


def measure(
    campaign: Campaign,
    display: Callable[[Sequence[Run], int], ProgressDisplay],
    place: Place = measure_here,
    enough: Enough = never_enough,
    budget: Budget | None = None,
) -> int:
    """Measure all open runs of `campaign`: each until it is valid, or has been repeated often enough.

    `place` is where, by default this machine. `enough` ends cells before the planned number of runs. `budget` limits
    the time. Returns how many runs remain because the budget was used up. Raises EyelevelError when the disk is too
    small, or replays fail repeatedly.
    """
    document = campaign.document()
    with opened(campaign.folder, document, campaign.hypotheses) as results:
        # The campaign's document fixes the timekeeping of all its runs, also when it is resumed.
        campaign = replace(campaign, timekeeping=document.versions.get("timekeeping"))
        planned = PlannedRuns(campaign, results, budget)
        planned.settle()
        if nothing := planned.why_nothing(enough):
            display([], planned.ended()).says(nothing)
            return 0
        expected = planned.forecast()
        require_space(expected.bytes, campaign.folder)
        at_most = campaign.auto or (budget is not None and budget.remaining_s < expected.seconds)
        limit_s = max(0.0, budget.remaining_s) if budget else inf
        progress = display(planned.open_runs(), planned.ended())
        progress.expects(planned.run_seconds())
        with progress.live(expected, limit_s, at_most=at_most) as live:
            # An early run may be rejected when compared with later ones; then it is made again at the end.
            while planned.open_runs() and not planned.is_out_of_time:
                attempts = len(results.rows)
                place(planned.work(enough, live))
                if len(results.rows) == attempts:
                    break
        return planned.runs_beyond_budget()


class PlannedRuns:
    """The progress of a campaign: which of its planned blocks have open runs, and what must follow when a block
    ends."""

    def __init__(self, campaign: Campaign, results: Results, budget: Budget | None = None) -> None:
        self._campaign = campaign
        self._results = results
        self._budget = budget
        # Whether a block was not begun because it would not have ended within the budget.
        self.is_out_of_time = False
        self._blocks = results.extend_plan(campaign.plan())
        self._given_up = GivenUpSites(self._blocks, results, campaign.repeats, campaign.withdrawn)
        self._outcomes = RunOutcomes(results.folder)
        self._rounds = Rounds(run.cell for block in self._blocks for run in block)
        for row in results.rows:
            self._rounds.count(row.block, (row.of,))
        self._enough = frozenset[Cell]()
        self._elsewhere = results.made_elsewhere(self._blocks)

    def settle(self) -> None:
        """Finish what a stop may have interrupted: remove incomplete attempts, restore owners, apply the policy of
        films, and compare the last runs with others. Also reject the runs of cells that were withdrawn since."""
        self._results.remove_unmade()
        self._given_up.reject_withdrawn()
        give_to_caller(self._campaign.folder)
        apply_policy(self._campaign.films, self._campaign.folder, self._results.rows)
        expectations = self._campaign.method.expectations()
        apply_expectations(self._results, self._results.rows[-UNSETTLED_ROWS:], self._outcomes, expectations)

    def forecast(self) -> Forecast:
        """The time and space that the open runs will take, with all lanes in use."""
        return self._campaign.forecaster(self._results.rows).forecast(self.open_runs())

    def run_seconds(self) -> dict[Cell, float]:
        """Cell → how long an open run of it will take on average, with all lanes in use."""
        return self._campaign.forecaster(self._results.rows).run_seconds(self.open_runs())

    def open_runs(self) -> list[Run]:
        """All runs that are still to be measured."""
        return [run for block in self._blocks for run in self._open(block)]

    def why_nothing(self, enough: Enough) -> str:
        """Why there is nothing to measure, and what would be measured; "" if there is something. `enough` says which
        cells need no more runs."""
        if next(iter(self.open_blocks(enough)), None):
            return ""
        why, further = "no planned run is left", "a larger number of runs (RUNS)"
        if self.open_runs():
            why = "every network has enough runs"
            further = "a fixed number of runs as another campaign (RUNS, CAMPAIGN)"
        return f"nothing is measured: {why}; to measure more, give {further} or other networks (NET)"

    def runs_beyond_budget(self) -> int:
        """How many runs remain because the budget was used up, without those of cells that have enough."""
        return sum(run.cell not in self._enough for run in self.open_runs()) if self.is_out_of_time else 0

    def ended(self) -> int:
        """How many planned runs need not be measured any more."""
        return sum(map(len, self._blocks)) - len(self.open_runs())

    def work(self, enough: Enough, display: ProgressDisplay) -> Work:
        """All open work, for a place; `enough` says which cells need no more runs."""
        blocks, end = self.open_blocks(enough), partial(self.end, display)
        return Work(self._campaign, blocks, self._results, display, self.may_begin, end, self.after)

    def open_blocks(self, enough: Enough) -> Iterable[Block]:
        """The open runs of each block, block by block, without cells that have enough runs by then."""
        open_runs = set(self.open_runs())
        rounds, self._enough = None, frozenset[Cell]()
        for number, block in enumerate(self._blocks, start=1):
            if runs := [run for run in self._open(block) if run in open_runs]:
                # `enough` takes half a second in a large campaign, and its answer can change only when a round is
                # complete.
                if rounds != (now := self._rounds.numbers(lambda cell: cell in self._given_up)):
                    rounds, self._enough = now, frozenset(enough(self._campaign.folder))
                if runs := [run for run in runs if run.cell not in self._enough]:
                    yield replace(self._campaign.block(number, runs), sitting=self._results.sitting)
                    if self.is_out_of_time:
                        return

    def may_begin(self, block: Block) -> bool:
        """Whether `block`, begun now, is expected to end within the budget. After the first no, no block may begin.
        Raises EyelevelError when the disk is too small."""
        # A later, shorter block might still fit, but then slow networks would get fewer runs.
        if self._budget and not self.is_out_of_time:
            alone = replace(self._campaign.forecaster(self._results.rows), runs_at_once=None)
            self.is_out_of_time = alone.forecast(block.settings).seconds > self._budget.remaining_s
        if not self.is_out_of_time:
            require_space(0, self._results.folder)
        return not self.is_out_of_time

    def after(self, block: Block) -> tuple[Run, Setting] | None:
        """The run that will be first after `block`, with its setting, as far as is known before the block ends; or
        None."""
        for coming in self._blocks[block.number :]:
            for run in self._open(coming):
                if run.cell not in self._enough:
                    return run, self._campaign.setting(run)
        return None

    def end(self, display: ProgressDisplay, block: Block) -> None:
        """Do what must follow when `block` has been measured."""
        results = self._results
        self._rounds.count(block.number, block.settings)
        results.follow_verdicts()
        expectations = self._campaign.method.expectations()
        display.rejects(apply_expectations(results, results.rows_of(block.settings), self._outcomes, expectations))
        for entry in self._given_up.follow_results(run.cell for run in block.settings):
            display.gives_up(entry, self._given_up.runs_of((entry.site, entry.network)))
        display.expects(self.run_seconds())
        hand_over(block, results)

    def _open(self, block: PlannedBlock) -> list[Run]:
        repeats = self._campaign.repeats
        return [
            run
            for run in block
            if run.cell not in self._given_up and run not in self._elsewhere and self._results.is_open(run, repeats)
        ]


class Rounds:
    """How many rounds have been measured of each network. A round is one block of each of its cells."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._blocks: dict[Cell, set[int]] = {cell: set() for cell in cells}

    def count(self, block: int, runs: Iterable[Run]) -> None:
        """Count that some `runs` of a block were measured."""
        for run in runs:
            self._blocks.setdefault(run.cell, set()).add(block)

    def numbers(self, is_given_up: Callable[[Cell], bool]) -> dict[str, tuple[int, int]]:
        """Network → two numbers. The first is how many rounds are complete, if cells that were given up are ignored.
        The second is the average number of blocks per cell. The average grows even while the first number does not,
        because a cell is not planned now or is measured late."""
        sizes: dict[str, list[int]] = {}
        open_sizes: dict[str, list[int]] = {}
        for cell, blocks in self._blocks.items():
            sizes.setdefault(cell[1], []).append(len(blocks))
            if not is_given_up(cell):
                open_sizes.setdefault(cell[1], []).append(len(blocks))
        return {
            network: (min(open_sizes.get(network, [0])), sum(of_cells) // len(of_cells))
            for network, of_cells in sizes.items()
        }


def hand_over(block: Block, results: Results) -> None:
    """Give the files that `block` wrote to the user who ran the campaign with sudo."""
    for row in results.rows_of(block.settings):
        give_to_caller(results.folder / row.folder, results.folder)
    for file in results.folder.glob("*.*"):
        give_to_caller(file)


def apply_expectations(
    results: Results, fresh: Sequence[Row], outcomes: RunOutcomes, expectations: Sequence[Expectation]
) -> list[tuple[Row, Reason]]:
    """Compare the runs in `fresh` with all runs of their site, network and browser by `expectations`; returns those
    that are rejected, and why."""
    rejected = []
    for cell, browser in dict.fromkeys((row.of.cell, row.browser) for row in fresh):
        # Browsers differ in which requests they make, so each is compared with itself.
        rows = [row for row in results.rows_of_cell(cell) if row.browser == browser]
        # A run that was valid at first stays in the comparison, whatever was decided about it later.
        verdicts = {row.folder: results.first_verdict(row.folder) for row in rows}
        sound = [row for row in rows if (first.was_valid if (first := verdicts[row.folder]) else row.valid)]
        unsettled = {row.folder for row in fresh}
        outcomes.look_at(sound)
        start = next((place for place, row in enumerate(sound) if row.folder in unsettled), len(sound))
        for place, reason in judge([outcomes.of(row) for row in sound], start, expectations).items():
            if verdicts[sound[place].folder] is None:
                rejected.append((sound[place], reason))
    # All at once, since each call rewrites the table.
    results.decide(*(Verdict.of(row, reason, by=reason.gate) for row, reason in rejected))
    return rejected
