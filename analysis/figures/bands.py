"""The distribution of the gain over sites, with the band in which the whole true distribution lies."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from analysis.figures.style import PAGE_INCHES, figure_style, line_style
from analysis.hypotheses import Pair
from analysis.runs import rows_of
from analysis.text import label, pair_label


def band(values: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The empirical distribution of `values` as steps (x, share), and its simultaneous band (low, high).

    The band covers the whole true distribution with probability `confidence` (Kolmogorov's exact distribution).
    """
    x = np.sort(values)
    share = np.arange(1, len(x) + 1) / len(x)
    reach = stats.kstwo.ppf(confidence, len(x))
    return x, share, np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)


def draw(
    gain_table: pd.DataFrame,
    networks: Sequence[str],
    protocols: Sequence[str],
    pairs: Sequence[Pair],
    metrics: Sequence[str],
    confidence: float,
) -> Figure:
    """A grid of networks and metrics, a line and a band for each pair; `gain_table` is from `analysis.gain.gains`."""
    with figure_style():
        size = (min(PAGE_INCHES, 0.5 + 3.2 * len(metrics)), 0.6 + 1.6 * len(networks))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(networks), len(metrics), squeeze=False, sharex="row", sharey=True)
        names = {}
        for row, network in zip(grid, networks, strict=True):
            for axes, metric in zip(row, metrics, strict=True):
                axes.axvline(0, color="0.4", linewidth=0.7)
                for pair in pairs:
                    gains = rows_of(gain_table, network=network, metric=metric, **pair._asdict())["gain"].dropna()
                    if gains.empty:
                        continue
                    style = line_style(pair.compared, protocols)
                    x, share, low, high = band(gains.to_numpy(), confidence)
                    (line,) = axes.step(
                        np.append(x[0], x), np.append(0, share), where="post", color=style.color, linestyle=style.dashes
                    )
                    axes.fill_between(x, low, high, step="post", color=style.color, alpha=0.15, linewidth=0)
                    names[pair_label(pair.compared, pair.reference)] = line
                axes.set_title(f"{label(network)}, {label(metric)}")
            row[0].set_ylabel("share of sites")
        for axes in grid[-1]:
            axes.set_xlabel("gain")
        if names:
            figure.legend(list(names.values()), list(names), loc="outside upper center", ncols=2)
        return figure
