"""Plays over time: the received data, the played quality, and the buffer, of all protocols on one axis."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style, line_style
from analysis.text import label, span
from studies.video.media import SEGMENT_S
from studies.video.play import Play

# The bins of the received bytes; the buffer is sampled more often.
BIN_S, STEP_S = 1.0, 0.25
PANEL_INCHES = 1.15
WAITING = "waiting\n[% of plays]"

Series = NDArray[np.float64]


def draw(plays: Sequence[tuple[str, Play]], seconds: float, has_rule: bool) -> Figure:
    """Draw `plays` of one video on one network, each with its protocol, for their first `seconds`. There are panels
    for the rate at which data came, the rate that was played (if the video `has_rule`; otherwise this rate is
    constant), the share of plays that waited, and the buffer. Lines are means; bands extend from the lower to the
    upper quartile."""
    protocols = list(dict.fromkeys(protocol for protocol, _ in plays))
    series_of = {"received\n[Mbit/s]": received, **({"played\n[Mbit/s]": shown} if has_rule else {})}
    series_of |= {WAITING: waiting, "buffer\n[s]": ahead}
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.7 + PANEL_INCHES * len(series_of)), layout="constrained")
        panels = figure.subplots(len(series_of), 1, sharex=True)
        for axes, (name, series) in zip(panels, series_of.items(), strict=True):
            for protocol in protocols:
                some = [series(play, seconds) for of_play, play in plays if of_play == protocol]
                # Quartiles of yes/no values say nothing.
                _line(axes, protocol, protocols, some, has_band=name != WAITING)
            axes.set_ylabel(name)
            axes.set_ylim(bottom=0)
            if name == WAITING:
                axes.set_ylim(0, 105)
        figure.align_ylabels()
        panels[-1].set(xlabel="time since navigation [s]", xlim=(0, seconds))
        counts = [sum(name == protocol for name, _ in plays) for protocol in protocols]
        text = f"{span(min(counts), max(counts))} {'play' if max(counts) == 1 else 'plays'} each"
        panels[0].set_title(text, loc="right", fontsize=SMALL)
        panels[0].legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=SMALL, ncols=len(protocols))
        return figure


def received(play: Play, seconds: float) -> tuple[Series, Series]:
    """Times (s), and the rate (Mbit/s) at which segments came around each time, with the bytes of each segment spread
    evenly from its first byte to its last. The series ends with the last segment that came: nothing is known about a
    segment that was under way when the play ended."""
    edges = np.arange(0, seconds + BIN_S, BIN_S)
    came = np.zeros(len(edges))
    for one in play.segments:
        came += one.bytes * np.interp(
            edges * 1000, [one.first_byte_ms, max(one.ended_ms, one.first_byte_ms + 1)], [0, 1]
        )
    mbps = np.diff(came) * 8 / BIN_S / 1e6
    mbps[edges[1:] > max((one.ended_ms for one in play.segments), default=0) / 1000] = np.nan
    return edges[:-1] + BIN_S / 2, mbps


def shown(play: Play, seconds: float) -> tuple[Series, Series]:
    """Times (s), and the rate (Mbit/s) of the quality played at each time; NaN before the first frame."""
    times, positions, _ = _buffer(play)
    steps = np.arange(0, seconds, STEP_S)
    numbers = np.interp(steps, times, positions) // SEGMENT_S + 1
    begun = steps >= (np.inf if play.first_frame_ms is None else play.first_frame_ms) / 1000
    rates = [play.played_mbps.get(int(number), np.nan) for number in numbers]
    # A picture that stands still at the end of its segment belongs to that segment.
    standing: Series = pd.Series(rates, dtype=float).ffill().to_numpy(dtype=np.float64, copy=True)
    standing[~begun] = np.nan
    return steps, standing


def waiting(play: Play, seconds: float) -> tuple[Series, Series]:
    """Times (s), and 100 if the play waited for a picture (the first one, or one in a rebuffer), else 0."""
    steps = np.arange(0, seconds, STEP_S)
    is_waiting = steps < (np.inf if play.first_frame_ms is None else play.first_frame_ms) / 1000
    for from_ms, still_ms in play.rebuffers:
        is_waiting |= (steps >= from_ms / 1000) & (steps < (from_ms + still_ms) / 1000)
    return steps, 100 * is_waiting.astype(np.float64)


def ahead(play: Play, seconds: float) -> tuple[Series, Series]:
    """Times (s), and how many seconds of video could be played without further data."""
    times, positions, untils = _buffer(play)
    steps = np.arange(0, seconds, STEP_S)
    return steps, np.interp(steps, times, untils - positions, left=0)


def _buffer(play: Play) -> tuple[Series, Series, Series]:
    at_ms, positions, untils, _ = np.array(play.buffer or [(0, 0, 0, 0)], dtype=float).T
    return at_ms / 1000, positions, untils


def _line(
    axes: Axes, protocol: str, protocols: Sequence[str], series: Sequence[tuple[Series, Series]], *, has_band: bool
) -> None:
    """Draw a line through the means of `series`, which have the same times, wherever at least half of them have a
    value."""
    times = series[0][0]
    values = np.array([one for _, one in series])
    known = np.isfinite(values).mean(axis=0) >= 0.5
    if not known.any():
        return
    style = line_style(protocol, protocols)
    mean = np.nanmean(values[:, known], axis=0)
    axes.plot(times[known], mean, color=style.color, ls=style.dashes, label=label(protocol))
    if has_band:
        low, high = np.nanpercentile(values[:, known], (25, 75), axis=0)
        axes.fill_between(times[known], low, high, color=style.color, alpha=0.15, lw=0)
