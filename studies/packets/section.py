"""The study of packets as a section of a report."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.style import named
from analysis.report.plates import Plate
from analysis.report.section import Drawing, Section
from analysis.report.views import NOTHING, View, count, counted, share, shown
from measure.table import read_rows
from studies.packets import bytes_figure as packets_bytes
from studies.packets import sequence_drawing as packets_sequence
from studies.packets.bytes import KINDS, OTHER, PAYLOAD
from studies.packets.connections import TIMES
from studies.packets.runs import Read, read_runs
from studies.packets.sequence import averaged

NAME = "packets"
SETTING = ["site", "network", "protocol"]
CONNECTION = [*SETTING, "host", "number", "server"]
LINK_HEADERS = (
    "Bytes are counted as captured, from the IP header on: the emulated network carries IP packets without a link "
    "layer. Ethernet would add 14 bytes to each, 18 with its check sequence."
)


def section(folder: Path) -> Section | None:
    """What the captures in the folder of a campaign tell; None when it has none. Raises EyelevelError."""
    runs = read_runs(folder)
    if not runs:
        return None
    connections = pd.DataFrame([row for run in runs for row in run.connections])
    captures = pd.DataFrame([row for run in runs for row in run.captures])
    return Section(
        NAME,
        "Packets and handshakes",
        tuple(_words(folder, runs, connections)),
        (_bytes_plate(captures),),
        tuple(_drawings(runs)),
        (_times(connections), _handshakes(connections), _bytes(captures), _connections(connections)),
    )


def _words(folder: Path, runs: Sequence[Read], connections: pd.DataFrame) -> list[str]:
    settings = {tuple(run.setting[key] for key in SETTING) for run in runs}
    rejected = [row.reason.gate for row in read_rows(folder) if not row.valid and row.reason]
    told = [
        f"{counted('load', len(runs))} in {counted('setting', len(settings))}, captured at both ends and decrypted; "
        + (f"{counted('attempt', len(rejected))} did not count ({_gates(rejected)})." if rejected else "all counted."),
        LINK_HEADERS,
    ]
    first = connections[connections["first"]]
    for site, of_site in first.groupby("site", sort=False):
        asked = (of_site["request_ms"] / of_site["ping_ms"]).groupby(of_site["protocol"], sort=False)
        parts = [f"{values.median():.2f} round trips over {named(name)}" for name, values in asked]
        told.append(
            f"{site}: by median, the first request left {', '.join(parts)} after its connection's first packet."
        )
    return told


def _gates(gates: Sequence[str]) -> str:
    """How often each of `gates` rejected an attempt."""
    times = Counter(gates)
    return ", ".join(f"{gate} {number}" for gate, number in times.most_common())


def _summary(table: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """A row for each combination of `keys`, in the order they come in: runs, and mean and sd of each column."""
    groups = table.groupby(keys, sort=False)
    found = groups.size().rename("runs").to_frame()
    for column in columns:
        found[column] = groups[column].mean()
        found[f"{column}_sd"] = groups[column].std()
        found[f"{column}_runs"] = groups[column].count()
    return found.reset_index()


def _deviating(data: pd.DataFrame, column: str, digits: int = 1) -> list[str]:
    """Texts of a column of `_summary`: mean ± sd, and of how many runs if not of all."""
    texts = []
    for mean, deviation, known, runs in zip(
        data[column], data[f"{column}_sd"], data[f"{column}_runs"], data["runs"], strict=True
    ):
        if not known:
            texts.append(NOTHING)
            continue
        spread = f" ± {deviation:.{digits}f}" if math.isfinite(deviation) else ""
        texts.append(f"{mean:.{digits}f}{spread}" + (f" ({known} of {runs})" if known < runs else ""))
    return texts


HEADINGS = {
    "handshake_ms": "handshake [ms]",
    "request_ms": "first request [ms]",
    "first_byte_ms": "first byte [ms]",
    "content_ms": "content [ms]",
    "closing_ms": "closing [ms]",
}
SHOWN_SETTING = {"site": "site", "network": ("network", named), "protocol": ("protocol", named)}


def _times(connections: pd.DataFrame) -> View:
    first = connections[connections["first"]].copy()
    first["handshake_rtt"] = first["handshake_ms"] / first["ping_ms"]
    data = _summary(first, SETTING, ["ping_ms", *TIMES, "handshake_rtt"])
    texts = shown(data, {**SHOWN_SETTING, "runs": ("runs", count)})
    texts["ping [ms]"] = _deviating(data, "ping_ms", 2)
    texts["handshake [RTT]"] = _deviating(data, "handshake_rtt", 2)
    for column, heading in HEADINGS.items():
        texts[heading] = _deviating(data, column)
    defined = "; ".join(f"{heading.partition(' [')[0]}: {TIMES[column]}" for column, heading in HEADINGS.items())
    note = f"Mean ± standard deviation over runs, at the browser's end. {defined}."
    return View("packets_times", "The connection of the first request", data, texts, note)


def _handshakes(connections: pd.DataFrame) -> View:
    first = connections[connections["first"]]
    ways = [f"{way}_{what}" for way in ("up", "down") for what in ("packets", "bytes")]
    columns = [f"handshake_{name}" for name in ("packets", "bytes", *ways, *KINDS)]
    data = _summary(first, SETTING, columns)
    headings = {"packets": "packets", "bytes": "bytes", "up_packets": "up", "up_bytes": "bytes up"}
    headings |= {"down_packets": "down", "down_bytes": "bytes down"}
    forms = {f"handshake_{name}": (heading, number_of) for name, heading in headings.items()}
    forms |= {f"handshake_{kind}": (kind, number_of) for kind in KINDS if data[f"handshake_{kind}"].any()}
    texts = shown(data, {**SHOWN_SETTING, "runs": ("runs", count), **forms})
    note = (
        "Means over runs, of all packets of the connection of the first request that had passed the browser's end when "
        "its own last handshake message (Finished) left. The columns behind the directions are bytes by kind, and add "
        "up to all bytes."
    )
    return View("packets_handshakes", "Packets and bytes of its handshake", data, texts, note)


def _bytes(captures: pd.DataFrame) -> View:
    data = _summary(captures, ["end", *SETTING, "direction"], ["packets", "bytes", *KINDS])
    data["overhead"] = 1 - data[PAYLOAD] / (data["bytes"] - data[OTHER])
    page = data[data["end"] == "client"]
    forms: dict[str, Any] = {"direction": "direction", "runs": ("runs", count)}
    forms |= {name: (name, number_of) for name in ("packets", "bytes", PAYLOAD)}
    forms |= {"overhead": ("overhead", share)}
    forms |= {kind: (kind, number_of) for kind in KINDS if kind != PAYLOAD and page[kind].any()}
    kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items() if page[kind].any())
    note = (
        f"Means over runs of the whole capture at the browser's end (the file has the servers', too). {kinds}. They "
        "add up to the bytes of all packets in the file. Overhead is all but payload, without the pings. Of a protocol "
        "with early data, the visit before is in it."
    )
    return View("packets_bytes", "What the bytes were for", data, shown(page, {**SHOWN_SETTING, **forms}), note)


def _connections(connections: pd.DataFrame) -> View:
    columns = ["packets", "bytes", "up_packets", "up_bytes", "down_packets", "down_bytes"]
    data = _summary(connections, CONNECTION, [*TIMES, *columns, *KINDS])
    texts = shown(data, {**SHOWN_SETTING, "host": "host", "number": ("connection", count), "runs": ("runs", count)})
    for column, heading in HEADINGS.items():
        texts[heading] = _deviating(data, column)
    for column in ("packets", "bytes", PAYLOAD):
        texts[column] = [number_of(value) for value in data[column]]
    note = "All connections, of those to one server in the order they began in; runs are those in which there was one."
    return View("packets_connections", "Every connection", data, texts, note)


def _bytes_plate(captures: pd.DataFrame) -> Plate:
    whole = captures[(captures["end"] == "client") & (captures["direction"] == "all")]
    means = whole.groupby(SETTING, sort=False)[list(KINDS)].mean().reset_index()
    caption = "What the bytes of a load were for: means over runs, as captured at the browser's end."
    return Plate("packets_bytes", NAME, caption, packets_bytes.draw, (means,))


def _drawings(runs: Sequence[Read]) -> list[Drawing]:
    """A sequence diagram for each site and network."""
    made = []
    for site, network in dict.fromkeys((run.setting["site"], run.setting["network"]) for run in runs):
        own = [run for run in runs if (run.setting["site"], run.setting["network"]) == (site, network)]
        panels = []
        for protocol in dict.fromkeys(run.setting["protocol"] for run in own):
            exchange = averaged(run.steps for run in own if run.setting["protocol"] == protocol and run.steps)
            if exchange:
                panels.append(packets_sequence.Panel(protocol, exchange))
        if not panels:
            continue
        caption = (
            f"{site} behind {named(network)}: what the client sent until the first request, and the server until the "
            "response begins. Times in ms, means of the runs that had the same packets in the same order each way."
        )
        title = f"{site} behind {network}: packets until the first response"
        svg = packets_sequence.draw(title, panels, own[0].setting["rtt_ms"])
        made.append(Drawing(f"packets_{site}_{network}".replace("+", "_plus_"), caption, svg))
    return made


def number_of(value: float) -> str:
    """A mean of whole numbers: with one digit where it is not whole."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 or value >= 1000 else f"{value:,.1f}"
