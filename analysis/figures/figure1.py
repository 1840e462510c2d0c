"""The paper's Figure 1: each site's download size and number of servers."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

# The first two of Okabe and Ito's colours, which differ for colour-blind readers and in grey.
SIZE_COLOUR, SERVERS_COLOUR = "#0072b2", "#e69f00"


def draw(table: pd.DataFrame) -> Figure:
    """`table` is from `analysis.sites.site_table`; sites stand side by side in its order."""
    with mpl.rc_context({"font.size": 8, "pdf.fonttype": 42, "svg.fonttype": "none", "axes.axisbelow": True}):
        figure = Figure(figsize=(max(3.4, 0.8 + 0.24 * len(table)), 3.2), layout="constrained")
        size, servers = figure.subplots(2, 1, sharex=True)
        places = range(len(table))
        size.bar(places, table["bytes"] / 1e6, color=SIZE_COLOUR, width=0.7)
        size.set_ylabel("download size [MB]")
        servers.bar(places, table["servers"], color=SERVERS_COLOUR, width=0.7)
        servers.set_ylabel("server IPs")
        servers.set_xticks(places, table["site"], rotation=60, ha="right", rotation_mode="anchor")
        for axes in (size, servers):
            axes.grid(axis="y", linewidth=0.4, color="0.8")
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0.01)
        return figure
