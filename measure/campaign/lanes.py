"""Measuring in the lanes of this machine: a block in each at a time, and the next of the plan in whichever is free.

What is compared stays together: all runs of a block are made in one lane, one after another. What runs beside it is
another block, whose runs begin at other moments and in another order, so that it favours none of those compared.

This process alone writes rows, and decides what follows from them, as when there is one lane.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from multiprocessing.connection import wait

from measure.campaign.block import Block
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import require_space
from measure.campaign.lane import Beginning, Ending, LaneSetting, Notice, RunningLane, running_lane
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results
from measure.campaign.slot import canaries_of, machine_name
from measure.host.lanes import cores_beside, working_on


def measure_in_lanes(
    campaign: Campaign,
    blocks: Iterable[Block],
    results: Results,
    display: ProgressDisplay,
    done: Callable[[Block], None],
) -> None:
    """Measure `blocks` in the lanes of `campaign` into `results`, and call `done` after each (see `campaign.Workers`).

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
        deal_out(lanes, blocks, results, display, done)


def deal_out(
    lanes: Iterable[RunningLane],
    blocks: Iterable[Block],
    results: Results,
    display: ProgressDisplay,
    done: Callable[[Block], None],
) -> None:
    """Give each of `lanes` a block, and another when it has ended, until all `blocks` have. Raises what ends a lane."""
    coming = iter(blocks)
    idle, busy = list(lanes), dict[object, tuple[RunningLane, Block]]()
    while True:
        while idle and (block := next(coming, None)):
            require_space(0, results.folder)
            lane = idle.pop(0)
            lane.begin(block, results)
            busy[lane.connection] = lane, block
        if not busy:
            return
        for connection in wait([lane.connection for lane, _ in busy.values()]):
            lane, block = busy[connection]
            if hear(lane, block, results, display):
                del busy[connection]
                idle.append(lane)
                done(block)


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
