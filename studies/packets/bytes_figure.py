"""The bytes of a load by purpose, as stacked bars, one bar for each network and protocol."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.text import label
from studies.packets import bytes as kinds

# Related kinds have shades of one colour; payload comes first and is grey.
COLORS = {
    kinds.PAYLOAD: "0.85",
    kinds.HTTP_HEADERS: "0.6",
    kinds.IP: "#01665e",
    kinds.TRANSPORT: "#35978f",
    kinds.SECURITY: "#80cdc1",
    kinds.FRAMING: "#c7eae5",
    kinds.HANDSHAKE: style.ORANGE,
    kinds.ACKNOWLEDGING: style.BROWN,
    kinds.PADDING: "#fee8c8",
    kinds.CONTROL: "#f0e442",
    kinds.AGAIN: "0.35",
    kinds.UNREAD: style.BLACK,
}
NAMES = {
    kinds.IP: "IP",
    kinds.TRANSPORT: "TCP/UDP",
    kinds.SECURITY: "TLS/QUIC headers",
    kinds.HTTP_HEADERS: "HTTP headers",
    kinds.AGAIN: "sent again",
}
INCHES_A_BAR = 0.26


def draw(captures: pd.DataFrame) -> Figure:
    """Draw the mean bytes of a load by kind. `captures` has a row for each setting, with columns site, network,
    protocol and the kinds; pings are left out."""
    has_sites = captures["site"].nunique() > 1
    labels = [
        f"{label(row.protocol)}, {label(row.network)}" + (f", {row.site}" if has_sites else "")
        for row in captures.itertuples()
    ]
    with style.figure_style():
        figure = Figure(figsize=(style.PAGE_INCHES, 1.0 + INCHES_A_BAR * len(labels)), layout="constrained")
        axes = figure.subplots()
        places = range(len(labels))
        ends = [0.0] * len(labels)
        for kind, color in COLORS.items():
            sizes = [float(value) / 1e3 for value in captures[kind]]
            if not any(sizes):
                continue
            axes.barh(places, sizes, left=ends, color=color, label=NAMES.get(kind, kind), height=0.75)
            ends = [end + size for end, size in zip(ends, sizes, strict=True)]
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("bytes at the browser's end, both directions [kB]")
        figure.legend(loc="outside upper center", ncols=6, fontsize=style.SMALL, handlelength=1.2, columnspacing=1.2)
    return figure
