"""The report's section on packets."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import SITE_SETTING, Drawing, ReportFigure, ReportTable, Section, text_table
from analysis.text import NOTHING, file_name, label, level, mean_count, ms, plural, share, whole_number
from dataset.table import CampaignDocument, read_rows, require_document
from studies.packets import bytes_figure, durations_figure, head_of_line_report, sequence_drawing, university
from studies.packets.bytes import KINDS, OTHER, PAYLOAD
from studies.packets.connections import TIMES
from studies.packets.files import STUDY
from studies.packets.head_of_line import CAUSES, FRONT
from studies.packets.runs import CapturedRun, read_runs
from studies.packets.sequence import Step, average
from studies.packets.summary import RUNS, SETTING, means, summary

# The columns of waits (`head_of_line`) in the file of connections.
WAITS = ["content_bytes", "gaps", *(f"{cause}_{name}" for cause in (*CAUSES, FRONT) for name in ("bytes", "ms"))]
CONNECTION = [*SETTING, "host", "number", "server"]
LINK_HEADERS = (
    "Bytes are counted as captured, from the IP header on: the emulated network carries IP packets without a link "
    "layer. Ethernet would add 14 bytes to each, 18 with its check sequence."
)


def section(folder: Path) -> Section | None:
    """The section on the captures in a campaign's folder; None if there are none. Raises EyelevelError."""
    runs = read_runs(folder)
    if not runs:
        return None
    connections = university.with_added_delay(pd.DataFrame([row for run in runs for row in run.connections]))
    captures = pd.DataFrame([row for run in runs for row in run.captures])
    headers = pd.DataFrame([row for run in runs for row in run.headers])
    document = require_document(folder)
    confidence = of_campaign(folder, document).confidence
    return Section(
        STUDY,
        "Packets and handshakes",
        (*_paragraphs(folder, runs, connections), *head_of_line_report.paragraphs(runs)),
        (_bytes_figure(captures), *_durations(connections, confidence), *head_of_line_report.figures(runs)),
        tuple(_drawings(runs)),
        (
            _times(connections),
            _handshakes(connections),
            _beside_university(connections, headers, document),
            _bytes(captures),
            head_of_line_report.table(runs),
            head_of_line_report.loads_table(runs),
            _connections(connections),
        ),
    )


def _paragraphs(folder: Path, runs: Sequence[CapturedRun], connections: pd.DataFrame) -> list[str]:
    settings = {tuple(run.setting[key] for key in SETTING) for run in runs}
    gates = Counter(row.gate for row in read_rows(folder) if not row.valid)
    rejections = ", ".join(f"{gate} {number}" for gate, number in gates.most_common())
    paragraphs = [
        f"{plural('load', len(runs))} in {plural('setting', len(settings))}, captured at both ends and decrypted; "
        + (f"{plural('attempt', gates.total())} did not count ({rejections})." if gates else "all counted."),
        LINK_HEADERS,
    ]
    first = connections[connections["first"]]
    for site, of_site in first.groupby("site", sort=False):
        request_rtts = (of_site["request_ms"] / of_site["ping_ms"]).groupby(of_site["protocol"], sort=False)
        parts = [f"{values.median():.2f} round trips over {label(name)}" for name, values in request_rtts]
        paragraphs.append(
            f"{site}: in the median, the first request left {', '.join(parts)} after its connection's first packet."
        )
    return paragraphs


TIME_COLUMNS = {
    key: form for column, time in TIMES.items() for key, form in means(column, f"{time['name']} [ms]").items()
}


def _times(connections: pd.DataFrame) -> ReportTable:
    first = connections[connections["first"]].copy()
    first["handshake_rtt"] = first["handshake_ms"] / first["ping_ms"]
    data = summary(first, SETTING, ["ping_ms", *TIMES, "handshake_rtt"])
    columns = SITE_SETTING | RUNS | means("ping_ms", "ping [ms]", 2) | means("handshake_rtt", "handshake [RTT]", 2)
    texts = text_table(data, columns | TIME_COLUMNS)
    definitions = "; ".join(f"{time['name']}: {time['definition']}" for time in TIMES.values())
    note = f"Mean ± standard deviation over runs, at the browser's end. {definitions}."
    return ReportTable("packets_times", "The connection of the first request", data, texts, note)


def _handshakes(connections: pd.DataFrame) -> ReportTable:
    first = connections[connections["first"]]
    ways = [f"{way}_{what}" for way in ("up", "down") for what in ("packets", "bytes")]
    data = summary(first, SETTING, [f"handshake_{name}" for name in ("packets", "bytes", *ways, *KINDS)])
    headings = {"packets": "packets", "bytes": "bytes", "up_packets": "up", "up_bytes": "bytes up"}
    headings |= {"down_packets": "down", "down_bytes": "bytes down"}
    forms = {f"handshake_{name}": (heading, mean_count) for name, heading in headings.items()}
    forms |= {f"handshake_{kind}": (kind, mean_count) for kind in KINDS if data[f"handshake_{kind}"].any()}
    texts = text_table(data, SITE_SETTING | RUNS | forms)
    note = (
        "Means over runs, of all packets of the connection of the first request that had passed the browser's end when "
        "its own last handshake message (Finished) left. The columns after the directions are bytes by kind, and add "
        "up to all bytes."
    )
    return ReportTable("packets_handshakes", "Packets and bytes of its handshake", data, texts, note)


