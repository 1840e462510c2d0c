"""Measuring in the lanes of this machine: a block in each at a time, and the next of the plan in whichever is free.

What is compared stays together: all runs of a block are made in one lane, one after another, also those that are made
later, since the campaign was stopped or a run was rejected. What runs beside it is another block, whose runs begin at
other moments and in another order, so that it favours none of those compared.

This process alone writes rows, and decides what follows from them, as when there is one lane.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from multiprocessing.connection import wait

from measure.campaign.block import Block
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import require_space
from measure.campaign.lane import Beginning, Ending, LaneSetting, Notice, RunningLane, running_lane
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results
from measure.campaign.slot import canaries_of, machine_name
from measure.campaign.store import FolderStore
from measure.host.lanes import cores_beside, working_on


def measure_in_lanes(
    campaign: Campaign,
    blocks: Iterable[Block],
    results: Results,
    display: ProgressDisplay,
    done: Callable[[Block], None],
    may_begin: Callable[[Block], bool],
) -> None:
    """Measure `blocks` in the lanes of `campaign` into `results`, and call `done` after each, as long as they
    `may_begin` (see `campaign.Workers`).

    Raises EyelevelError when a lane cannot go on.
    """
    machine = machine_name()
    settings = [
        LaneSetting(
            lane,
            campaign.folder,
            canaries_of(machine, results.rows, lane.number),
            campaign.canary_s,
            campaign.loading.browser,
        )
        for lane in campaign.lanes.lanes
    ]
    with ExitStack() as stack:
        lanes = [stack.enter_context(running_lane(setting)) for setting in settings]
        stack.callback(_stop, lanes)  # all at once: each takes its time
        stack.enter_context(working_on(cores_beside(campaign.lanes.lanes)))
        deal_out(lanes, blocks, results, display, done, may_begin)


def deal_out(
    lanes: Iterable[RunningLane],
    blocks: Iterable[Block],
    results: Results,
    display: ProgressDisplay,
    done: Callable[[Block], None],
    may_begin: Callable[[Block], bool],
) -> None:
    """Give each of `lanes` a block, and another when it has ended, until all `blocks` have, or the next may not begin.
    Raises what ends a lane."""
    idle, busy = list(lanes), dict[object, tuple[RunningLane, Block]]()
    coming = ComingBlocks(blocks, results, {lane.lane.number for lane in idle})
    while True:
        for lane in tuple(idle):
            # One that has waited for its lane would have begun earlier: only now is it known when it would end.
            if (block := coming.next_in(lane.lane.number)) and may_begin(block):
                require_space(0, results.folder)
                lane.begin(block, results)
                idle.remove(lane)
                busy[lane.connection] = lane, block
        if not busy:
            return
        for connection in wait([lane.connection for lane, _ in busy.values()]):
            lane, block = busy[connection]
            if hear(lane, block, results, display):
                del busy[connection]
                idle.append(lane)
                done(block)


class ComingBlocks:
    """The `blocks` that are still to be measured in `lanes` of this machine. One of which a lane has measured something
    before, according to `results`, waits for that lane: its runs are compared with those."""

    def __init__(self, blocks: Iterable[Block], results: FolderStore, lanes: Collection[int]) -> None:
        self._coming = iter(blocks)
        here = machine_name()
        self._lane_of = {row.block: row.lane for row in results.rows if row.machine == here and row.lane in lanes}
        self._waiting: defaultdict[int, deque[Block]] = defaultdict(deque)

    def next_in(self, lane: int) -> Block | None:
        """The next for the lane with this number; None when there is none any more."""
        if self._waiting[lane]:
            return self._waiting[lane].popleft()
        for block in self._coming:
            if (first := self._lane_of.get(block.number) or lane) == lane:
                return block
            self._waiting[first].append(block)
        return None


def hear(lane: RunningLane, block: Block, results: Results, display: ProgressDisplay) -> bool:
    """Do what the next message of `lane` asks for; returns whether `block` has ended."""
    match lane.message():
        case Ending():
            return True
        case Beginning(run, attempt):
            display.begins(run, attempt, lane.lane.number)
        case Notice(text):
            display.warns(text, lane.lane.number)
        case row:
            results.keep_attempt(row)
            lane.go_on()
            display.ends(row.of, row, given_up=results.is_given_up(row.of, block.repeats))
    return False


def _stop(lanes: Iterable[RunningLane]) -> None:
    for lane in lanes:
        lane.stop()
