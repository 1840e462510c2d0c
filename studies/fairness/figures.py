"""The figures of fairness: rates over time, and the share of the flows under test by the queue."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style, line_style
from analysis.text import label
from studies.fairness.shares import BIN_S, RunRates


def draw_rates(runs: Sequence[RunRates], against: str, link_mbps: float | None) -> Figure:
    """Draw the rate of each flow over time, on one network and for one mix: a panel for each protocol under test, with
    a line for each flow. A line is the mean over runs; its band extends from the lowest to the highest run."""
    protocols = list(dict.fromkeys(run.protocol for run in runs))
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.5), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(protocols), sharey=True))
        for axes, protocol in zip(panels, protocols, strict=True):
            of_protocol = [run for run in runs if run.protocol == protocol]
            bins = min(run.mbps.shape[1] for run in of_protocol)
            mbps = np.array([run.mbps[:, :bins] for run in of_protocol])
            times_s = BIN_S * (np.arange(bins) + 0.5)
            count = of_protocol[0].mix[0]
            for number in range(mbps.shape[1]):
                under_test = number < count
                flow = protocol if under_test else against
                color, dashes = line_style(flow, [*protocols, against]).color, "-" if under_test else (0, (5, 1.5))
                name = label(flow)
                axes.fill_between(
                    times_s, mbps[:, number].min(axis=0), mbps[:, number].max(axis=0), color=color, alpha=0.15, lw=0
                )
                first = number in (0, count)
                axes.plot(times_s, mbps[:, number].mean(axis=0), color=color, ls=dashes, label=name if first else None)
            if link_mbps:
                axes.axhline(link_mbps / mbps.shape[1], color="0.4", lw=0.7, ls=":", label="equal parts")
                axes.set_ylim(0, 1.05 * link_mbps)
            axes.set(xlabel="time [s]", title=f"{label(protocol)} against {label(against)}")
            axes.legend(loc="upper right", fontsize=SMALL, ncols=3)
        panels[0].set_ylabel("rate of each flow [Mbit/s]")
        runs_text = f"{len(runs) // len(protocols)} run{'s' if len(runs) > len(protocols) else ''} each"
        panels[-1].annotate(runs_text, (1, 0.02), xycoords="axes fraction", ha="right", fontsize=SMALL)
        return figure


def draw_shares(summary: pd.DataFrame, places: Mapping[str, tuple[float, str, float]]) -> Figure:
    """Draw the share of the flows under test with intervals, from the table of `shares.summary` for one mix: a panel
    for each rate, with queues from short to long, managed queues last. `places`: network → its rate, the name of its
    queue, and the queue's length."""
    rates = sorted({places[network][0] for network in summary["network"]})
    protocols = list(dict.fromkeys(summary["protocol"]))
    count, others = map(int, summary["mix"].iloc[0].split("x"))
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.6), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(rates), sharey=True))
        for axes, rate in zip(panels, rates, strict=True):
            here = [name for name in dict.fromkeys(summary["network"]) if places[name][0] == rate]
            queues = list(dict.fromkeys(sorted((places[name][2], places[name][1]) for name in here)))
            names = [name for _, name in queues]
            for number, protocol in enumerate(protocols):
                rows = summary[(summary["protocol"] == protocol) & summary["network"].isin(here)]
                at = np.array([names.index(places[name][1]) for name in rows["network"]], dtype=float)
                order = np.argsort(at)
                means = 100 * rows["share"].to_numpy()[order]
                lows, highs = (100 * rows[name].to_numpy()[order] for name in ("share_low", "share_high"))
                errors = np.nan_to_num(np.array([means - lows, highs - means]))
                style = line_style(protocol, protocols)
                axes.errorbar(
                    at[order] + 0.12 * (number - (len(protocols) - 1) / 2),
                    means,
                    errors,
                    color=style.color,
                    marker=style.marker,
                    markersize=4,
                    ls="none",
                    capsize=2,
                    label=label(protocol),
                )
            axes.axhline(100 * count / (count + others), color="0.4", lw=0.7, ls=":")
            axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=SMALL)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.set(title=f"{rate:g} Mbit/s", ylim=(0, 100))
        panels[0].set_ylabel("share of what came [%]")
        panels[0].legend(loc="lower left", fontsize=SMALL)
        return figure
