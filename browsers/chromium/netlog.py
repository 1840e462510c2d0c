"""Chromium's netlog: every request that the browser made, and its outcome.

Unlike the HAR, it contains failed requests, requests for which nobody waited, and the browser's own.
"""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browsers.contract import Request, StreamRequest, Transfer

# The events that send a request → the version of HTTP.
SENT_OVER = {
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": "http/1.1",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": "h2",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "h3",
}
# The events by which a connection sends a request on a stream → the field with the stream's number; and those by which
# data arrive on a stream → the field with its size.
STREAM_NUMBERS = {
    "HTTP2_SESSION_SEND_HEADERS": "stream_id",
    "QUIC_CHROMIUM_CLIENT_STREAM_SEND_REQUEST_HEADERS": "quic_stream_id",
}
STREAM_SIZES = {"HTTP2_SESSION_RECV_DATA": "size", "QUIC_SESSION_STREAM_FRAME_RECEIVED": "length"}
# The events that end a request. (Errors of other events are within a request, and Chromium recovered from them.)
ENDED_BY = frozenset({"REQUEST_ALIVE", "URL_REQUEST_START_JOB", "FAILED", "CANCELLED"})
# The event when a search for a connection finds that the server is known to speak HTTP/3 as well, and the event that
# assigns such a search to a request.
KNOWS_ALTERNATIVE = "HTTP_STREAM_JOB_CONTROLLER_ALT_SVC_FOUND"
SEARCHES = "HTTP_STREAM_JOB_CONTROLLER_BOUND"
# The event with the answer of a name server.
NAME_RECORDS = "HOST_RESOLVER_DNS_TASK_EXTRACTION_RESULTS"
# The phase of an event that ends an earlier event of its kind.
END = 2
# The event of a TCP connection attempt to one address, from its SYN to the answer.
HANDSHAKE = "TCP_CONNECT_ATTEMPT"
# The events that give a socket's address; those that read and write by UDP and by TCP; and those that read a response's
# content before and after decoding.
CONNECTED = frozenset({HANDSHAKE, "UDP_CONNECT"})
DATAGRAM_READ, DATAGRAM_WRITTEN = "UDP_BYTES_RECEIVED", "UDP_BYTES_SENT"
STREAM_READ, STREAM_WRITTEN = "SOCKET_BYTES_RECEIVED", "SOCKET_BYTES_SENT"
CODED_CONTENT, CONTENT = "URL_REQUEST_JOB_BYTES_READ", "URL_REQUEST_JOB_FILTERED_BYTES_READ"
# The headers of IPv4 (replays have no IPv6) and of UDP, or of TCP with the option that Linux always sends (timestamps,
# RFC 7323); and the data that fits into 1500 bytes.
IP_AND_UDP_BYTES, IP_AND_TCP_BYTES = 28, 52
SEGMENT_BYTES = 1500 - IP_AND_TCP_BYTES
# Chromium's errors 100 to 399 concern connections, certificates and HTTP; 7 and 21 are timeouts and changes of the
# network. All others are internal: cancelled by the page, not in the cache, not allowed.
NETWORK_ERRORS = frozenset({-7, -21, *range(-399, -99)})
# Annotations of requests that no page needs, as Chromium logs them: hashes of their names.
BROWSERS_PURPOSES = frozenset({112189210, 107267424})  # "favicon_loader", "open_search"
# The annotation of prefetches for a page that may be visited later ("speculation_rules_prefetch"). Chromium logs them
# like requests of a visible page.
PREFETCH = 78769907
# The header of requests for a prerendered page, which is not visible yet and may never be.
PRERENDERED = "sec-purpose: prefetch;prerender"
# The header of requests for a web app's manifest, which the browser needs only to install the app.
FOR_THE_BROWSER = "sec-fetch-dest: manifest"


# Chromium writes a bounded netlog into ten files in turns (net/log/file_net_log_observer.cc). When all are full it
# overwrites the oldest, so a log that lost its beginning has at least nine full files.
LEAST_FULL_SHARE = 9 / 10

# An event's type, source, parameters and time (s since 1970), and whether it ends something.
Event = tuple[str, int, dict[str, Any], float | None, bool]


@dataclass(frozen=True)
class Log:
    """A netlog: its constants and its events."""

    constants: Mapping[str, Any]
    events: list[Event]


# The netlogs that callers share (`parsed_once`); None until the first call.
PARSED: dict[Path, Log | None] = {}


