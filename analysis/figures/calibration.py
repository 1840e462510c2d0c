"""Whether tests of nothing find nothing: their p values against the ones they should have."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.bands import band
from analysis.figures.style import COLUMN_INCHES, PAGE_INCHES, named, styled


def draw(p_values: pd.DataFrame, confidence: float) -> Figure:
    """`p_values` is what `aa_p_values` returns: a panel for each kind, a line for each metric; a true line follows the
    diagonal and stays in the band (of one metric's tests)."""
    kinds = list(dict.fromkeys(p_values["kind"]))
    with styled():
        width = COLUMN_INCHES if len(kinds) < 2 else PAGE_INCHES
        figure = Figure(figsize=(width, 2.8), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, max(1, len(kinds)), sharey=True))
        for axes, kind in zip(panels, kinds, strict=False):
            own = p_values[p_values["kind"] == kind]
            tests = int(own.groupby("metric").size().max())
            ideal, _, low, high = band((np.arange(tests) + 0.5) / tests, confidence)
            axes.fill_between(ideal, low, high, color="0.85", linewidth=0)
            axes.plot([0, 1], [0, 1], color="0.4", linewidth=0.7)
            dashes = ("-", "--", ":", "-.", (0, (1, 3)))
            for place, (metric, group) in enumerate(own.groupby("metric", sort=False)):
                x = np.sort(group["anova_p"])
                axes.step(
                    x, (np.arange(len(x)) + 1) / len(x), where="post", linestyle=dashes[place % 5], label=named(metric)
                )
            titles = {"split": "each setting against itself", "A/A": "one protocol under two names"}
            axes.set(title=f"{titles.get(kind, kind)}, {tests} tests a metric", xlabel="p value (ANOVA)")
            axes.set(xlim=(0, 1), ylim=(0, 1))
        panels[0].set_ylabel("share of tests below it")
        panels[0].legend(fontsize=6.5)
        return figure
