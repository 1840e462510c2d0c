"""How many attempts each protocol lost, by network and reason."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, BLUE, GREEN, ORANGE, PAGE_INCHES, PURPLE, SKY, VERMILION, named, styled

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "++++", "oooo")


def draw(rates: pd.DataFrame, gates: pd.DataFrame, networks: Sequence[str], protocols: Sequence[str]) -> Figure:
    """`rates` is what `exclusion_rates` returns, `gates` what `exclusions` does: stacked bars of the excluded share."""
    with styled():
        figure = Figure(figsize=(PAGE_INCHES, 2.4), layout="constrained")
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        names = list(dict.fromkeys(gates["gate"]))
        attempts = rates.set_index(["network", "protocol"])["attempts"]
        for axes, network in zip(panels, networks, strict=True):
            there = [name for name in protocols if (network, name) in attempts.index]
            base = pd.Series(0.0, index=there)
            for place, gate in enumerate(names):
                own = gates[(gates["network"] == network) & (gates["gate"] == gate)]
                count = own.set_index("protocol")["excluded"].reindex(there).fillna(0)
                share = 100 * count / [attempts[network, name] for name in there]
                colour, hatch = COLOURS[place % len(COLOURS)], HATCHES[place % len(HATCHES)]
                axes.bar(there, share, bottom=base, color=colour, hatch=hatch, label=gate, edgecolor="white")
                base = base + share
            axes.set_title(named(network))
            axes.set_xticks(range(len(there)), [named(name) for name in there], rotation=35, ha="right")
            axes.grid(axis="x", visible=False)
        panels[0].set_ylabel("excluded attempts [%]")
        if names:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(names)))
        return figure
