"""Web archives (WARC, ISO 28500): responses in the order they came, each with its request.

Archives hold no server IPs, so every host gets a server of its own. Crawlers often remove the chunk framing but not
the header field that announces it.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import redirect_stderr
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.statusandheaders import StatusAndHeadersParser

from record.assemble import assemble
from record.bounded import open_regular, parse_json
from record.http1 import Headers, MalformedMessage, Response, parse_status_line
from record.intake import Intake, with_true_length
from record.layout import authority_of
from record.limits import BODY_BYTES, EXCHANGES, HEAD_BYTES, SITE_BYTES, TEXT_BYTES
from record.site import Exchange, Recording, kept_request_headers
from record.urls import normal_url

NAME = "warc"
DESCRIPTION = "a web archive"
ENDINGS = (".warc", ".warc.gz")

# Records in which archives list their pages, and the name of Browsertrix's.
LISTING_RECORDS = ("warcinfo", "metadata", "resource")
PAGE_INFO = "urn:pageinfo:"

# What a packed archive may hold: a site's bodies, and as much that is no part of one.
ARCHIVE_BYTES = 2 * SITE_BYTES
# Header lines of all records. Each costs more time than its letters do.
LINES_BYTES, LINE_COST_BYTES = 2 * TEXT_BYTES, 64

# It warns on standard error of what is odd in an archive. Whatever cannot be imported is named by us.
logging.getLogger("warcio").addHandler(logging.NullHandler())


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.name.endswith(ENDINGS)


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the archive `path`. Broken records are left out and named. Raises EyelevelError."""
    intake = Intake(path.name, keep_cookies=keep_cookies)
    # Requests are read first: in the archive they may follow their responses, which are too large to be kept.
    requests: dict[str | None, tuple[str, Headers]] = {}
    for record in _records(path, "request"):
        if record.http_headers and len(requests) < EXCHANGES:
            headers = kept_request_headers(tuple(record.http_headers.headers))
            requests[record.rec_headers.get_header("WARC-Concurrent-To")] = (record.http_headers.protocol, headers)
    for record in _records(path, "response", intake=intake):
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        method, headers = requests.get(record.rec_headers.get_header("WARC-Record-ID"), ("GET", ()))
        intake.take(url, partial(_exchange, record, url, method, headers))
    recorder = {"tool": "warc", "server_ips": "not recorded; one for each host"}
    return assemble(intake, recorder, listed=_listed_pages(path))


def _listed_pages(path: Path) -> list[str]:
    """The URLs of the pages that the archive itself lists, if it does.

    Webrecorder lists them in `warcinfo` records, Browsertrix has a record `urn:pageinfo:URL` for each, and Heritrix
    writes `metadata` records, in which `seed` marks the URLs that it began with.
    """
    pages: list[str] = []
    for record in _records(path, *LISTING_RECORDS):
        target = record.rec_headers.get_header("WARC-Target-URI") or ""
        if target.startswith(PAGE_INFO):
            pages.append(target.removeprefix(PAGE_INFO))
        elif record.rec_type == "resource":
            continue
        else:
            fields = _fields(record)
            if record.rec_type == "metadata" and "seed" in fields:
                pages.append(target)
            pages += _urls_of_pages(fields.get("json-metadata", ""))
    return pages[:EXCHANGES]


def _fields(record: Any) -> dict[str, str]:
    """The `application/warc-fields` of a record; none when they cannot be read."""
    try:
        text = record.raw_stream.read(HEAD_BYTES).decode("utf-8", "replace")
    except Exception:  # as in _records
        return {}
    fields = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in fields}


def _urls_of_pages(document: str) -> list[str]:
    """The URLs in Webrecorder's description of a recording, which lists its pages or is of a collection."""
    try:
        pages = parse_json(document.encode())["pages"]
        return [page["url"] for page in pages if isinstance(page["url"], str)]
    except (ValueError, LookupError, TypeError):
        return []


