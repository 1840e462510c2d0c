"""Logs of congestion control: one qlog (version 0.3, which qvis opens) for each connection.

quic_server writes it (`servers/quic/connection_log.h`); for TCP it is made from the kernel's socket statistics
(`studies.states.socket_series`). Both have these events:

    recovery:parameters_set            congestion_control, initial_congestion_window (TCP's as first seen)
    recovery:metrics_updated           what has changed: congestion_window, bytes_in_flight, ssthresh, bytes_delivered
                                       (bytes), min_rtt, smoothed_rtt (ms), pacing_rate, bandwidth_estimate (bit/s),
                                       packets_lost (from the start)
    recovery:congestion_state_updated  new, and old except in the first

QUIC's also have events of packets; the metrics latest_rtt and pto_count; the parameters emulated_connections (as how
many connections Cubic behaves) and scheduler, as set in the server; and the event

    http:priority_updated              stream_id, new (the browser's request, as RFC 9218 writes it), in_force (the
                                       priority by which the server schedules)

TCP's also have the metric delivery_rate (bit/s).
The format is JSON text sequences (RFC 7464): the first record describes the connection, each further one is an event.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import write_atomically

# The suffix of qlog files.
QLOG_ENDING = ".sqlog"
VERSION, FORMAT = "0.3", "JSON-SEQ"
RECORD = "\x1e"

STARTED = "connectivity:connection_started"
CLOSED = "connectivity:connection_closed"
PARAMETERS = "recovery:parameters_set"
METRICS = "recovery:metrics_updated"
STATE = "recovery:congestion_state_updated"
PRIORITY = "http:priority_updated"


@dataclass(frozen=True)
class Event:
    """Something that happened `time_ms` after the log's reference time."""

    time_ms: float
    name: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Qlog:
    """A connection: its title, when it began (s since 1970), and its events."""

    title: str
    began_s: float
    events: tuple[Event, ...]

    def named(self, name: str) -> list[Event]:
        """The events of this name, in order."""
        return [event for event in self.events if event.name == name]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the connection's recovery; empty if none were set."""
        return {key: value for event in self.named(PARAMETERS) for key, value in event.data.items()}


def read_qlog(path: Path) -> Qlog:
    """The qlog at `path`. Raises EyelevelError if it is not a qlog, was cut off, or has times that go back."""
    texts = path.read_text(errors="replace").split(RECORD)
    try:
        if texts[0] or not texts[-1].endswith("\n"):
            raise ValueError("it was cut short")
        header, *records = (json.loads(text) for text in texts[1:])
        if (header["qlog_version"], header["qlog_format"]) != (VERSION, FORMAT):
            raise ValueError(f"it is not of version {VERSION} in {FORMAT}")
        began_s = header["trace"]["common_fields"]["reference_time"] / 1e3
        events = tuple(Event(float(event["time"]), event["name"], event["data"]) for event in records)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise EyelevelError(f"{path} is not a qlog that can be read: {error}") from None
    if any(later.time_ms < event.time_ms for event, later in itertools.pairwise(events)):
        raise EyelevelError(f"{path} is not a qlog that can be read: its times go back")
    return Qlog(header["title"], began_s, events)


def read_qlogs(folder: Path) -> list[Qlog]:
    """Every qlog in `folder`, in order of names. Raises EyelevelError."""
    return [read_qlog(path) for path in sorted(folder.glob(f"*{QLOG_ENDING}"))]


def write_qlog(path: Path, qlog: Qlog, seen_by: str, protocols: Iterable[str]) -> None:
    """Write `qlog` to `path`; `seen_by` names the program at the server that collected the data."""
    header = {
        "qlog_version": VERSION,
        "qlog_format": FORMAT,
        "title": qlog.title,
        "trace": {
            "vantage_point": {"name": seen_by, "type": "server"},
            "common_fields": {
                "time_format": "relative",
                "reference_time": round(qlog.began_s * 1e3, 3),
                "protocol_type": list(protocols),
            },
        },
    }
    events = ({"time": round(event.time_ms, 3), "name": event.name, "data": event.data} for event in qlog.events)
    records = (json.dumps(record, separators=(",", ":")) for record in (header, *events))
    write_atomically(path, "".join(f"{RECORD}{record}\n" for record in records))
