"""A campaign's blocks are measured at a place: on this machine (`Here`), in its lanes (`measure.campaign.lanes`), or on
the nodes of a cluster (`measure.campaign.cluster`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Protocol

from dataset.table import Run
from measure.campaign.block import Block, measure_block
from measure.campaign.campaign import Campaign
from measure.campaign.preparer import Preparer
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results
from measure.campaign.slot import Slot, canaries_of, machine_name
from measure.host.idle_priority import idle_priority
from measure.run.setting import Setting


@dataclass(frozen=True)
class Work:
    """The work of a place: `blocks` of `campaign`, one after another, into `results`, shown by `display`.

    `may_begin` says before each block whether it may begin; after a no, none does. `end` is told of each that has been
    measured. `after` says which run will be first after a block, with its setting, as far as is known before its end.
    """

    campaign: Campaign
    blocks: Iterable[Block]
    results: Results
    display: ProgressDisplay
    may_begin: Callable[[Block], bool]
    end: Callable[[Block], None]
    after: Callable[[Block], tuple[Run, Setting] | None]


class Place(Protocol):
    """Where blocks are measured."""

    def measure(self, work: Work) -> None:
        """Measure the blocks of `work`. Raises EyelevelError when that cannot go on."""


class Here:
    """This machine, or the `slot` that it is given, a block at a time."""

    def __init__(self, slot: Slot | None = None) -> None:
        self._slot = slot

    def measure(self, work: Work) -> None:
        """See `Place`. The run that will be first after a block is prepared when that ends."""
        canaries = canaries_of(machine_name(), work.results.rows)
        slot = self._slot or Slot(canaries, work.campaign.canary_s, work.campaign.loading.browser)
        with idle_priority() as idle, Preparer(work.results, idle) as preparer:
            for block in takewhile(work.may_begin, work.blocks):
                measure_block(block, work.results, slot, work.display.notify, preparer, partial(work.after, block))
                work.end(block)
