"""A rate, delay and loss that change over time: as packets show them, and as the network's files say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuning.conditions import DELAY, LOSS, Conditions

Floats = NDArray[np.float64]

# The emulated network's start is searched for in this range, relative to the start of its first process, which is known
# to a hundredth of a second.
EARLIEST_MS, LATEST_MS, STEP_MS = -10.0, 60.0, 0.5
BEGINNINGS_MS = np.arange(EARLIEST_MS, LATEST_MS, STEP_MS)
# The start that fits a trace best is chosen by the arrivals of at most this many packets.
FITTED_PACKETS = 2000


@dataclass(frozen=True)
class SeenConditions:
    """The conditions of a direction as observed, and the values expected by its file.

    `delay_ms` and `expected_delay_ms` are means over packets, without the network's own delay; half of all packets
    deviated by at most `off_ms`. `expected_loss` and `loss_sd` are the mean and the standard deviation of the share of
    `packets` that this file loses, without other losses.
    """

    packets: int
    delay_ms: float
    expected_delay_ms: float
    off_ms: float
    expected_loss: float
    loss_sd: float


@dataclass(frozen=True)
class LetThrough:
    """The rate (Mbit/s) that a trace should let through during a measurement, according to its file, and the rate's
    standard deviation, which comes from random losses."""

    mbps: float
    sd_mbps: float = 0.0


def let_through(
    lines_ms: Sequence[int],
    arrived_ms: Floats,
    packet_bytes: int,
    packets_per_line: float,
    behind: Conditions | None,
    lost: float,
    rtt_ms: float,
) -> LetThrough:
    """The rate that a saturated link with this trace should let through between the first and the last of its packets.

    `arrived_ms` are the packets' arrival times, roughly since the network's start. The start that fits them best is
    used, among those possible with a round trip of `rtt_ms`. After the link, packets meet the conditions `behind`
    (delays and losses that change over time), and a share `lost` is lost at random.
    """
    latest_ms = LATEST_MS + rtt_ms
    rounds = int((arrived_ms[-1] - EARLIEST_MS) // lines_ms[-1]) + 1
    due_ms = (np.arange(rounds)[:, None] * lines_ms[-1] + np.array(lines_ms, float)).ravel()
    kept = np.full(len(due_ms), 1 - lost)
    if behind:
        kept *= 1 - _at(behind, LOSS, due_ms)
        due_ms = due_ms + _expected_ms(behind, due_ms)
    passed = np.append(0.0, np.cumsum(kept))

    def count(until_ms: Floats) -> Floats:
        return passed[np.searchsorted(due_ms, until_ms, side="right")]

    numbers = np.unique(np.linspace(0, len(arrived_ms) - 1, FITTED_PACKETS).astype(int))
    some_ms = arrived_ms[numbers]

    def misfit(shift_ms: float) -> float:
        beside = count(some_ms - shift_ms) * packets_per_line - numbers
        return float(np.abs(beside - np.median(beside)).mean())

    shift_ms = min(np.arange(EARLIEST_MS, latest_ms, STEP_MS), key=misfit)
    ends_ms = arrived_ms[[0, -1]] - shift_ms
    first, last = np.searchsorted(due_ms, ends_ms, side="right")
    mbps_per_packet = packet_bytes * 8e-3 / (ends_ms[1] - ends_ms[0])
    packets = (passed[last] - passed[first]) * packets_per_line
    chance = np.sqrt((kept[first:last] * (1 - kept[first:last])).sum() * packets_per_line)
    return LetThrough(float(packets * mbps_per_packet), float(chance * mbps_per_packet))


def seen_conditions(
    conditions: Conditions,
    sent_ms: Mapping[int, float],
    delayed_ms: Mapping[int, float],
    before_ms: float,
) -> SeenConditions:
    """The conditions that packets met, and those expected by `conditions`. `sent_ms`: number of a packet → when it was
    sent, roughly since the network's start.

    `delayed_ms`: number → the delay of a packet that arrived, beyond the network's own. Packets meet the conditions
    `before_ms` after they were sent.
    """
    numbers = np.array(sorted(delayed_ms))
    met_ms = np.array([sent_ms[number] for number in numbers]) + before_ms
    seen_ms = np.array([delayed_ms[number] for number in numbers])
    expected = {shift_ms: _expected_ms(conditions, met_ms - shift_ms) for shift_ms in BEGINNINGS_MS}
    off_ms = {shift_ms: float(np.median(np.abs(seen_ms - delays_ms))) for shift_ms, delays_ms in expected.items()}
    shift_ms = min(off_ms, key=off_ms.__getitem__) if conditions.has(DELAY) else 0.0
    all_met_ms = np.array([*sent_ms.values()]) + before_ms - shift_ms
    chances = _at(conditions, LOSS, all_met_ms)
    return SeenConditions(
        packets=len(sent_ms),
        delay_ms=float(seen_ms.mean()),
        expected_delay_ms=float(expected[shift_ms].mean()),
        off_ms=off_ms[shift_ms],
        expected_loss=float(chances.mean()),
        loss_sd=float(np.sqrt((chances * (1 - chances)).sum()) / len(chances)),
    )


def _expected_ms(conditions: Conditions, met_ms: Floats) -> Floats:
    """The delays of packets that meet the conditions at these times; no packet overtakes another."""
    return np.maximum.accumulate(met_ms + _at(conditions, DELAY, met_ms)) - met_ms


def _at(conditions: Conditions, column: str, times_ms: Floats) -> Floats:
    """The values of a column at many times; 0 if the file lacks the column."""
    if not conditions.has(column):
        return np.zeros(len(times_ms))
    places = np.searchsorted(conditions.at_ms, times_ms % conditions.period_ms, side="right") - 1
    return np.array(conditions.columns[column])[places]