def read_netlog(path: Path, most_bytes: int | None = None) -> list[Request]:
    """The requests in the netlog at `path`, in the order they were made; the end of the log may be cut off.

    Raises ValueError if its beginning may be missing, because Chromium had a limit of `most_bytes`.
    """
    log = _log(path, most_bytes)
    errors = {code: name for name, code in log.constants["netError"].items()}
    requests: list[Request] = []
    open_requests: dict[int, Request] = {}
    purposes: dict[int, int] = {}
    searches: dict[int, Request] = {}
    recorded_hosts: set[str] = set()
    for kind, source, parameters, at_s, is_end in log.events:
        if kind == "REQUEST_ALIVE" and "traffic_annotation" in parameters:
            purposes[source] = parameters["traffic_annotation"]
        begins = kind == "URL_REQUEST_START_JOB" and "url" in parameters
        # A redirect also ends a request, by making it another one.
        if source in open_requests and (begins or (kind == "REQUEST_ALIVE" and is_end)):
            open_requests[source].ended_s = at_s
        if begins:
            request = open_requests[source] = Request(
                url=parameters["url"],
                method=parameters.get("method", ""),
                main_frame=parameters.get("request_type") == "main frame" and purposes.get(source) != PREFETCH,
                by_browser=parameters.get("initiator") == "not an origin" or purposes.get(source) in BROWSERS_PURPOSES,
                initiator=parameters.get("initiator"),
                began_s=at_s,
                redirected=source in open_requests,
            )
            requests.append(request)
        elif source in open_requests:
            if kind == SEARCHES:
                searches[parameters["source_dependency"]["id"]] = open_requests[source]
            _follow(open_requests[source], kind, parameters, errors)
        elif kind == KNOWS_ALTERNATIVE and source in searches:
            searches[source].knows_alternative = True
        elif kind == NAME_RECORDS:
            recorded_hosts |= _hosts_with_http3(parameters)
    for request in requests:
        # A name is resolved before a connection is opened.
        request.knows_alternative |= urlsplit(request.url).hostname in recorded_hosts
    return requests


def read_streams(path: Path) -> list[StreamRequest]:
    """The streams of the requests in the netlog at `path`, in the order they were sent."""
    streams: dict[tuple[int, int], StreamRequest] = {}
    arrivals: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    parts: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for kind, source, parameters, at_s, _ in _log(path).events:
        if (number := parameters.get(STREAM_NUMBERS.get(kind, ""))) is not None:
            # Headers such as ":path: /" and "priority: u=1, i".
            lines = (header.removeprefix(":").partition(":") for header in parameters["headers"])
            headers = {name: value.strip() for name, _, value in lines}
            priority = headers.get("priority", "").replace(" ", "").split(",")
            urgency = next((int(part[2:]) for part in priority if part.startswith("u=")), StreamRequest.urgency)
            url = f"{headers['scheme']}://{headers['authority']}{headers['path']}"
            streams[source, number] = StreamRequest(number, url, urgency, "i" in priority, source, at_s)
        elif kind in STREAM_SIZES and at_s is not None:
            stream, size = (source, parameters["stream_id"]), parameters[STREAM_SIZES[kind]]
            if (offset := parameters.get("offset")) is not None:
                size = _add_part(parts[stream], offset, offset + size)
            if size:
                arrivals[stream].append((at_s, size))
    return [replace(request, arrivals=tuple(arrivals[stream])) for stream, request in streams.items()]


def _add_part(parts: list[tuple[int, int]], begin: int, end: int) -> int:
    """Add the bytes from `begin` to `end` to the disjoint `parts` of a stream; returns how many of them are new."""
    touching = [part for part in parts if part[0] <= end and part[1] >= begin]
    whole = min([begin, *(part[0] for part in touching)]), max([end, *(part[1] for part in touching)])
    parts[:] = [*(part for part in parts if part not in touching), whole]
    return end - begin - sum(min(end, part[1]) - max(begin, part[0]) for part in touching)


def read_handshakes(path: Path) -> dict[str, float]:
    """Address of a server → the time of the shortest TCP handshake with it (ms) in the netlog at `path`."""
    begun: dict[int, tuple[str, float]] = {}
    shortest_ms: dict[str, float] = {}
    for kind, source, parameters, at_s, is_end in _log(path).events:
        if kind != HANDSHAKE or at_s is None:
            continue
        if not is_end:
            begun[source] = (parameters["address"].rpartition(":")[0].strip("[]"), at_s)
        elif source in begun and "net_error" not in parameters:
            address, began_s = begun.pop(source)
            took_ms = float(round(1000 * (at_s - began_s)))
            shortest_ms[address] = min(took_ms, shortest_ms.get(address, took_ms))
    return shortest_ms


