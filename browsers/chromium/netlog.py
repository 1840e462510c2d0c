"""Chromium's netlog: every request the browser made, and what became of it.

Unlike the HAR it has requests that failed, that nobody waited for, and those of the browser itself.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browsers.contract import Request, StreamRequest, Transfer

# The events of a request being sent, and over what.
SENT_OVER = {
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": "http/1.1",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": "h2",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "h3",
}
# The events that say on which stream a request was sent, and the field that has the stream's number.
STREAM_NUMBERS = {
    "HTTP2_SESSION_SEND_HEADERS": "stream_id",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "quic_stream_id",
}
# The events that end a request. (Others have errors within, which the network stack got over.)
ENDED_BY = frozenset({"REQUEST_ALIVE", "URL_REQUEST_START_JOB", "FAILED", "CANCELLED"})
# The event of the search for a connection that finds out that a server is known to speak HTTP/3, too, and the event by
# which a request has such a search.
KNOWS_ALTERNATIVE = "HTTP_STREAM_JOB_CONTROLLER_ALT_SVC_FOUND"
SEARCHES = "HTTP_STREAM_JOB_CONTROLLER_BOUND"
# The event of what a name server answered.
NAME_RECORDS = "HOST_RESOLVER_DNS_TASK_EXTRACTION_RESULTS"
# The phase of an event that ends what an event of its kind began.
END = 2
# The event of a TCP connection to one address, from its SYN to the answer.
HANDSHAKE = "TCP_CONNECT_ATTEMPT"
# The events that say which address a socket is connected to, those of reading and writing by UDP and by TCP, and those
# of reading a response's content, before and after its coding is undone.
CONNECTED = frozenset({HANDSHAKE, "UDP_CONNECT"})
DATAGRAM_READ, DATAGRAM_WRITTEN = "UDP_BYTES_RECEIVED", "UDP_BYTES_SENT"
STREAM_READ, STREAM_WRITTEN = "SOCKET_BYTES_RECEIVED", "SOCKET_BYTES_SENT"
CODED_CONTENT, CONTENT = "URL_REQUEST_JOB_BYTES_READ", "URL_REQUEST_JOB_FILTERED_BYTES_READ"
# Headers of IPv4, which replays have alone, and of TCP with the option that Linux sends always (timestamps, RFC 7323);
# and what is left of 1500 bytes for data.
IP_AND_UDP_BYTES, IP_AND_TCP_BYTES = 28, 52
SEGMENT_BYTES = 1500 - IP_AND_TCP_BYTES
# Chromium's codes from 100 to 399 are of connections, certificates and HTTP; 7 and 21 are timeouts and changes of
# the network. The others are of the browser itself: broken off by the page, not in the cache, not allowed.
NETWORK_ERRORS = frozenset({-7, -21, *range(-399, -99)})
# Chromium's names for the purposes of requests that no page needs, as the numbers that the log has.
BROWSERS_PURPOSES = frozenset({112189210, 107267424})  # "favicon_loader", "open_search"
# And that of what a page wants to have ready for when it is left ("speculation_rules_prefetch"). Chromium logs it as it
# does a page that is shown.
PREFETCH = 78769907
# The field of a request that is made for a page which is not shown yet, and may never be.
PRERENDERED = "sec-purpose: prefetch;prerender"
# No more does a page need the description with which the browser would install it as an application.
FOR_THE_BROWSER = "sec-fetch-dest: manifest"


# Chromium writes a bounded netlog into ten files in turns (net/log/file_net_log_observer.cc). When all are full it
# begins the oldest anew: a log to which that has happened has at least nine full ones.
LEAST_FULL_SHARE = 9 / 10


def read_netlog(path: Path, most_bytes: int | None = None) -> list[Request]:
    """The requests in the netlog at `path`, in the order they were made; it may have been cut short at its end.

    Raises ValueError when it may lack its beginning, since Chromium was to write no more than `most_bytes`.
    """
    with gzip.open(path, "rb") as file:
        content = file.read()
    if most_bytes and len(content) >= LEAST_FULL_SHARE * most_bytes:
        raise ValueError(f"the page made the browser log more than {most_bytes >> 20} MiB, so its beginning is missing")
    log = _parse(content.decode(errors="replace"))
    errors = {code: name for name, code in log["constants"]["netError"].items()}
    requests: list[Request] = []
    open_requests: dict[int, Request] = {}
    purposes: dict[int, int] = {}
    searches: dict[int, Request] = {}
    recorded_hosts: set[str] = set()
    for kind, source, parameters, at_s, is_end in _events(log):
        if kind == "REQUEST_ALIVE" and "traffic_annotation" in parameters:
            purposes[source] = parameters["traffic_annotation"]
        begins = kind == "URL_REQUEST_START_JOB" and "url" in parameters
        # A request has also ended when a redirect has made another one of it.
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
        # A name is resolved before there is a connection.
        request.knows_alternative |= urlsplit(request.url).hostname in recorded_hosts
    return requests


def read_streams(path: Path) -> list[StreamRequest]:
    """The streams of the requests in the netlog at `path`, in the order they were sent."""
    with gzip.open(path, "rt", errors="replace") as file:
        log = _parse(file.read())
    streams = []
    for kind, _, parameters, _, _ in _events(log):
        if (number := parameters.get(STREAM_NUMBERS.get(kind, ""))) is not None:
            # Such as ":path: /" and "priority: u=1, i".
            lines = (header.removeprefix(":").partition(":") for header in parameters["headers"])
            headers = {name: value.strip() for name, _, value in lines}
            priority = headers.get("priority", "").replace(" ", "").split(",")
            urgency = next((int(part[2:]) for part in priority if part.startswith("u=")), StreamRequest.urgency)
            url = f"{headers['scheme']}://{headers['authority']}{headers['path']}"
            streams.append(StreamRequest(number, url, urgency, "i" in priority))
    return streams


def read_handshakes(path: Path) -> dict[str, float]:
    """Address of a server → the time in ms of the shortest TCP handshake with it, according to the netlog at `path`."""
    with gzip.open(path, "rt", errors="replace") as file:
        log = _parse(file.read())
    begun: dict[int, tuple[str, float]] = {}
    shortest_ms: dict[str, float] = {}
    for kind, source, parameters, at_s, is_end in _events(log):
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
    """The transfer from `began_s` to `ended_s` (s since 1970) by the netlog at `path`."""
    with gzip.open(path, "rt", errors="replace") as file:
        log = _parse(file.read())
    addresses: dict[int, str] = {}
    sent_over_network: set[int] = set()
    # The content of each request as transferred and as decoded; without a coding, the latter alone is logged.
    coded, decoded = Counter[int](), Counter[int]()
    datagrams, segmented = Counter[str](), Counter[int]()
    connections: set[int] = set()
    is_over_tcp = False
    for kind, source, parameters, at_s, _ in _events(log):
        if kind in CONNECTED and "address" in parameters:
            addresses[source] = parameters["address"]
        if kind in SENT_OVER:
            sent_over_network.add(source)
        size = parameters.get("byte_count")
        if size is None or at_s is None or not began_s <= at_s <= ended_s:
            continue
        if kind in (CODED_CONTENT, CONTENT):
            (coded if kind == CODED_CONTENT else decoded)[source] += size
        # An address of this machine's loopback device is no server's.
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
    )


def _follow(request: Request, kind: str, parameters: dict[str, Any], errors: dict[int, str]) -> None:
    """Add to `request` what one more event has about it."""
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
    """The hosts for which an answer of a name server has a record that says that they speak HTTP/3 (RFC 9460)."""
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


def _events(log: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any], float | None, bool]]:
    """Each event's type, source and parameters, when it was (s since 1970), and whether it is the end of something."""
    # In ms since 1970; the log's times are text, in ms since the machine's start.
    start_ms = log["constants"].get("timeTickOffset")
    names = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    for event in log["events"]:
        at_s = (
            None if start_ms is None or "time" not in event else (int(str(start_ms)) + int(str(event["time"]))) / 1000
        )
        kind, source = names.get(event["type"], ""), event["source"]["id"]
        yield kind, source, event.get("params") or {}, at_s, event.get("phase") == END


def _parse(text: str) -> dict[str, Any]:
    """The log as JSON; one cut short while it was written ends with its last whole line."""
    try:
        log: dict[str, Any] = json.loads(text)
    except ValueError:
        log = json.loads(text[: text.rfind("},\n") + 1] + "]}")
    return log
