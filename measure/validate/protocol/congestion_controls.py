"""How congestion controls behave, by which they are recognised. One that is not here cannot be checked for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Behaviour:
    """`lossy_share`: the least and the most that it gets of the lossy link of a validation, as shares.

    `growth_packets`: by how much its window may be more than the initial one when the first flight of an object is
    sent, by HTTP version.

    `cubic`: whether it answers to a single loss as Cubic does (`cubic`); `reno`: whether as Reno does, which keeps the
    share that the server says. If it does neither, `kept_share` is the least and the most share of its window that it
    keeps, or has again within a second.
    """

    lossy_share: tuple[float, float]
    growth_packets: Mapping[str, float] = field(default_factory=dict)
    cubic: bool = False
    reno: bool = False
    kept_share: tuple[float, float] = (0.0, 1.0)


# In some 30 loads of all settings, on an idle machine and on a busy one, cubic had 9 to 37 %, BBR 69 to 94 %.
LOSS_BOUND, LOSS_BLIND = (0.0, 0.55), (0.6, 1.0)
# BBR's window grows by what was acknowledged before: over TCP by the segments of handshake and page.
BBR_GROWTH = {"h2": 9.0, "h3": 4.0}
# It does not reduce its window for a single loss; what it has in flight goes up and down by itself. Anywhere in three
# transfers, it had 0.94 to 2.1 times as much within a second. Cubic has 0.84 of its window by then; as two connections
# it has 0.94, and is told from BBR by its share of a lossy link.
BBR_KEPT = (0.9, 2.5)

BEHAVIOURS = {
    "cubic": Behaviour(LOSS_BOUND, cubic=True),
    "reno": Behaviour(LOSS_BOUND, reno=True),
    "bbr": Behaviour(LOSS_BLIND, BBR_GROWTH, kept_share=BBR_KEPT),
    "bbr2": Behaviour(LOSS_BLIND, BBR_GROWTH, kept_share=BBR_KEPT),
}