def _bytes(captures: pd.DataFrame) -> ReportTable:
    data = summary(captures, ["end", *SETTING, "direction"], ["packets", "bytes", *KINDS])
    data["overhead"] = 1 - data[PAYLOAD] / (data["bytes"] - data[OTHER])
    page = data[data["end"] == "client"]
    forms: dict[Any, Any] = {**SITE_SETTING, "direction": "direction", **RUNS}
    forms |= {name: (name, mean_count) for name in ("packets", "bytes", PAYLOAD)}
    forms |= {"overhead": ("overhead", share)}
    forms |= {kind: (kind, mean_count) for kind in KINDS if kind != PAYLOAD and page[kind].any()}
    kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items() if page[kind].any())
    note = (
        f"Means over runs of the whole capture at the browser's end (the file has the servers', too). {kinds}. They "
        "add up to the bytes of all packets in the file. Overhead is all but payload, without the pings. With early "
        "data, the earlier visit is included."
    )
    return ReportTable("packets_bytes", "Bytes by purpose", data, text_table(page, forms), note)


def _connections(connections: pd.DataFrame) -> ReportTable:
    columns = ["packets", "bytes", "up_packets", "up_bytes", "down_packets", "down_bytes"]
    data = summary(connections, CONNECTION, [*TIMES, *columns, *KINDS, *WAITS])
    forms = {name: (name, mean_count) for name in ("packets", "bytes", PAYLOAD)}
    connection = {"host": "host", "number": ("connection", whole_number)}
    texts = text_table(data, SITE_SETTING | connection | RUNS | TIME_COLUMNS | forms)
    note = "Connections to one server are numbered in the order of their beginning; runs: those with such a connection."
    return ReportTable("packets_connections", "Every connection", data, texts, note)


def _bytes_figure(captures: pd.DataFrame) -> ReportFigure:
    whole = captures[(captures["end"] == "client") & (captures["direction"] == "all")]
    means = whole.groupby(SETTING, sort=False)[list(KINDS)].mean().reset_index()
    caption = "The bytes of a load by purpose: means over runs, as captured at the browser's end."
    return ReportFigure("packets_bytes", caption, bytes_figure.draw, (means,))


def _durations(connections: pd.DataFrame, confidence: float) -> list[ReportFigure]:
    """Figures of the times of the first request's connection over the added delay, for each site and network with added
    delays."""
    first = connections[connections["first"]]
    names = {column: time["name"] for column, time in TIMES.items()}
    figures = []
    for (site, base), some in first.groupby(["site", "base"], sort=False):
        if some["added_ms"].nunique() > 1:
            caption = (
                f"{site} on {label(base)}: the times of the first request's connection over the delay that was "
                f"added to the round trip: means over runs, with their {level(confidence)} intervals."
            )
            values = (some, names, list(some["protocol"].unique()), confidence)
            name = file_name(f"packets_durations_{site}_{base}")
            figures.append(ReportFigure(name, caption, durations_figure.draw, values))
    return figures


def _beside_university(connections: pd.DataFrame, headers: pd.DataFrame, document: CampaignDocument) -> ReportTable:
    transports = {name: settings["transport"] for name, settings in document.settings.protocols.items()}
    data = university.beside(connections, headers, transports)
    forms: dict[Any, Any] = {**SITE_SETTING, "added_ms": ("added delay [ms]", whole_number), "quantity": "of"}
    forms |= {"unit": "unit", ("theirs", "theirs_sd"): ("theirs", _with_deviation)}
    forms |= {("ours", "ours_sd"): ("ours", _with_deviation), "least": ("least", ms), "most": ("most", ms)}
    forms |= {"runs": ("runs", whole_number)}
    note = (
        "Mean ± standard deviation over runs, at the browser's end, of the connection of the first request; headers: "
        "of all packets, a header each. Theirs is a connection of sockets that carried one message of 39 bytes, ours "
        "a page's, with HTTP: handshakes and headers can be compared, whole connections as far as the page is as "
        "small. Established: after the handshake. Overhead: all but the message, or content. Ours count from the IP "
        "header on; from which layer on theirs do, is not known. A handshake is as long as its certificates and, over "
        "QUIC, its padding. Long and short headers are QUIC's, without the tag of 16 bytes at a packet's end; theirs "
        "count single bits as bytes, and connection IDs of 20 bytes. Their times are those of the programs' events, "
        "ours those of packets; first byte: after the handshake."
    )
    return ReportTable("packets_university", "Beside the university study", data, text_table(data, forms), note)


def _with_deviation(mean: float, deviation: float) -> str:
    if not math.isfinite(mean):
        return NOTHING
    return f"{mean:.1f} ± {deviation:.1f}" if math.isfinite(deviation) else f"{mean:.1f}"


def _drawings(runs: Sequence[CapturedRun]) -> list[Drawing]:
    """A sequence diagram for each site and network."""
    groups: dict[tuple[str, str, float], dict[str, list[Sequence[Step]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.steps:
            site, network, protocol, rtt_ms = (run.setting[key] for key in (*SETTING, "rtt_ms"))
            groups[site, network, rtt_ms][protocol].append(run.steps)
    drawings = []
    for (site, network, rtt_ms), steps in groups.items():
        caption = (
            f"{site} on {label(network)}: what the client sent until the first request, and the server until the "
            "response began. Times in ms, means of the runs that had the same packets in the same order each way."
        )
        title = f"{site} on {network}: packets until the first response"
        exchanges = {protocol: average(runs_of_protocol) for protocol, runs_of_protocol in steps.items()}
        svg = sequence_drawing.draw(title, exchanges, rtt_ms)
        drawings.append(Drawing(f"packets_{site}_{network}".replace("+", "_plus_"), caption, svg))
    return drawings
