"""The report's section on downloads: the paper's Figure 2 for any servers, and how level the servers are."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pandas as pd

from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.text import label, listing, percent, size_label
from base.structure import structured
from dataset.table import DOCUMENT, read_document
from studies.downloads import figure2
from studies.downloads.measure import STUDY, read_downloads
from tuning.protocols import Protocol


def section(folder: Path) -> Section | None:
    """The section on the downloads of the campaign in `folder`; None if there are none. Raises EyelevelError."""
    downloads = read_downloads(folder)
    document = read_document(folder)
    if document is None or downloads.empty:
        return None
    (network, settings), *_ = document.settings.networks.items()
    names = [label(name) for name in dict.fromkeys(downloads["protocol"])]
    paragraph = (
        f"How long the browser takes to download single files over {listing(names)} on {label(network)}, each over "
        "a connection of its own. The servers are level when the times differ by no more than the round trips of their "
        "handshakes."
    )
    caption = "Download times of single files, as in the paper's Figure 2."
    over = {
        name: structured(values, Protocol, f"{folder / DOCUMENT} is broken: the protocol {name}: ")
        for name, values in document.settings.protocols.items()
    }
    servers = {name: protocol.server for name, protocol in over.items()}
    figure = ReportFigure("figure2", caption, figure2.draw, (downloads, servers))
    table = medians(downloads, settings["min_rtt_ms"], over)
    tables = (levels_table(table, over), medians_table(table))
    all_downloads = ReportTable("downloads", "Every download", downloads, downloads.astype(str))
    return Section(STUDY, "Downloads of single files", (paragraph,), (figure,), tables=(*tables, all_downloads))


def medians(downloads: pd.DataFrame, rtt_ms: float, settings: Mapping[str, Protocol]) -> pd.DataFrame:
    """A row for each size and each pair of protocols, TCP first: the medians in ms, and their difference.

    `level` is the difference of the medians as a share of the reference's, after subtracting the round trips of each
    protocol's handshake, which do not depend on the server. `downloads` has the columns that `figure2.draw` takes.
    """
    rows = []
    for size_bytes, of_size in downloads.groupby("size_bytes"):
        median_ms = of_size.groupby("protocol")["ms"].median()
        served_ms = {
            name: value - settings[name].round_trips_before_request * rtt_ms for name, value in median_ms.items()
        }
        names = sorted(
            (name for name in settings if name in median_ms.index), key=lambda name: settings[name].http_version
        )
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
    columns = ["size_bytes", "reference", "protocol", "downloads", "reference_ms", "ms", "level"]
    return pd.DataFrame(rows, columns=columns)


def levels_table(table: pd.DataFrame, settings: Mapping[str, Protocol]) -> ReportTable:
    """A row for each protocol: how level it is with the first protocol over TCP, or with the first protocol if none is
    over TCP. `table` is that of `medians`."""
    first = next((name for name, protocol in settings.items() if protocol.transport == "tcp"), next(iter(settings)))
    rows = []
    for name in settings:
        sizes = table[[{first, name} == set(pair) for pair in zip(table["reference"], table["protocol"], strict=True)]]
        # In a row of `medians`, `first` may be the compared protocol. The level is then inverted.
        levels = {
            row["size_bytes"]: row["level"] if row["protocol"] == name else -row["level"] / (1 + row["level"])
            for row in sizes.to_dict("records")
        }
        if levels:
            rows.append({"server": settings[name].server, "protocol": name, "reference": first, **levels})
    data = pd.DataFrame(rows).rename(columns=lambda name: f"level_{name}" if isinstance(name, int) else name)
    sizes = {name: (size_label(int(name[6:])), percent) for name in data if name.startswith("level_")}
    columns = {"server": "server", "protocol": ("protocol", label), "reference": ("against", label), **sizes}
    texts = text_table(data, columns) if len(data) else data
    note = (
        "Difference of the medians without the round trips of the handshakes, as a share of the other's, by file size."
    )
    return ReportTable("levels", "How level the servers are", data, texts, note)


def medians_table(table: pd.DataFrame) -> ReportTable:
    """The table of `medians` for the report."""
    columns = {
        "size_bytes": ("file", size_label),
        "protocol": ("protocol", label),
        "reference": ("against", label),
        "downloads": "downloads of each",
        "ms": ("median [ms]", "{:.1f}".format),
        "reference_ms": ("the other's [ms]", "{:.1f}".format),
        "level": ("difference without handshakes", percent),
    }
    texts = text_table(table, columns) if len(table) else pd.DataFrame()
    return ReportTable("medians", "Medians of each two protocols", table, texts)
