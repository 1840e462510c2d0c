"""Web archives (WARC, ISO 28500): responses in the order they came, each with its request.

Archives hold no server IPs: every host is taken to have a server of its own. Crawlers often take the chunk
framing off and leave the header that announced it.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from record.assemble import assemble
from record.http1 import Headers, MalformedMessage, Response, parse_status_line
from record.site import Exchange, Recording, authority_of, kept_request_headers

ENDINGS = (".warc", ".warc.gz")


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.name.endswith(ENDINGS)


def read(path: Path) -> Recording:
    """The exchanges of the archive `path`. Broken records are left out and named. Raises EyelevelError."""
    exchanges: dict[str, Exchange] = {}
    requests: dict[str, tuple[str, Headers]] = {}
    skipped: list[str] = []
    began: float | None = None
    for record in _records(path, skipped):
        identity = record.rec_headers.get_header("WARC-Record-ID") or ""
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        if record.rec_type == "request" and record.http_headers:
            answered = record.rec_headers.get_header("WARC-Concurrent-To") or ""
            requests[answered] = (record.http_headers.protocol, tuple(record.http_headers.headers))
        elif record.rec_type == "response" and url.startswith(("http://", "https://")):
            try:
                at_ms = _time_ms(record)
                began = at_ms if began is None else began
                exchanges[identity] = _exchange(record, url, at_ms - began)
            except (MalformedMessage, ValueError) as error:
                skipped.append(f"{url}: {error}")
    joined = [_with_request(exchange, requests.get(identity)) for identity, exchange in exchanges.items()]
    recorder = {"tool": "warc", "server_ips": "not recorded; one for each host"}
    return assemble(path.name, joined, skipped, recorder)


def _records(path: Path, skipped: list[str]) -> Iterator[Any]:
    """The archive's records, up to where it breaks off."""
    with path.open("rb") as stream:
        try:
            # What a record holds is read before the next one is asked for.
            yield from ArchiveIterator(stream)
        except (ArchiveLoadFailed, EOFError, OSError) as error:
            skipped.append(f"{path.name} breaks off: {error}")


def _exchange(record: Any, url: str, started_ms: float) -> Exchange:
    if record.http_headers is None:
        raise MalformedMessage("no HTTP response in the record")
    status, reason = parse_status_line(f"HTTP/1.1 {record.http_headers.statusline}".encode("latin-1"))
    if status == 101:
        raise MalformedMessage("switched protocols (101), which no HTTP server can replay")
    headers = tuple((name, value) for name, value in record.http_headers.headers)
    body = record.raw_stream.read()
    return Exchange("GET", url, Response(status, reason, headers, body), authority_of(url), started_ms)


def _time_ms(record: Any) -> float:
    text = record.rec_headers.get_header("WARC-Date") or ""
    return datetime.fromisoformat(text).timestamp() * 1000


def _with_request(exchange: Exchange, request: tuple[str, Headers] | None) -> Exchange:
    if request is None:
        return exchange
    method, headers = request
    return Exchange(**{**vars(exchange), "method": method, "request_headers": kept_request_headers(headers)})
