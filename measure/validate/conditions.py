"""What packets say of delay and loss that change over time, beside the file that they should follow."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuning.conditions import DELAY, LOSS, Conditions

Floats = NDArray[np.float64]

# When the emulated network began is known to a hundredth of a second, and when its first process did: it may have
# begun so much later than that.
BEGINNINGS_MS = np.arange(-10.0, 60.0, 0.5)


@dataclass(frozen=True)
class SeenConditions:
    """What was seen of a direction's conditions, and what should have been, by their file.

    `delay_ms` and `expected_delay_ms` are means over packets, beyond the network's own delay; half of all packets were
    off by no more than `off_ms`. `expected_loss` and `loss_sd` are the mean and the standard deviation of the share of
    `packets` that is lost, beside other losses.
    """

    packets: int
    delay_ms: float
    expected_delay_ms: float
    off_ms: float
    expected_loss: float
    loss_sd: float


def seen_conditions(
    conditions: Conditions,
    sent_ms: Mapping[int, float],
    delayed_ms: Mapping[int, float],
    before_ms: float,
) -> SeenConditions:
    """How packets fared that were sent at these times since the network's beginning, nearly, by their numbers.

    Those that arrived were `delayed_ms` beyond what the network itself takes; they meet the conditions `before_ms`
    after they were sent.
    """
    numbers = np.array(sorted(delayed_ms))
    met_ms = np.array([sent_ms[number] for number in numbers]) + before_ms
    seen_ms = np.array([delayed_ms[number] for number in numbers])
    expected = {shift_ms: _expected_ms(conditions, met_ms - shift_ms) for shift_ms in BEGINNINGS_MS}
    off_ms = {shift_ms: float(np.median(np.abs(seen_ms - delays_ms))) for shift_ms, delays_ms in expected.items()}
    shift_ms = min(off_ms, key=off_ms.__getitem__) if conditions.has(DELAY) else 0.0
    all_met_ms = np.array([*sent_ms.values()]) + before_ms - shift_ms
    chances = np.array([conditions.at(LOSS, at_ms) for at_ms in all_met_ms])
    return SeenConditions(
        packets=len(sent_ms),
        delay_ms=float(seen_ms.mean()),
        expected_delay_ms=float(expected[shift_ms].mean()),
        off_ms=off_ms[shift_ms],
        expected_loss=float(chances.mean()),
        loss_sd=float(np.sqrt((chances * (1 - chances)).sum()) / len(chances)),
    )


def _expected_ms(conditions: Conditions, met_ms: Floats) -> Floats:
    """The delay of packets that meet the conditions at these times: none overtakes another."""
    leave_ms = met_ms + np.array([conditions.at(DELAY, at_ms) for at_ms in met_ms])
    return np.maximum.accumulate(leave_ms) - met_ms
