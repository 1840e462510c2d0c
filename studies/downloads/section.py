"""The paper's Figure 2, and how level the two servers are."""

from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import pandas as pd

from analysis.report.plates import Plate
from analysis.report.section import Section
from analysis.report.views import View
from measure.table import read_document
from studies.downloads import figure2
from studies.downloads.measure import read_downloads
from tuning import protocols

NAME = "downloads"


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
        names = sorted(median_ms.index, key=lambda name: known[name].transport, reverse=True)  # QUIC against TCP
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


def section(folder: Path) -> Section | None:
    """What the downloads of the campaign in `folder` say; None when there are none. Raises EyelevelError."""
    downloads = pd.DataFrame([asdict(one) for one in read_downloads(folder)])
    document = read_document(folder)
    if document is None or not len(downloads):
        return None
    rtt_ms = next(iter(document.networks.values()))["min_rtt_ms"]
    caption = "How long single files take from both servers, as in Figure 2 of the paper."
    return Section(
        NAME,
        "Downloads of single files",
        ("How long a file takes from each server, over a connection of its own, behind a delay and nothing else.",),
        (Plate("figure2", NAME, caption, figure2.draw, (downloads,)),),
        views=(
            _medians_view(medians(downloads, rtt_ms)),
            View("downloads", "Every download", downloads, downloads.astype(str)),
        ),
    )


def _medians_view(table: pd.DataFrame) -> View:
    texts = pd.DataFrame(
        {
            "file": [figure2.size_name(value) for value in table["size_bytes"]],
            "protocol": table["protocol"],
            "against": table["reference"],
            "downloads of each": table["downloads"].astype(str),
            "median [ms]": [f"{value:.1f}" for value in table["ms"]],
            "the other's [ms]": [f"{value:.1f}" for value in table["reference_ms"]],
            "difference without handshakes": [f"{100 * value:+.1f} %" for value in table["level"]],
        }
    )
    return View("medians", "Medians, and how level the servers are", table, texts)
