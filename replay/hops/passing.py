"""A hop that hands every packet on, by the kernel: the same two halves, for comparison."""

from contextlib import AbstractContextManager, nullcontext

from replay.hops.contract import HopKind, Work
from tuning.hops import NONE


class Passing(HopKind):
    """No program."""

    name = NONE

    def at_work(self, work: Work) -> AbstractContextManager[None]:
        return nullcontext()


HOP = Passing()
