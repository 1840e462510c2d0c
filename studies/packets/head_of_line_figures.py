"""Figures of the causes of waiting: the mean of each setting, and single loads over time."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.statistics.samples import Array
from analysis.text import label
from studies.packets.head_of_line import CAUSES, OTHERS, RECORD, STREAM, Delivery

COLORS = {STREAM: style.SKY, RECORD: "0.8", OTHERS: style.ORANGE}
NAMES = {
    STREAM: "waits for bytes of its own stream",
    RECORD: "waits for the rest of its TLS record",
    OTHERS: "complete, waits for bytes of other streams",
}
INCHES_A_BAR, INCHES_A_LOAD = 0.3, 1.15


def draw_means(waits: pd.DataFrame) -> Figure:
    """Draw the mean wait of a byte by cause, as stacked bars, one bar for each setting.

    `waits` has a row for each setting with columns site, network, protocol, and `<cause>_mean_ms` and
    `<cause>_mean_ms_sd` for each cause, for `front` and for `sequence_front`; sd are over runs.
    """
    has_sites = waits["site"].nunique() > 1
    labels = [
        f"{label(row.protocol)}, {label(row.network)}" + (f", {row.site}" if has_sites else "")
        for row in waits.itertuples()
    ]
    with style.figure_style():
        figure = Figure(figsize=(style.PAGE_INCHES, 1.1 + INCHES_A_BAR * len(labels)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(labels))
        ends = np.zeros(len(labels))
        for cause in CAUSES:
            means = waits[f"{cause}_mean_ms"].to_numpy(dtype=float)
            axes.barh(places, means, left=ends, color=COLORS[cause], label=NAMES[cause], height=0.7)
            ends = ends + means
        # Bars end at the end of the waits for others, so the spread of these waits is drawn there.
        axes.errorbar(ends, places, xerr=waits["others_mean_ms_sd"], fmt="none", ecolor=style.BLACK, elinewidth=0.8)
        streams = waits["stream_mean_ms"]
        for column, marker, name in (
            ("front_mean_ms", "|", "own stream and any gap of others (most that head-of-line blocking may be)"),
            ("sequence_front_mean_ms", "D", "the same of QUIC's packets, had they been one sequence"),
        ):
            present = waits[column].notna() & (waits[column] > 0)
            axes.plot(
                (streams + waits[column])[present],
                places[present],
                marker,
                color=style.BLACK,
                markersize=10 if marker == "|" else 4,
                label=name,
                linestyle="none",
            )
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("mean wait of a byte from its arrival to its delivery [ms]")
        figure.legend(loc="outside upper left", ncols=2, fontsize=style.SMALL, handlelength=1.2, columnspacing=1.2)
    return figure


def draw_loads(loads: Mapping[str, tuple[Sequence[Delivery], float, float]]) -> Figure:
    """Draw one load of each protocol over time: the data that had arrived, the data that was delivered, and the data
    that waited, by cause.

    `loads`: protocol → deliveries, the start of navigation (s since 1970), and the page load time in ms.
    """
    with style.figure_style():
        figure = Figure(figsize=(style.PAGE_INCHES, 0.9 + INCHES_A_LOAD * len(loads)), layout="constrained")
        rows = figure.subplots(len(loads), 2, squeeze=False, sharex=True, sharey="col")
        for (protocol, (deliveries, begin_s, plt_ms)), (sums, spans) in zip(loads.items(), rows, strict=True):
            complete = [delivery for delivery in deliveries if np.isfinite(delivery.delivery_s)]
            _draw_sums(sums, complete, begin_s)
            _draw_waits(spans, complete, begin_s)
            sums.set_ylabel(label(protocol))
            for axes in (sums, spans):
                axes.axvline(plt_ms / 1e3, color=style.BLACK, linewidth=0.8, linestyle=":", label="load event")
        # Set after everything is drawn, since the axes of a column share one scale.
        for axes in rows[0]:
            axes.set_ylim(bottom=0)
        rows[0, 0].set_title("content that had arrived, and that was delivered [kB]")
        rows[0, 1].set_title("content that had arrived and waited [kB]")
        for axes in rows[-1]:
            axes.set_xlabel("time from the start of navigation [s]")
            axes.set_xlim(left=0)
        handles, names = (
            [*one, *other]
            for one, other in zip(
                rows[0, 0].get_legend_handles_labels(), rows[0, 1].get_legend_handles_labels(), strict=True
            )
        )
        entries = dict(zip(names, handles, strict=True))
        figure.legend(
            entries.values(), entries.keys(), loc="outside upper left", ncols=3, fontsize=style.SMALL, handlelength=1.4
        )
    return figure


def waiting_bytes(deliveries: Sequence[Delivery], cause: str) -> tuple[Array, Array]:
    """When the number of bytes that wait for `cause` changes (s since 1970, in order), and the number from then on."""
    changes: dict[float, int] = {}
    for delivery in deliveries:
        start_s, end_s = delivery.wait(cause)
        if end_s > start_s:
            changes[start_s] = changes.get(start_s, 0) + delivery.bytes
            changes[end_s] = changes.get(end_s, 0) - delivery.bytes
    times_s = sorted(changes)
    return np.array(times_s, dtype=float), np.cumsum([changes[at_s] for at_s in times_s], dtype=float)


def _draw_sums(axes: Axes, deliveries: Sequence[Delivery], begin_s: float) -> None:
    for name, times_s, line in (
        ("arrived", [delivery.arrival_s for delivery in deliveries], {"color": "0.55", "linewidth": 0.9}),
        ("delivered", [delivery.delivery_s for delivery in deliveries], {"color": style.BLACK}),
    ):
        order = np.argsort(times_s, kind="stable")
        sizes = np.array([delivery.bytes for delivery in deliveries], dtype=float)
        axes.step(np.array(times_s)[order] - begin_s, np.cumsum(sizes[order]) / 1e3, where="post", label=name, **line)


def _draw_waits(axes: Axes, deliveries: Sequence[Delivery], begin_s: float) -> None:
    steps = {cause: waiting_bytes(deliveries, cause) for cause in CAUSES}
    times_s = np.unique(np.concatenate([times for times, _ in steps.values()]))
    if not len(times_s):
        return
    # The stacked areas, from the bottom to the top. Between changes, the number of bytes that wait for a cause is
    # constant.
    stacks = [
        np.concatenate([[0.0], sizes])[np.searchsorted(changes, times_s, side="right")] / 1e3
        for changes, sizes in steps.values()
    ]
    axes.stackplot(
        times_s - begin_s,
        *stacks,
        step="post",
        colors=[COLORS[cause] for cause in CAUSES],
        labels=[NAMES[cause] for cause in CAUSES],
    )
