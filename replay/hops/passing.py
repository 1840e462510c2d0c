"""A hop that only forwards packets, in the kernel. It cuts the path into the same two halves as the other kinds, which
are compared with it."""

from replay.hops.contract import HopKind
from tuning.hops import NONE


class Passing(HopKind):
    """A hop without a program."""

    name = NONE


HOP = Passing()
