"""Windows over time: congestion window, bytes in flight and RTT of one connection of each protocol, on one axis."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import PAGE_INCHES, figure_style, line_style
from analysis.text import label
from studies.states.graph import STATES, state_label, state_style
from studies.states.series import Spell

BAND_INCHES = 0.28


@dataclass(frozen=True)
class ConnectionSeries:
    """A connection: its protocol, its series (`studies.states.series.series`), and its spells."""

    protocol: str
    series: pd.DataFrame
    spells: Sequence[Spell]


def draw(connections: Sequence[ConnectionSeries]) -> Figure:
    """Draw window and bytes in flight at the top, RTT below, and a band of states for each protocol."""
    protocols = [connection.protocol for connection in connections]
    end_s = max((connection.spells[-1].end_s for connection in connections if connection.spells), default=0.0)
    with figure_style():
        bands = BAND_INCHES * len(connections)
        figure = Figure(figsize=(PAGE_INCHES, 3.9 + bands), layout="constrained")
        windows, rtts, states = figure.subplots(3, 1, sharex=True, height_ratios=[2.2, 1.2, bands])
        for number, connection in enumerate(connections):
            style = line_style(connection.protocol, protocols)
            series = connection.series
            _draw_window(windows, series, connection.protocol, style.color, style.dashes)
            rtts.step(
                series["time_s"], series["smoothed_rtt_ms"], color=style.color, linestyle=style.dashes, where="post"
            )
            rtts.step(series["time_s"], series["min_rtt_ms"], color=style.color, lw=0.6, alpha=0.6, where="post")
            _draw_states(states, connection.spells, len(connections) - 1 - number)
        windows.set_ylabel("window [KB]")
        windows.set_ylim(bottom=0)
        windows.legend(loc="upper left", ncols=len(connections))
        rtts.set_ylabel("RTT [ms]")
        rtts.set_ylim(bottom=0)
        states.set_yticks(range(len(connections)), [label(protocol) for protocol in reversed(protocols)])
        states.set_ylim(-0.5, len(connections) - 0.5)
        states.grid(visible=False)
        states.set_xlabel("time from the start of the navigation [s]")
        states.set_xlim(0, end_s or None)
        states_present = {spell.state for connection in connections for spell in connection.spells}
        figure.legend(handles=_legend(states_present), loc="outside lower center", ncols=4)
    return figure


def _legend(present: Collection[str]) -> list[Patch]:
    """A legend entry for each colour; corresponding states of Cubic and BBR share a colour."""
    labels_of: dict[str, list[str]] = {}
    for state in (*STATES, *sorted(set(present) - set(STATES))):
        if state in present:
            labels_of.setdefault(state_style(state).color, []).append(state_label(state))
    return [Patch(color=color, label=", ".join(labels)) for color, labels in labels_of.items()]


def _draw_window(axes: Axes, series: pd.DataFrame, protocol: str, color: str, dashes: object) -> None:
    axes.fill_between(series["time_s"], series["in_flight"] / 1e3, step="post", color=color, alpha=0.15, linewidth=0)
    axes.step(
        series["time_s"], series["window"] / 1e3, color=color, linestyle=dashes, where="post", label=label(protocol)
    )
    # A tick on the window's line at each loss.
    losses = series[np.r_[False, np.diff(series["lost"]) > 0]]
    axes.plot(losses["time_s"], losses["window"] / 1e3, "|", color=color, markersize=6, markeredgewidth=0.8)


def _draw_states(axes: Axes, spells: Sequence[Spell], row: int) -> None:
    for spell in spells:
        color = state_style(spell.state).color
        axes.barh(row, spell.seconds, left=spell.start_s, height=0.7, color=color, linewidth=0)
