"""Windows over time: congestion window, bytes in flight and RTT of one connection of each protocol, on one axis."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import PAGE_INCHES, look, named, styled
from studies.states.graph import COLORS, ORDER, OTHER_COLOR, label
from studies.states.series import Spell

BAND_INCHES = 0.28


@dataclass(frozen=True)
class Drawn:
    """A connection: its protocol, its series (`studies.states.series.series`), and its spells."""

    protocol: str
    series: pd.DataFrame
    spells: Sequence[Spell]


def draw(connections: Sequence[Drawn]) -> Figure:
    """Window and bytes in flight above, RTT below, and a band of states for each protocol."""
    protocols = [drawn.protocol for drawn in connections]
    end_s = max((drawn.spells[-1].end_s for drawn in connections if drawn.spells), default=0.0)
    with styled():
        bands = BAND_INCHES * len(connections)
        figure = Figure(figsize=(PAGE_INCHES, 3.9 + bands), layout="constrained")
        windows, rtts, states = figure.subplots(3, 1, sharex=True, height_ratios=[2.2, 1.2, bands])
        for number, drawn in enumerate(connections):
            chosen = look(drawn.protocol, protocols)
            shown = drawn.series
            _draw_window(windows, shown, drawn.protocol, chosen.color, chosen.dashes)
            rtts.step(
                shown["time_s"], shown["smoothed_rtt_ms"], color=chosen.color, linestyle=chosen.dashes, where="post"
            )
            rtts.step(shown["time_s"], shown["min_rtt_ms"], color=chosen.color, lw=0.6, alpha=0.6, where="post")
            _draw_states(states, drawn.spells, len(connections) - 1 - number)
        windows.set_ylabel("window [KB]")
        windows.set_ylim(bottom=0)
        windows.legend(loc="upper left", ncols=len(connections))
        rtts.set_ylabel("RTT [ms]")
        rtts.set_ylim(bottom=0)
        states.set_yticks(range(len(connections)), [named(protocol) for protocol in reversed(protocols)])
        states.set_ylim(-0.5, len(connections) - 0.5)
        states.grid(visible=False)
        states.set_xlabel("time from the start of the navigation [s]")
        states.set_xlim(0, end_s or None)
        seen = {spell.state for drawn in connections for spell in drawn.spells}
        figure.legend(handles=_legend(seen), loc="outside lower center", ncols=4)
    return figure


def _legend(seen: Collection[str]) -> list[Patch]:
    """An entry for each color; what Cubic and BBR do alike have one."""
    meant: dict[str, list[str]] = {}
    for state in (*ORDER, *sorted(set(seen) - set(ORDER))):
        if state in seen:
            meant.setdefault(COLORS.get(state, OTHER_COLOR), []).append(label(state))
    return [Patch(color=color, label=", ".join(labels)) for color, labels in meant.items()]


def _draw_window(axes: Axes, shown: pd.DataFrame, protocol: str, color: str, dashes: object) -> None:
    axes.fill_between(shown["time_s"], shown["in_flight"] / 1e3, step="post", color=color, alpha=0.15, linewidth=0)
    axes.step(
        shown["time_s"], shown["window"] / 1e3, color=color, linestyle=dashes, where="post", label=named(protocol)
    )
    # A tick on the window's line wherever packets were lost.
    lost = shown[np.r_[False, np.diff(shown["lost"]) > 0]]
    axes.plot(lost["time_s"], lost["window"] / 1e3, "|", color=color, markersize=6, markeredgewidth=0.8)


def _draw_states(axes: Axes, spells: Sequence[Spell], row: int) -> None:
    for spell in spells:
        color = COLORS.get(spell.state, OTHER_COLOR)
        axes.barh(row, spell.seconds, left=spell.start_s, height=0.7, color=color, linewidth=0)
