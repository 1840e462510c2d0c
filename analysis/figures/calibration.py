"""Whether tests of equal samples find nothing: the distribution of their p values, which should be uniform."""

from functools import cache
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from analysis.figures.style import COLUMN_INCHES, METRIC_DASHES, SMALL, figure_style
from analysis.text import label


def band(values: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The empirical distribution of `values` as steps (x, share), and its simultaneous band (low, high).

    The band covers the whole true distribution with probability `confidence` (Kolmogorov's exact distribution).
    """
    x = np.sort(values)
    share = np.arange(1, len(x) + 1) / len(x)
    reach = _reach(confidence, len(x))
    return x, share, np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)


@cache
def _reach(confidence: float, size: int) -> float:
    return float(stats.kstwo.ppf(confidence, size))


def draw(p_values: pd.DataFrame, confidence: float) -> Figure:
    """Draw `p_values`, which is from `aa_p_values` and not empty: a line for each metric. It should follow the diagonal
    and stay in the band, which is that for the number of tests of one metric."""
    metrics = p_values.groupby("metric", sort=False)["anova_p"]
    tests = int(metrics.size().max())
    with figure_style():
        figure = Figure(figsize=(COLUMN_INCHES, 2.8), layout="constrained")
        axes = figure.subplots()
        ideal, _, low, high = band((np.arange(tests) + 0.5) / tests, confidence)
        axes.fill_between(ideal, low, high, color="0.85", linewidth=0)
        axes.plot([0, 1], [0, 1], color="0.4", linewidth=0.7)
        for (metric, values), dashes in zip(metrics, cycle(METRIC_DASHES), strict=False):
            x, share, *_ = band(values.to_numpy(), confidence)
            axes.step(x, share, where="post", linestyle=dashes, label=label(metric))
        axes.set(title=f"one protocol under two names, {tests} tests per metric", xlabel="p value (ANOVA)")
        axes.set(ylabel="share of tests below it", xlim=(0, 1), ylim=(0, 1))
        axes.legend(fontsize=SMALL)
        return figure
