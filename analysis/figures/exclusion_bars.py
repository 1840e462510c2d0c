"""The share of attempts that each protocol lost, by network and gate."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, BROWN, ORANGE, PAGE_INCHES, SKY, YELLOW, figure_style, in_paper_order
from analysis.text import label

COLOURS = (ORANGE, BROWN, YELLOW, "0.6", SKY, "0.3", BLACK)
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "++++", "oooo")


def draw(rates: pd.DataFrame, gates: pd.DataFrame, protocols: Sequence[str]) -> Figure:
    """Stacked bars of the excluded share; `rates` is from `success_rates`, `gates` from `exclusions`."""
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.4), layout="constrained")
        # A panel without an excluded attempt would be empty.
        networks = in_paper_order(list(dict.fromkeys(gates["network"])))
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        gate_names = list(dict.fromkeys(gates["gate"]))
        attempts = rates.set_index(["network", "protocol"])["attempts"]
        for axes, network in zip(panels, networks, strict=True):
            present = [name for name in protocols if (network, name) in attempts.index]
            base = pd.Series(0.0, index=present)
            for place, gate in enumerate(gate_names):
                excluded = gates[(gates["network"] == network) & (gates["gate"] == gate)]
                count = excluded.set_index("protocol")["excluded"].reindex(present).fillna(0)
                share = 100 * count / [attempts[network, name] for name in present]
                colour, hatch = COLOURS[place % len(COLOURS)], HATCHES[place % len(HATCHES)]
                axes.bar(present, share, bottom=base, color=colour, hatch=hatch, label=gate, edgecolor="white")
                base = base + share
            axes.set_title(label(network))
            names = [label(name) for name in present]
            axes.set_xticks(range(len(present)), names, rotation=60, ha="right", rotation_mode="anchor")
            axes.grid(axis="x", visible=False)
        panels[0].set_ylabel("attempts that do\nnot count [%]")
        if gate_names:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(gate_names)))
        return figure
