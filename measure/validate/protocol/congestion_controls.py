"""The behaviour by which congestion controls are recognised. A congestion control that is not listed cannot be
judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Behaviour:
    """How a congestion control behaves. `lossy_share`: the least and the largest share that it gets of a validation's
    lossy link.

    `growth_packets`: HTTP version → by how much its window may exceed the initial one when the first flight of an
    object is sent.

    `cubic`: whether it answers a single loss like Cubic (`measure.validate.protocol.cubic`); `reno`: whether like Reno,
    keeping the share that the server states. If neither, `kept_share` is the least and the largest share of its window
    that it keeps, or regains within a second.
    """

    lossy_share: tuple[float, float]
    growth_packets: Mapping[str, float] = field(default_factory=dict)
    cubic: bool = False
    reno: bool = False
    kept_share: tuple[float, float] = (0.0, 1.0)


# In some 30 loads over all protocols, on an idle and on a busy machine, Cubic got 9 to 37 %, BBR 69 to 94 %.
LOSS_BOUND, LOSS_BLIND = (0.0, 0.55), (0.6, 1.0)
# BBR's window grows with all that was acknowledged earlier: over TCP, this includes the segments of handshake and page.
BBR_GROWTH = {"h2": 9.0, "h3": 4.0}
# BBR does not reduce its window for a single loss; its bytes in flight vary by themselves. At any point in three
# transfers, the most in flight within the next second was 0.94 to 2.1 times the most before that point. A second after
# a loss, Cubic has 0.84 of its window, and Cubic as two connections 0.94. The validation distinguishes Cubic as two
# connections from BBR by its share of a lossy link.
BBR_KEPT = (0.9, 2.5)

BEHAVIOURS = {
    "cubic": Behaviour(LOSS_BOUND, cubic=True),
    "reno": Behaviour(LOSS_BOUND, reno=True),
    "bbr": Behaviour(LOSS_BLIND, BBR_GROWTH, kept_share=BBR_KEPT),
    "bbr2": Behaviour(LOSS_BLIND, BBR_GROWTH, kept_share=BBR_KEPT),
}


def not_modelled(control: str, measured: str) -> str:
    """Why a check of a congestion control that is not listed has no verdict, with the `measured` value."""
    return f"{measured} (measured, not judged: how {control} answers to losses is not modelled)"
