"""The configured rates and round-trip times of networks over time."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, BROWN, ORANGE, PAGE_INCHES, figure_style
from analysis.text import label
from tuning.conditions import DELAY, LOSS
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.rate import TRACE_LINE_BYTES, read_trace
from tuning.networks import Network

# How many networks stand side by side, each with a panel for the rate and a panel for the round-trip time.
BESIDE = 2
ROW_INCHES = 1.3
# The time over which the rate of a trace is averaged.
BIN_S = 0.25
# At most this many entries fit next to each other.
LEGEND_COLUMNS = 5
# The time step in which a delay or a loss over time is drawn.
CONDITIONS_BIN_S = 0.02
STYLES = {DOWN: (BLACK, "-", "down"), UP: (ORANGE, "--", "up")}


def rate_series(network: Network, direction: str, seconds: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The rate of a direction over time: times in s, and the rate in Mbit/s from each time on; None if nothing limits
    it."""
    if (mbps := network.rate_of(direction)) is None:
        return None
    if not (trace := network.trace_of(direction)):
        return np.array([0.0, seconds]), np.array([mbps, mbps])
    at_s = np.array([int(line) for line in read_trace(Path(trace))]) / 1e3
    period_s = at_s[-1]
    rounds = np.concatenate([at_s + number * period_s for number in range(math.ceil(seconds / period_s))])
    edges = np.arange(0, seconds + BIN_S, BIN_S)
    counts, _ = np.histogram(rounds, edges)
    rates = counts * TRACE_LINE_BYTES * 8 / BIN_S / 1e6
    return edges, np.append(rates, rates[-1])


def over_time(network: Network, direction: str, column: str, seconds: float) -> tuple[np.ndarray, np.ndarray] | None:
    """A column of a direction's conditions over time: times in s, and from each time on the delay beyond the network's
    own (ms) or the further loss. None if the conditions have no such column."""
    conditions = network.conditions_of(direction)
    if not conditions or not conditions.has(column):
        return None
    times_s = np.arange(0, seconds + CONDITIONS_BIN_S / 2, CONDITIONS_BIN_S)
    return times_s, np.array([conditions.at(column, 1e3 * at_s) for at_s in times_s])


def off_times(network: Network, direction: str, seconds: float) -> list[tuple[float, float]]:
    """When a direction is off: the start and end of each such time, in s. Empty if these times are random, since they
    differ between loads."""
    times = network.on_off_of(direction)
    if times is None or not times.periodic:
        return []
    starts = np.arange(times.on_s, seconds, times.period_s)
    return [(float(start), float(start + times.off_s)) for start in starts]


def draw(chosen: Sequence[Network], seconds: float) -> Figure:
    """Draw two panels over `seconds` for each of the `chosen` networks: its rates, and its round-trip time with empty
    queues and with everything that jitter and full queues add."""
    rows = math.ceil(len(chosen) / BESIDE)
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.6 + ROW_INCHES * rows), layout="constrained")
        panels = figure.subplots(rows, 2 * BESIDE, squeeze=False)
        for number in range(rows * BESIDE):
            row, column = divmod(number, BESIDE)
            rate, delay = panels[row, 2 * column : 2 * column + 2]
            if number >= len(chosen):
                rate.set_visible(False)
                delay.set_visible(False)
                continue
            _draw_rates(rate, chosen[number], seconds)
            _draw_delays(delay, chosen[number], seconds)
            _draw_losses(delay, chosen[number], seconds)
        for panel in panels[-1]:
            panel.set_xlabel("s")
        handles: dict[str, Any] = {}
        for panel in panels.flat:
            handles |= {name: handle for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)}
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=min(len(handles), LEGEND_COLUMNS)
        )
        return figure


def _draw_rates(panel: Axes, network: Network, seconds: float) -> None:
    for direction, (color, dashes, name) in STYLES.items():
        if series := rate_series(network, direction, seconds):
            panel.step(*series, where="post", color=color, linestyle=dashes, label=name)
        for begin_s, end_s in off_times(network, direction, seconds):
            panel.axvspan(begin_s, max(end_s, begin_s + seconds / 300), color="0.6", zorder=0, label="off")
    # A long name continues above the other panel of its network.
    panel.set_title(f"{label(network.name)}\nMbit/s", loc="left")
    panel.set(xlim=(0, seconds), ylim=(0, None))
    if network.up_mbps is None and network.down_mbps is None:
        panel.text(0.5, 0.5, "no limit", transform=panel.transAxes, ha="center", va="center")


def _draw_delays(panel: Axes, network: Network, seconds: float) -> None:
    least_ms = network.min_rtt_ms
    waits_ms = []
    for direction in (UP, DOWN):
        queue, mbps = network.queue_of(direction), network.rate_of(direction)
        waits_ms.append((queue.longest_wait_ms(mbps, least_ms) or 0.0) if queue and mbps else 0.0)
    times_s, delays_ms = np.array([0.0, seconds]), np.full(2, least_ms)
    for direction in (UP, DOWN):
        if series := over_time(network, direction, DELAY, seconds):
            times_s = series[0]
            delays_ms = series[1] + (delays_ms if len(delays_ms) == len(times_s) else least_ms)
    low_ms, high_ms = delays_ms - 2 * network.jitter_ms, delays_ms + 2 * network.jitter_ms
    panel.fill_between(times_s, high_ms, high_ms + sum(waits_ms), step="post", color="0.85", label="full queues")
    if network.jitter_ms:
        panel.fill_between(times_s, low_ms, high_ms, step="post", color="#f5d9a8", label="jitter")
    panel.step(times_s, delays_ms, where="post", color="black", label="round trip, empty queues")
    panel.set_title("round trip, ms", loc="left")
    panel.set(xlim=(0, seconds), ylim=(0, None))


def _draw_losses(panel: Axes, network: Network, seconds: float) -> None:
    """Draw the losses of both directions over time, on a separate axis on the right."""
    kept = None
    for direction in (UP, DOWN):
        if series := over_time(network, direction, LOSS, seconds):
            times_s, losses = series
            kept = (1 if kept is None else kept) * (1 - losses)
    if kept is None:
        return
    # The legend takes only lines of the panels themselves, so this empty line stands for the line on the right axis.
    panel.plot([], [], color=BROWN, label="loss over time, % (right)")
    right = panel.twinx()
    right.step(times_s, 100 * (1 - kept), where="post", color=BROWN, linewidth=0.8)
    right.set_ylim(0, None)
    right.tick_params(axis="y", colors=BROWN)
