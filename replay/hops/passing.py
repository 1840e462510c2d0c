"""A hop that only forwards packets, in the kernel. It divides the path into the same two halves as other kinds of hops,
so that they can be compared with it."""

from replay.hops.contract import HopKind
from tuning.hops import NONE


class Passing(HopKind):
    """A hop without a program."""

    name = NONE


HOP = Passing()
