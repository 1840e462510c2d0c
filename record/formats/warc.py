"""Web archives (WARC, ISO 28500): responses in the order they came, each with its request.

Where a record has its server's address (`WARC-IP-Address`), that is its server; else every host gets a server of its
own. Crawlers often remove the chunk framing but not the header field that announces it.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, redirect_stderr
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.statusandheaders import StatusAndHeadersParser

from base.bounded import open_regular, parse_json
from record.assemble import assemble
from record.http1 import Headers, MalformedMessage, Response, parse_status_line
from record.intake import Intake, with_true_length
from record.layout import authority_of
from record.limits import BODY_BYTES, EXCHANGES, HEAD_BYTES, SITE_BYTES, TEXT_BYTES
from record.site import Exchange, Recording, kept_request_headers
from record.urls import normal_url

NAME = "warc"
DESCRIPTION = "a web archive"
ENDINGS = (".warc", ".warc.gz")

# A record whose body is another's.
REVISIT = "revisit"
# Records in which archives list their pages, and the name of Browsertrix's.
LISTING_RECORDS = ("warcinfo", "metadata", "resource")
PAGE_INFO = "urn:pageinfo:"
# The note that sites of web archives have about servers whose addresses were not recorded.
SERVERS = {"server_ips": "not recorded; one for each host"}

# The most that packed archives may hold together: a site's bodies, and as much that is no part of one.
ARCHIVE_BYTES = 2 * SITE_BYTES
# Header lines of all records. Each costs more time than its letters do.
LINES_BYTES, LINE_COST_BYTES = 2 * TEXT_BYTES, 64
LINES_TOO_LONG = "its records' header fields are longer than those of any page"

# It warns on standard error of what is odd in an archive. Whatever cannot be imported is named by us.
logging.getLogger("warcio").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Archive:
    """One web archive: what it is called in messages, and how it is opened, each time from its beginning."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.name.endswith(ENDINGS)


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the archive `path`. Broken records are left out and named. Raises EyelevelError."""
    intake = Intake(path.name, keep_cookies=keep_cookies)
    archives = [Archive(path.name, lambda: os.fdopen(open_regular(path, follow=True), "rb"))]
    take(intake, archives)
    return assemble(intake, {"tool": NAME, **servers(intake)}, listed=listed_pages(archives))


def servers(intake: Intake) -> dict[str, str]:
    """The note that the site of these exchanges has about its servers; none if all addresses were recorded."""
    return SERVERS if any(exchange.recorded_ip == authority_of(exchange.url) for exchange in intake.exchanges) else {}


def take(intake: Intake, archives: Sequence[Archive]) -> None:
    """Let `intake` take the exchanges of `archives`, which are of one recording."""
    # Requests are read first: in the archive they may follow their responses, which are too large to be kept.
    requests: dict[str | None, tuple[str, Headers]] = {}
    originals = _Originals()
    for record in _records(archives, "request", REVISIT):
        if record.rec_type == REVISIT:
            originals.want(record)
        elif record.http_headers and len(requests) < EXCHANGES:
            headers = kept_request_headers(tuple(record.http_headers.headers))
            requests[record.rec_headers.get_header("WARC-Concurrent-To")] = (record.http_headers.protocol, headers)
    early: list[tuple[str, Callable[[], Exchange]]] = []
    for record in _records(archives, "response", REVISIT, intake=intake):
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        method, headers = requests.get(record.rec_headers.get_header("WARC-Record-ID"), ("GET", ()))
        exchange = partial(_exchange, record, url, method, headers, originals)
        # The original of a repeating record may follow it, in another file of a collection for example.
        if record.rec_type == REVISIT and not originals.has(record) and len(early) < EXCHANGES:
            early.append((url, exchange))
        else:
            intake.take(url, exchange)
    for url, repeated in early:
        intake.take(url, repeated)


class _Originals:
    """The responses whose bodies other records repeat (`revisit`, WARC 1.1, section 6.7)."""

    def __init__(self) -> None:
        # By record, by the body's digest, and by URL and date: the response and its body's digest.
        self._kept: dict[tuple[str, ...], tuple[Response, str] | None] = {}

    def want(self, revisit: Any) -> None:
        """Keep what this record repeats, once it comes."""
        if len(self._kept) < EXCHANGES:
            self._kept.update(dict.fromkeys(self._names_of_original(revisit)))

    def keep(self, record: Any, response: Response) -> None:
        """Keep `response` if it is repeated."""
        url, date = (_field(record, f"WARC-{name}") for name in ("Target-URI", "Date"))
        digest = _field(record, "WARC-Payload-Digest")
        for key in (("id", _field(record, "WARC-Record-ID")), ("digest", digest), ("url", url, date), ("url", url)):
            if key in self._kept:
                self._kept[key] = (response, digest)

    def has(self, revisit: Any) -> bool:
        """Whether what this record repeats has come."""
        return any(self._kept.get(key) for key in self._names_of_original(revisit))

    def of(self, revisit: Any) -> Response:
        """The response that this record repeats. Raises MalformedMessage when there is none, or it has another body."""
        kept = next((kept for key in self._names_of_original(revisit) if (kept := self._kept.get(key))), None)
        if kept is None:
            raise MalformedMessage("it repeats a response that is not in the archive")
        response, digest = kept
        if digest and digest != (_field(revisit, "WARC-Payload-Digest") or digest):
            raise MalformedMessage("it repeats a response whose body has another digest than it says")
        return response

    @staticmethod
    def _names_of_original(revisit: Any) -> list[tuple[str, ...]]:
        """The names of the record that `revisit` repeats; its URL alone only where `revisit` has no date."""
        url, date = (_field(revisit, f"WARC-Refers-To-{name}") for name in ("Target-URI", "Date"))
        names = [("id", _field(revisit, "WARC-Refers-To")), ("digest", _field(revisit, "WARC-Payload-Digest"))]
        return [name for name in [*names, ("url", url, date) if date else ("url", url)] if name[1]]


def _field(record: Any, name: str) -> str:
    """A field of a record's own; "" without it."""
    return record.rec_headers.get_header(name) or ""


