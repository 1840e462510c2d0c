"""The captured runs in a campaign's folder, dissected into connections, bytes by kind, and handshakes."""

import math
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from analysis.networks import path_rtt_ms
from base.errors import EyelevelError
from base.files import read_json
from dataset.har import navigated_s
from dataset.navigation import read_navigation
from dataset.run_files import HAR
from dataset.table import CampaignDocument, Row, read_document, valid_rows
from studies.packets.bytes import PADDING
from studies.packets.connections import by_connection, first_request_connection, handshake, tally, times
from studies.packets.dissection import Capture, ConnectionKey, read_capture
from studies.packets.files import CLIENT, KEYS, PING, SERVERS, STUDY
from studies.packets.head_of_line import (
    FRONT,
    OTHERS,
    Blocking,
    Delivery,
    blocking,
    blocking_in_one_sequence,
    measures,
)
from studies.packets.sequence import Step, steps
from studies.packets.university import header_rows

# The browser may connect just before the start of navigation in its HAR. An earlier visit ended at least the network's
# quiet time before.
AHEAD_S = 1.0
ENDS = {"client": CLIENT, "servers": SERVERS}


@dataclass(frozen=True)
class CapturedRun:
    """A run, as rows of the study's tables.

    `connections`: a row for each; `captures`: a row for each end and direction; `steps`: the packets of the first
    request's connection until its response; `waits`: how long data waited, and for which cause; `headers`: a row for
    each kind of header.
    """

    setting: dict[str, Any]
    connections: list[dict[str, Any]]
    captures: list[dict[str, Any]]
    steps: tuple[Step, ...]
    waits: dict[str, Any]
    deliveries: tuple[Delivery, ...]
    headers: list[dict[str, Any]] = field(default_factory=list)


def read_runs(campaign: Path) -> list[CapturedRun]:
    """All runs of the campaign that count, in the order of their settings. Raises EyelevelError."""
    rows, document = valid_rows(campaign, STUDY), read_document(campaign)
    if not rows or document is None:
        return []
    with ProcessPoolExecutor(min(len(rows), len(os.sched_getaffinity(0)))) as workers:
        runs = workers.map(partial(read_run, campaign, document), rows)
        return sorted(runs, key=lambda run: _sort_key(run.setting))


def _sort_key(setting: dict[str, Any]) -> tuple[str, str, float]:
    """Networks that differ only in their delay come together, the shortest delay first."""
    return setting["site"], setting["network"].partition("+")[0], setting["rtt_ms"]


def read_run(campaign: Path, document: CampaignDocument, row: Row) -> CapturedRun:
    """The run of `row`, whose evidence is in the folder of `campaign`. Raises EyelevelError."""
    folder = campaign / row.folder
    setting = {
        "site": row.site,
        "network": row.network,
        "protocol": row.protocol,
        "run": row.run,
        "rtt_ms": path_rtt_ms(document.settings.networks[row.network]),
        "ping_ms": read_json(folder / PING)["mean_ms"],
    }
    captures = {end: read_capture(folder / file, folder / KEYS) for end, file in ENDS.items()}
    rows = list(_capture_rows(setting, captures))
    navigation = read_navigation(folder)
    begin_s = navigation.began_ms / 1000 if navigation else navigated_s(read_json(folder / HAR))
    # With early data, the capture also has the browser's first visit.
    start_s = begin_s - AHEAD_S if document.settings.protocols[row.protocol]["early_data"] else 0.0
    client = _since(captures["client"], start_s)
    first = first_request_connection(client)
    try:
        waits = blocking(client)
    except EyelevelError as error:
        raise EyelevelError(f"{folder / CLIENT}: {error}") from None
    in_one_sequence = blocking_in_one_sequence(client, captures["servers"])
    return CapturedRun(
        setting,
        list(_connection_rows(setting, client, waits)),
        rows,
        steps(client, captures["servers"], first) if first else (),
        waits_row(setting, waits, in_one_sequence, begin_s, row.metrics.get("plt")),
        tuple(delivery for connection in waits.values() for delivery in connection.deliveries),
        list(header_rows(setting, client.packets)),
    )


def waits_row(
    setting: dict[str, Any],
    waits: Mapping[ConnectionKey, Blocking],
    in_one_sequence: Mapping[ConnectionKey, Blocking],
    begin_s: float,
    plt_ms: float | None,
) -> dict[str, Any]:
    """The `measures` of all connections.

    Columns that begin with `sequence_` have the measures of the same packets in one sequence (QUIC). Columns that end
    in `_share` have the share of the time from the start of navigation to the load event in which a byte waited for
    others, at least and at most.
    """
    row = {**setting, "plt_ms": math.nan if plt_ms is None else plt_ms, "begin_s": begin_s, **measures(waits.values())}
    sequence = measures(in_one_sequence.values()) if in_one_sequence else {}
    row |= {f"sequence_{name}": sequence.get(name, math.nan) for name in row if name.startswith((FRONT, "gaps"))}
    until_load = measures(waits.values(), begin_s, begin_s + row["plt_ms"] / 1e3)
    return row | {f"{cause}_share": until_load[f"{cause}_ms"] / row["plt_ms"] for cause in (OTHERS, FRONT)}


def _capture_rows(setting: dict[str, Any], captures: dict[str, Capture]) -> Iterator[dict[str, Any]]:
    for end, capture in captures.items():
        directions = {
            "up": [packet for packet in capture.packets if packet.connection and not packet.from_server],
            "down": [packet for packet in capture.packets if packet.connection and packet.from_server],
            "pings": [packet for packet in capture.packets if not packet.connection],
            "all": list(capture.packets),
        }
        for direction, packets in directions.items():
            yield {**setting, "end": end, "direction": direction, **tally(packets)}


def _connection_rows(
    setting: dict[str, Any], capture: Capture, waits: Mapping[ConnectionKey, Blocking]
) -> Iterator[dict[str, Any]]:
    """A row for each connection; `number` counts the connections to one server, in the order in which they began."""
    numbers: dict[str, int] = {}
    first = first_request_connection(capture)
    for connection, packets in by_connection(capture).items():
        server = connection[0]
        numbers[server] = numbers.get(server, 0) + 1
        row = {
            **setting,
            "server": server,
            "number": numbers[server],
            "host": capture.hosts.get(connection, server),
            "first": connection == first,
            "first_packet_udp_bytes": packets[0].udp_payload_bytes,
            "first_packet_padding": packets[0].kinds.get(PADDING, 0),
            **times(packets),
            **measures([waits[connection]]),
        }
        for prefix, selection in (("", packets), ("handshake_", handshake(packets))):
            row |= {f"{prefix}{name}": number for name, number in tally(selection).items()}
            for direction, from_server in (("up", False), ("down", True)):
                one_way = tally([packet for packet in selection if packet.from_server == from_server])
                row |= {f"{prefix}{direction}_{name}": one_way[name] for name in ("packets", "bytes")}
        yield row


def _since(capture: Capture, start_s: float) -> Capture:
    """The part of `capture` with connections that began at `start_s` or later."""
    connections = {connection for connection, packets in by_connection(capture).items() if packets[0].at_s >= start_s}
    return replace(capture, packets=tuple(packet for packet in capture.packets if packet.connection in connections))
