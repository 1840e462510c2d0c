"""Measuring in the lanes of this machine: each lane measures a block at a time, and a free lane takes the next of the
plan.

Runs that are compared stay together: one lane makes all runs of a block, one after another, including those that are
made later because the campaign was stopped or a run was rejected. The other lanes meanwhile measure other blocks, whose
runs begin at other moments and in another order, so they favour none of the compared runs.

Several lanes have the same cores if loads on a network share processors. A block of that network takes only a share of
the cores, and as many blocks run there at once as their shares fit. A block of any other network takes all.

Only this process writes rows and decides what follows from them, as with one lane.
"""

import tempfile
from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from fractions import Fraction
from multiprocessing.connection import wait
from pathlib import Path

from measure.campaign.block import Block
from measure.campaign.lane import Ending, LaneSetting, RunningLane, running_lane, stop_all
from measure.campaign.place import Work
from measure.campaign.slot import canaries_of, machine_name
from measure.campaign.store import FolderStore
from measure.host.lanes import Lane, cores_beside, working_on

# All of a lane's cores.
WHOLE = Fraction(1)


def measure_in_lanes(work: Work) -> None:
    """Measure in the lanes of this machine, each a block at a time. Raises EyelevelError when that cannot continue."""
    machine, campaign, rows = machine_name(), work.campaign, work.results.rows
    places, browser = campaign.lanes.places(), campaign.loading.browser
    with ExitStack() as stack:
        folder_of = sharing_folders(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lanes-"))), places)
        lanes = [
            stack.enter_context(
                running_lane(
                    LaneSetting(
                        lane,
                        campaign.folder,
                        canaries_of(machine, rows, lane.number),
                        campaign.canary_s,
                        browser,
                        folder_of[lane],
                    )
                )
            )
            for lane in places
        ]
        stack.callback(stop_all, lanes)
        stack.enter_context(working_on(cores_beside(places)))
        deal_out(lanes, work)


def sharing_folders(folder: Path, lanes: Iterable[Lane]) -> dict[Lane, Path | None]:
    """For each of `lanes`, a folder inside `folder` by which loads in lanes of the same cores take turns
    (`measure.host.sharing`); None if no other lane has its cores."""
    groups: defaultdict[tuple[int, ...], list[Lane]] = defaultdict(list)
    for lane in lanes:
        groups[lane.cores].append(lane)
    folder_of: dict[Lane, Path | None] = {}
    for group in groups.values():
        shared = folder / f"sharing-{group[0].number}" if len(group) > 1 else None
        if shared:
            shared.mkdir(exist_ok=True)
        folder_of.update(dict.fromkeys(group, shared))
    return folder_of


def deal_out(lanes: Iterable[RunningLane], work: Work) -> None:
    """Give each of `lanes` a block, and the next one when that has ended, until all of `work` is done, or the next
    block may not begin. Raises the error that ends a lane."""
    idle, busy = list(lanes), dict[object, tuple[RunningLane, Block]]()
    coming = ComingBlocks(work.blocks, work.results, {lane.lane.number for lane in idle})
    free = {lane.lane.cores: WHOLE for lane in idle}  # the share of these cores that no block takes
    while True:
        for lane in tuple(idle):
            cores = lane.lane.cores
            # Ask only now: a block that has waited for its lane begins later than was forecast, so it ends later, too.
            if (block := coming.next_in(lane.lane.number, free[cores])) and work.may_begin(block):
                lane.begin(block, work.results)
                free[cores] -= block.share
                idle.remove(lane)
                busy[lane.connection] = lane, block
        if not busy:
            return
        for connection in wait([lane.connection for lane, _ in busy.values()]):
            lane, block = busy[connection]
            if isinstance(lane.hear(work.results, work.display.notify), Ending):
                del busy[connection]
                free[lane.lane.cores] += block.share
                idle.append(lane)
                work.end(block)


class ComingBlocks:
    """The `blocks` that are still to be measured in `lanes` of this machine. If `results` show that a lane has begun a
    block, the block waits for that lane, since its runs are compared with each other."""

    def __init__(self, blocks: Iterable[Block], results: FolderStore, lanes: Collection[int]) -> None:
        self._coming = iter(blocks)
        # The next block of the plan, if it was looked at and had to wait.
        self._next: Block | None = None
        here = machine_name()
        self._lane_of = {row.block: row.lane for row in results.rows if row.machine == here and row.lane in lanes}
        self._waiting: defaultdict[int, deque[Block]] = defaultdict(deque)

    def next_in(self, lane: int, free: Fraction = WHOLE) -> Block | None:
        """The next block for the lane with this number; `free` is the share of its cores that no block takes. None if
        no block is left for the lane, or if the next one needs a larger share. A later block does not take its place,
        since the next one might then wait for ever."""
        if waiting := self._waiting[lane]:
            return waiting.popleft() if waiting[0].share <= free else None
        while block := self._next or next(self._coming, None):
            self._next = None
            first = self._lane_of.get(block.number) or lane
            if first == lane:
                if block.share <= free:
                    return block
                self._next = block
                return None
            self._waiting[first].append(block)
        return None