def listed_pages(archives: Sequence[Archive]) -> list[str]:
    """The URLs of the pages that the archives themselves list, if they do.

    Webrecorder lists them in `warcinfo` records, Browsertrix has a record `urn:pageinfo:URL` for each, and Heritrix
    writes `metadata` records, in which `seed` marks the URLs that it began with.
    """
    pages: list[str] = []
    for record in _records(archives, *LISTING_RECORDS):
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
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
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


class _Bounds:
    """How much was read of all archives. Ends reading where they hold more than any recording of a page."""

    def __init__(self) -> None:
        self.packed_bytes = self.bytes = self.lines_bytes = 0

    def count(self, *, packed_bytes: int = 0, plain_bytes: int = 0, lines_bytes: int = 0) -> None:
        """Raises ArchiveLoadFailed."""
        self.packed_bytes += packed_bytes
        self.bytes += plain_bytes
        self.lines_bytes += lines_bytes
        if max(self.packed_bytes, self.bytes) > ARCHIVE_BYTES:
            raise ArchiveLoadFailed(f"it holds more than {ARCHIVE_BYTES >> 30} GiB")
        if self.lines_bytes > LINES_BYTES:
            raise ArchiveLoadFailed(LINES_TOO_LONG)


class _Counted:
    """Counts the bytes read from `stream`, packed or not: parts that hold nothing take time, too."""

    def __init__(self, stream: IO[bytes], bounds: _Bounds) -> None:
        self.stream = stream
        self.bounds = bounds
        self.tell = stream.tell

    def read(self, length: int = -1) -> bytes:
        part = self.stream.read(length)
        self.bounds.count(packed_bytes=len(part))
        return part


class _Reader(DecompressingBufferedReader):  # type: ignore[misc]
    """Reads an archive, packed or not, within `bounds`."""

    def __init__(self, stream: Any, bounds: _Bounds) -> None:
        super().__init__(stream)
        self.bounds = bounds

    def read(self, length: int | None = None) -> bytes:
        part: bytes = super().read(length)
        self.bounds.count(plain_bytes=len(part))
        return part

    def readline(self, length: int | None = None) -> bytes:
        limit = HEAD_BYTES if length is None else length
        line = b""
        # warcio returns a part of a line that is longer than its buffer.
        while len(line) < limit and not line.endswith(b"\n") and (part := super().readline(limit - len(line))):
            line += part
        self.bounds.count(plain_bytes=len(line), lines_bytes=len(line) + LINE_COST_BYTES)
        if length is None and len(line) >= HEAD_BYTES:
            raise ArchiveLoadFailed(LINES_TOO_LONG)
        return line


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