class _Reader(DecompressingBufferedReader):  # type: ignore[misc]
    """Reads an archive. Ends it where it holds more than any recording of a page, packed or not."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.bytes = self.lines_bytes = 0

    def read(self, length: int | None = None) -> bytes:
        part: bytes = super().read(length)
        self._count(len(part))
        return part

    def readline(self, length: int | None = None) -> bytes:
        limit = HEAD_BYTES if length is None else length
        line = b""
        # warcio returns a part of a line that is longer than its buffer.
        while len(line) < limit and not line.endswith(b"\n") and (part := super().readline(limit - len(line))):
            line += part
        self._count(len(line))
        self.lines_bytes += len(line) + LINE_COST_BYTES
        if (length is None and len(line) >= HEAD_BYTES) or self.lines_bytes > LINES_BYTES:
            raise ArchiveLoadFailed("its records' header fields are longer than those of any page")
        return line

    def _count(self, count: int) -> None:
        self.bytes += count
        if self.bytes > ARCHIVE_BYTES:
            raise ArchiveLoadFailed(f"it holds more than {ARCHIVE_BYTES >> 30} GiB")


class _TooLong(Exception):
    """Header fields that are longer than any message's."""


class _Lines:
    """The lines of `stream`, HEAD_BYTES of them at most. Raises _TooLong."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.remaining_bytes = HEAD_BYTES

    def readline(self) -> bytes:
        line: bytes = self.stream.readline(self.remaining_bytes + 1)
        self.remaining_bytes -= len(line)
        if self.remaining_bytes < 0:
            raise _TooLong
        return line


class _Parser(StatusAndHeadersParser):  # type: ignore[misc]
    """Reads the header fields of a record, or of the message in it. None when those of a message are too long."""

    def parse(self, stream: Any, full_statusline: Any = None) -> Any:
        try:
            return super().parse(_Lines(stream), full_statusline)
        except _TooLong:
            if stream.__class__ is _Reader:  # of the record itself, so that nobody knows where it ends
                raise ArchiveLoadFailed("a record's header fields are longer than any page's") from None
            return None


def _archive(stream: Any) -> ArchiveIterator:
    records = ArchiveIterator(stream)
    records.reader = _Reader(stream)
    loader = records.loader
    loader.warc_parser = _Parser(loader.WARC_TYPES)
    loader.http_parser = _Parser(loader.HTTP_TYPES, verify=False)
    loader.http_req_parser = _Parser(loader.HTTP_VERBS, verify=False)
    return records


def _records(path: Path, *kinds: str, intake: Intake | None = None) -> Iterator[Any]:
    """The archive's records of these kinds. When the archive breaks off, `intake` gets a line about it.

    The content of a record must be read before the next record is.
    """
    with os.fdopen(open_regular(path, follow=True), "rb") as stream, Path(os.devnull).open("w") as nowhere:
        records = iter(_archive(stream))
        while True:
            try:
                with redirect_stderr(nowhere):
                    record = next(records)
            except StopIteration:
                return
            # In broken archives warcio raises errors of all kinds, from those of its parser to those of zlib.
            except Exception as error:
                if intake:
                    intake.leave_out(path.name, f"it breaks off: {str(error)[:200]}")
                return
            if record.rec_type in kinds:
                yield record


def _exchange(record: Any, url: str, method: str, request_headers: Headers) -> Exchange:
    url = normal_url(url)
    if record.rec_headers.get_header("WARC-Segment-Number") is not None:
        raise MalformedMessage("its response is split into segments, which are not put together")
    if record.http_headers is None:
        raise MalformedMessage(f"no HTTP response in the record, or header fields of more than {HEAD_BYTES >> 20} MiB")
    status, reason = parse_status_line(f"HTTP/1.1 {record.http_headers.statusline}".encode("latin-1", "replace"))
    try:
        body = record.raw_stream.read(BODY_BYTES + 1)
    except Exception as error:  # as in _records
        raise MalformedMessage(f"its body cannot be read: {error}") from None
    response = Response(status, reason, tuple(record.http_headers.headers), body)
    if len(body) <= BODY_BYTES:
        with_true_length(method, response)
    return Exchange(method, url, response, authority_of(url), _time_ms(record), request_headers=request_headers)


def _time_ms(record: Any) -> float | None:
    try:
        return datetime.fromisoformat(record.rec_headers.get_header("WARC-Date") or "").timestamp() * 1000
    except (ValueError, OverflowError):
        return None
