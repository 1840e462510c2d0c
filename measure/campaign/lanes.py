"""Measuring in the lanes of this machine: each lane measures a block at a time, and a free lane takes the next of the
plan.

Runs that are compared stay together: one lane makes all runs of a block, one after another, including those that are
made later because the campaign was stopped or a run was rejected. The other lanes meanwhile measure other blocks, whose
runs begin at other moments and in another order, so they favour none of the compared runs.

Only this process writes rows and decides what follows from them, as with one lane.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from multiprocessing.connection import wait

from measure.campaign.block import Block
from measure.campaign.lane import Ending, LaneSetting, RunningLane, running_lane, stop_all
from measure.campaign.place import Work
from measure.campaign.slot import canaries_of, machine_name
from measure.campaign.store import FolderStore
from measure.host.lanes import cores_beside, working_on


def measure_in_lanes(work: Work) -> None:
    """Measure in the lanes of this machine, each a block at a time. Raises EyelevelError when that cannot continue."""
    machine, campaign, rows = machine_name(), work.campaign, work.results.rows
    canaries = {lane: canaries_of(machine, rows, lane.number) for lane in campaign.lanes.lanes}
    settings = [
        LaneSetting(lane, campaign.folder, canaries[lane], campaign.canary_s, campaign.loading.browser)
        for lane in campaign.lanes.lanes
    ]
    with ExitStack() as stack:
        lanes = [stack.enter_context(running_lane(setting)) for setting in settings]
        stack.callback(stop_all, lanes)
        stack.enter_context(working_on(cores_beside(campaign.lanes.lanes)))
        deal_out(lanes, work)


def deal_out(lanes: Iterable[RunningLane], work: Work) -> None:
    """Give each of `lanes` a block, and the next one when that has ended, until all of `work` is done, or the next
    block may not begin. Raises the error that ends a lane."""
    idle, busy = list(lanes), dict[object, tuple[RunningLane, Block]]()
    coming = ComingBlocks(work.blocks, work.results, {lane.lane.number for lane in idle})
    while True:
        for lane in tuple(idle):
            # Ask only now: a block that has waited for its lane begins later than was forecast, so it ends later, too.
            if (block := coming.next_in(lane.lane.number)) and work.may_begin(block):
                lane.begin(block, work.results)
                idle.remove(lane)
                busy[lane.connection] = lane, block
        if not busy:
            return
        for connection in wait([lane.connection for lane, _ in busy.values()]):
            lane, block = busy[connection]
            if isinstance(lane.hear(work.results, work.display.notify), Ending):
                del busy[connection]
                idle.append(lane)
                work.end(block)


class ComingBlocks:
    """The `blocks` that are still to be measured in `lanes` of this machine. If `results` show that a lane has begun a
    block, the block waits for that lane, since its runs are compared with each other."""

    def __init__(self, blocks: Iterable[Block], results: FolderStore, lanes: Collection[int]) -> None:
        self._coming = iter(blocks)
        here = machine_name()
        self._lane_of = {row.block: row.lane for row in results.rows if row.machine == here and row.lane in lanes}
        self._waiting: defaultdict[int, deque[Block]] = defaultdict(deque)

    def next_in(self, lane: int) -> Block | None:
        """The next block for the lane with this number; None if none is left for it."""
        if self._waiting[lane]:
            return self._waiting[lane].popleft()
        for block in self._coming:
            if (first := self._lane_of.get(block.number) or lane) == lane:
                return block
            self._waiting[first].append(block)
        return None
