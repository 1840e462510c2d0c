"""The paper's Figure 2, and how level the two servers are."""

from itertools import combinations

import pandas as pd
from rich import box
from rich.table import Table

from studies.downloads import figure2
from tuning import protocols

TABLE, MADE = "downloads.csv", "downloads.json"
FIGURE = "figure2"


def medians(downloads: pd.DataFrame, rtt_ms: float) -> pd.DataFrame:
    """A row for each size and each pair of protocols, TCP first: medians in ms, and how far apart.

    `level` is the difference of the medians as a share of the reference's, once each has given back the round trips
    that its handshake takes; these are of the protocol, not of the server. `downloads` is as `figure2.draw` takes it.
    """
    known = protocols.load()
    rows = []
    for size_bytes, of_size in downloads.groupby("size_bytes"):
        median_ms = of_size.groupby("protocol")["ms"].median()
        served_ms = {name: value - known[name].round_trips_before_request * rtt_ms for name, value in median_ms.items()}
        names = sorted(
            median_ms.index, key=lambda name: known[name].http_version, reverse=True
        )  # HTTP/3 against HTTP/2
        for reference, name in combinations(names, 2):
            rows.append(
                {
                    "size_bytes": size_bytes,
                    "reference": reference,
                    "protocol": name,
                    "downloads": int((of_size["protocol"] == name).sum()),
                    "reference_ms": median_ms[reference],
                    "ms": median_ms[name],
                    "level": (served_ms[name] - served_ms[reference]) / served_ms[reference],
                }
            )
    return pd.DataFrame(rows)


def told(found: pd.DataFrame) -> Table:
    """`found` (of `medians`) for a person."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    names = ("file", "protocol", "against")
    for heading in (*names, "downloads of each", "median", "the other's", "apart but for handshakes"):
        table.add_column(heading, justify="left" if heading in names else "right")
    for row in found.itertuples():
        size, level = figure2.size_name(row.size_bytes), f"{100 * row.level:+.1f} %"
        table.add_row(
            size,
            row.protocol,
            row.reference,
            f"{row.downloads}",
            f"{row.ms:.1f} ms",
            f"{row.reference_ms:.1f} ms",
            level,
        )
    return table
