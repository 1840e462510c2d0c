"""A hop that hands every packet on, by the kernel: the same two halves, for comparison."""

from replay.hops.contract import HopKind
from tuning.hops import NONE


class Passing(HopKind):
    """No program."""

    name = NONE


HOP = Passing()
