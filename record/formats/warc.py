"""Web archives (WARC, ISO 28500): responses in the order they came, each with its request.

Archives hold no server IPs, so every host gets a server of its own. Crawlers often remove the chunk framing but not
the header field that announces it.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from record.assemble import assemble
from record.http1 import MAX_BODY_BYTES, Headers, MalformedMessage, Response, parse_status_line
from record.intake import Intake, with_true_length
from record.site import Exchange, Recording, authority_of
from record.urls import normal_url

NAME = "warc"
DESCRIPTION = "a web archive"
ENDINGS = (".warc", ".warc.gz")


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.name.endswith(ENDINGS)


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the archive `path`. Broken records are left out and named. Raises EyelevelError."""
    intake = Intake(path.name, keep_cookies=keep_cookies)
    # Requests are read first: in the archive they may follow their responses, which are too large to be kept.
    requests = {
        record.rec_headers.get_header("WARC-Concurrent-To"): record.http_headers
        for record in _records(path, "request")
        if record.http_headers
    }
    for record in _records(path, "response", intake):
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        request = requests.get(record.rec_headers.get_header("WARC-Record-ID"))
        method, headers = (request.protocol, tuple(request.headers)) if request else ("GET", ())
        intake.take(url, partial(_exchange, record, url, method, headers))
    return assemble(intake, {"tool": "warc", "server_ips": "not recorded; one for each host"})


def _records(path: Path, kind: str, intake: Intake | None = None) -> Iterator[Any]:
    """The archive's records of one kind. When the archive breaks off, `intake` gets a line about it.

    The content of a record must be read before the next record is.
    """
    with path.open("rb") as stream:
        records = iter(ArchiveIterator(stream))
        while True:
            try:
                record = next(records)
            except StopIteration:
                return
            # In broken archives warcio raises errors of all kinds, from those of its parser to those of zlib.
            except Exception as error:
                if intake:
                    intake.leave_out(path.name, f"it breaks off: {error}")
                return
            if record.rec_type == kind:
                yield record


def _exchange(record: Any, url: str, method: str, request_headers: Headers) -> Exchange:
    url = normal_url(url)
    if record.http_headers is None:
        raise MalformedMessage("no HTTP response in the record")
    status, reason = parse_status_line(f"HTTP/1.1 {record.http_headers.statusline}".encode("latin-1", "replace"))
    try:
        body = record.raw_stream.read(MAX_BODY_BYTES + 1)
    except Exception as error:  # as in _records
        raise MalformedMessage(f"its body cannot be read: {error}") from None
    response = Response(status, reason, tuple(record.http_headers.headers), body)
    if len(body) <= MAX_BODY_BYTES:
        with_true_length(method, response)
    return Exchange(method, url, response, authority_of(url), _time_ms(record), request_headers=request_headers)


def _time_ms(record: Any) -> float | None:
    try:
        return datetime.fromisoformat(record.rec_headers.get_header("WARC-Date") or "").timestamp() * 1000
    except (ValueError, OverflowError):
        return None
