"""A place measures a campaign's blocks: this machine (`measure_here`), its lanes (`measure.campaign.lanes`), or the
nodes of a cluster (`measure.campaign.cluster`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from dataset.table import Run
from measure.campaign.block import Block, Notice, measure_block
from measure.campaign.campaign import Campaign
from measure.campaign.preparer import Preparer
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results
from measure.campaign.slot import Slot, canaries_of, machine_name
from measure.host.idle_priority import idle_priority_of_blocks
from measure.run.setting import Setting


@dataclass(frozen=True)
class Work:
    """The work of a place: measure the `blocks` of `campaign` into `results`, with progress on `display`.

    The place must ask `may_begin` before each block; after the first no, none may begin. It must call `end` after each
    block. `after` returns the run that will be first after a block, with its setting, as far as is known before the
    block ends.
    """

    campaign: Campaign
    blocks: Iterable[Block]
    results: Results
    display: ProgressDisplay
    may_begin: Callable[[Block], bool]
    end: Callable[[Block], None]
    after: Callable[[Block], tuple[Run, Setting] | None]


# Measures all blocks of a `Work`. Raises EyelevelError when the measurement cannot continue.
Place = Callable[[Work], None]


def measure_here(work: Work, slot: Slot | None = None) -> None:
    """Measure on this machine, or in the given `slot`, a block at a time. While a block ends, the first run of the next
    one is prepared. Raises EyelevelError when that cannot continue."""
    campaign, canaries = work.campaign, canaries_of(machine_name(), work.results.rows)
    slot = slot or Slot(canaries, campaign.canary_s, campaign.loading.browser)
    with idle_priority_of_blocks() as idle, Preparer(work.results) as preparer:
        for block in takewhile(work.may_begin, work.blocks):
            preparer.idle = idle(lambda text: work.display.notify(Notice(text)))
            measure_block(block, work.results, slot, work.display.notify, preparer, partial(work.after, block))
            work.end(block)