def read_transfer(path: Path, began_s: float, ended_s: float) -> Transfer:
    """The transfer from `began_s` to `ended_s` (s since 1970) according to the netlog at `path`."""
    addresses: dict[int, str] = {}
    sent_over_network: set[int] = set()
    # The size of each response's content, encoded and decoded. Without an encoding, only the decoded size is logged.
    coded, decoded = Counter[int](), Counter[int]()
    datagrams, segmented = Counter[str](), Counter[int]()
    connections: set[int] = set()
    is_over_tcp = False
    for kind, source, parameters, at_s, _ in _log(path).events:
        if kind in CONNECTED and "address" in parameters:
            addresses[source] = parameters["address"]
        if kind in SENT_OVER:
            sent_over_network.add(source)
        size = parameters.get("byte_count")
        if size is None or at_s is None or not began_s <= at_s <= ended_s:
            continue
        if kind in (CODED_CONTENT, CONTENT):
            (coded if kind == CODED_CONTENT else decoded)[source] += size
        # An address on the loopback device is not a server.
        elif not addresses.get(source, "127.").startswith("127."):
            if kind in (DATAGRAM_READ, STREAM_READ):
                connections.add(source)
            if kind in (DATAGRAM_READ, DATAGRAM_WRITTEN):
                datagrams[kind] += size + IP_AND_UDP_BYTES
            elif kind in (STREAM_READ, STREAM_WRITTEN):
                is_over_tcp = True
                segmented[source] += size if kind == STREAM_READ else 0
    segments = sum(-(-size // SEGMENT_BYTES) for size in segmented.values())
    return Transfer(
        sum(coded.get(source, decoded[source]) for source in decoded.keys() & sent_over_network),
        datagrams[DATAGRAM_READ] + segmented.total() + segments * IP_AND_TCP_BYTES,
        None if is_over_tcp else datagrams[DATAGRAM_WRITTEN],
        len(connections),
        len({addresses[source].rpartition(":")[0] for source in connections}),
    )


def _follow(request: Request, kind: str, parameters: dict[str, Any], errors: dict[int, str]) -> None:
    """Update `request` with one event."""
    if kind in SENT_OVER:
        request.protocol = SENT_OVER[kind]
        headers = parameters.get("headers", ())
        request.by_browser = request.by_browser or FOR_THE_BROWSER in headers
        request.main_frame = request.main_frame and PRERENDERED not in headers
    elif kind == "HTTP_TRANSACTION_READ_RESPONSE_HEADERS":
        request.status = int(parameters["headers"][0].split()[1])
        request.announces_alternative = any(line.lower().startswith("alt-svc:") for line in parameters["headers"])
    elif "transport_info" in parameters:
        request.address = _address(parameters["transport_info"])
    code = parameters.get("net_error", 0)
    if kind in ENDED_BY and code in NETWORK_ERRORS:
        request.error = errors.get(code, str(code))


def _hosts_with_http3(answer: dict[str, Any]) -> set[str]:
    """The hosts that speak HTTP/3 according to a record in a name server's answer (RFC 9460)."""
    return {
        result["domain_name"]
        for result in answer["results"]
        for metadata in result.get("metadatas", ())
        if "h3" in metadata["metadata_value"]["supported_protocol_alpns"]
    }


def _address(transport_info: str) -> str | None:
    """The IP address in `TransportInfo{ type = …, endpoint = 198.18.0.1:443, … }`."""
    _, separator, rest = transport_info.partition("endpoint = ")
    return rest.partition(",")[0].rpartition(":")[0].strip("[]") if separator else None


@contextmanager
def parsed_once(path: Path) -> Iterator[None]:
    """Let all functions that are called in this context share the netlog at `path`."""
    PARSED[path] = None
    try:
        yield
    finally:
        PARSED.pop(path, None)


def _log(path: Path, most_bytes: int | None = None) -> Log:
    if log := PARSED.get(path):
        return log
    with gzip.open(path, "rb") as file:
        content = file.read()
    if most_bytes and len(content) >= LEAST_FULL_SHARE * most_bytes:
        raise ValueError(f"the page made the browser log more than {most_bytes >> 20} MiB, so its beginning is missing")
    document = _parse(content.decode(errors="replace"))
    log = Log(document["constants"], list(_events(document)))
    if path in PARSED:
        PARSED[path] = log
    return log


def _events(log: dict[str, Any]) -> Iterator[Event]:
    """Type, source, parameters and time (s since 1970) of each event, and whether the event ends something."""
    # The start of the log's clock, in ms since 1970; the log's times are text, in ms since the machine's start.
    start_ms = log["constants"].get("timeTickOffset")
    names = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    for event in log["events"]:
        at_s = (
            None if start_ms is None or "time" not in event else (int(str(start_ms)) + int(str(event["time"]))) / 1000
        )
        kind, source = names.get(event["type"], ""), event["source"]["id"]
        yield kind, source, event.get("params") or {}, at_s, event.get("phase") == END


def _parse(text: str) -> dict[str, Any]:
    """The log as JSON; if writing was interrupted, up to its last whole line."""
    try:
        log: dict[str, Any] = json.loads(text)
    except ValueError:
        log = json.loads(text[: text.rfind("},\n") + 1] + "]}")
    return log