def _iterator(stream: IO[bytes], bounds: _Bounds) -> ArchiveIterator:
    source = _Counted(stream, bounds)
    records = ArchiveIterator(source)
    records.reader = _Reader(source, bounds)
    loader = records.loader
    loader.warc_parser = _Parser(loader.WARC_TYPES)
    loader.http_parser = _Parser(loader.HTTP_TYPES, verify=False)
    loader.http_req_parser = _Parser(loader.HTTP_VERBS, verify=False)
    return records


def _records(archives: Iterable[Archive], *kinds: str, intake: Intake | None = None) -> Iterator[Any]:
    """The archives' records of these kinds. For each archive that breaks off, `intake` gets a line about it.

    The content of a record must be read before the next record is.
    """
    bounds = _Bounds()
    for archive in archives:
        with archive.open() as stream:
            try:
                yield from (record for record in _records_of(stream, bounds) if record.rec_type in kinds)
            except ArchiveLoadFailed as error:
                if intake:
                    intake.leave_out(archive.name, f"it breaks off: {str(error)[:200]}")


def _records_of(stream: IO[bytes], bounds: _Bounds) -> Iterator[Any]:
    """The records of one archive. Raises ArchiveLoadFailed where it breaks off."""
    with Path(os.devnull).open("w") as nowhere:
        records = iter(_iterator(stream, bounds))
        while True:
            try:
                with redirect_stderr(nowhere):
                    record = next(records)
            except StopIteration:
                return
            # In broken archives warcio raises errors of all kinds, from those of its parser to those of zlib.
            except Exception as error:
                raise ArchiveLoadFailed(str(error)) from None
            yield record


def _exchange(record: Any, url: str, method: str, request_headers: Headers, originals: _Originals) -> Exchange:
    url = normal_url(url)
    response = _repeated(record, originals) if record.rec_type == REVISIT else _response(record, method)
    originals.keep(record, response)
    return Exchange(method, url, response, _server(record, url), _time_ms(record), request_headers=request_headers)


def _server(record: Any, url: str) -> str:
    """The address of the server that sent the response of `url`; the authority where it is not recorded."""
    try:
        address = ip_address(_field(record, "WARC-IP-Address").strip())
    except ValueError:
        return authority_of(url)
    # The address of a response that came through a proxy on the crawler's machine is the proxy's.
    return authority_of(url) if address.is_loopback or address.is_unspecified else str(address)


def _repeated(revisit: Any, originals: _Originals) -> Response:
    """The response of a record that repeats another's body; its own head, where it has one that has a body."""
    original = originals.of(revisit)
    if revisit.http_headers is None or (head := _head(revisit)).status == HTTPStatus.NOT_MODIFIED:
        return original
    return head._replace(body=original.body)


def _response(record: Any, method: str) -> Response:
    """The response in a record. Raises MalformedMessage."""
    if record.rec_headers.get_header("WARC-Segment-Number") is not None:
        raise MalformedMessage("its response is split into segments, which are not put together")
    if record.http_headers is None:
        raise MalformedMessage(f"no HTTP response in the record, or header fields of more than {HEAD_BYTES >> 20} MiB")
    try:
        # warcio prints the errors of broken archives on standard error, and raises them as well.
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            body = record.raw_stream.read(BODY_BYTES + 1)
    except Exception as error:  # as in _records
        raise MalformedMessage(f"its body cannot be read: {error}") from None
    response = _head(record)._replace(body=body)
    if len(body) <= BODY_BYTES:
        with_true_length(method, response)
    return response


def _head(record: Any) -> Response:
    """The status and the header fields in a record. Raises MalformedMessage."""
    status, reason = parse_status_line(f"HTTP/1.1 {record.http_headers.statusline}".encode("latin-1", "replace"))
    return Response(status, reason, tuple(record.http_headers.headers), b"")


def _time_ms(record: Any) -> float | None:
    try:
        return datetime.fromisoformat(record.rec_headers.get_header("WARC-Date") or "").timestamp() * 1000
    except (ValueError, OverflowError):
        return None
