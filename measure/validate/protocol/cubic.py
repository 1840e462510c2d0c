"""Cubic's window after a loss, by RFC 9438, and for a sender that emulates several connections."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# RFC 9438: section 4.1.2 and section 5 (C in segments/s³); section 4.6 (the share that one connection keeps).
C, BETA = 0.4, 0.7

Numbers = NDArray[np.float64]


def cubic_beta(connections: int) -> float:
    """The share of its window that a sender keeps after one loss if it emulates `connections`, only one of which backs
    off (quiche's `CubicBytes::Beta`)."""
    return (connections - 1 + BETA) / connections


@dataclass(frozen=True)
class CubicCurve:
    """The growth of a window after a loss at `before` segments, with a round trip of `rtt_s`.

    The window is W(t) = C (t - K)³ + `before` (RFC 9438, section 4.2), or, if that is more, the window that
    `connections` Reno connections would have by then (section 4.3; quiche's `CubicBytes::Alpha` for several).
    """

    before: float
    connections: int
    rtt_s: float

    @property
    def beta(self) -> float:
        """The share of the window that is kept."""
        return cubic_beta(self.connections)

    @property
    def k_s(self) -> float:
        """K: the time after which the window is as large as before the loss."""
        return math.cbrt(self.before * (1 - self.beta) / C)

    def window(self, after_s: Numbers) -> Numbers:
        """The window in segments, `after_s` after the end of the recovery."""
        cubic = C * (after_s - self.k_s) ** 3 + self.before
        alpha = 3 * self.connections**2 * (1 - self.beta) / (1 + self.beta)
        reno = self.beta * self.before + alpha * after_s / self.rtt_s
        return np.maximum(cubic, np.minimum(reno, self.before))
