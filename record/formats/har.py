"""HTTP archives (HAR 1.2) that hold response bodies, as browsers' developer tools save them.

A HAR holds bodies without their content-encoding. They are encoded again as their header says, since a replay needs
the bytes on the wire. A body that cannot be encoded loses that header. A body that
cannot be decoded is written as it is, with the private field `_encoded`.
"""

import base64
import binascii
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from base.bounded import TooLong, parse_json, read_regular
from base.errors import EyelevelError
from base.files import write_file
from base.text import excerpt, printable
from record.assemble import assemble
from record.connections import Connection
from record.content import UndecodableContent, decode, encode
from record.http1 import Headers, MalformedMessage, Response, without_fields
from record.intake import Intake
from record.layout import authority_of
from record.limits import BODY_BYTES
from record.live import LiveLoad, LiveLoads, http_version
from record.site import Exchange, Recording, Site
from record.urls import normal_url

NAME = "har"
DESCRIPTION = "an HTTP archive with bodies"
ENDINGS = (".har",)

# The times of a site count from its first request. A HAR has dates, so a site is written as if recorded then.
EPOCH = datetime.fromtimestamp(0, UTC).isoformat(timespec="milliseconds")
PAGE = "page_1"
ENCODED = "_encoded"

# The name of an archive's time of the load event here (`dataset.metrics`). No page takes a day.
PLT = "plt"
LONGEST_LOAD_MS = 86_400_000
# Chromium's word for a version that it does not know.
UNKNOWN = "unknown"

# The file is read into memory. Bodies in it are a third longer than in a site.
FILE_BYTES = 1 << 30

# Where the handshake of TCP took less than this share of TLS's, the browser had begun it before it counted: one takes a
# round trip, the other one or two, and some computing.
LEAST_SHARE_OF_TLS, COMPUTING_MS = 0.25, 20.0
# HTTP versions as archives call them; what is said of QUIC comes first.
ALPNS = (("quic", "h3"), ("h3", "h3"), ("http/3", "h3"), ("h2", "h2"), ("http/2", "h2"), ("http/1", "http/1.1"))
ALPN = "_alpn"

# The number of pages that an error names.
LISTED = 5
NOT_OF_THE_PAGE = 3

SKIPPED_SCHEMES = ("data:", "blob:", "chrome-extension:", "about:", "ws:", "wss:", "file:")


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.suffix in ENDINGS


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the first page of the archive `path` that has a document. All others are named as left out.
    Raises EyelevelError."""
    return _recording(path, None, keep_cookies=keep_cookies)


def read_page(path: Path, url: str, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the page at `url`: the page of this title, else the first that began with it, else the first
    that asked for it. Raises EyelevelError, with the pages that there are, when none did."""
    return _recording(path, url, keep_cookies=keep_cookies)


def _recording(path: Path, url: str | None, *, keep_cookies: bool) -> Recording:
    log, entries = _log_and_entries(path)
    pages = _entries_by_page(log, entries)
    page = _first_page(pages) if url is None else _page_at(url, pages, log)
    intake = Intake(path.name, keep_cookies=keep_cookies)
    programs = [one.get("name") for one in (log.get("creator"), log.get("browser")) if isinstance(one, dict)]
    tls_is_beside = any(isinstance(name, str) and "firefox" in name.lower() for name in programs)
    for entry in pages.get(page, ()):
        intake.take(_url_of(entry), partial(_exchange, entry))
        if connection := _connection(entry, tls_is_beside=tls_is_beside):
            intake.connect(connection)
    for entry in (entry for other in pages if other != page for entry in pages[other]):
        intake.leave_out(_url_of(entry), "belongs to another page of the archive, which --url chooses")
    creator = log.get("creator")
    creator = creator if isinstance(creator, dict) else {}
    recorder = {"tool": "har", "creator": f"{creator.get('name', 'unknown')} {creator.get('version', '')}".strip()}
    recording = assemble(intake, recorder, listed=_titles(log, page))
    return replace(recording, live=_live(log, page, pages.get(page, [])))


def _entries_by_page(log: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries that a server answered, by the id of their page, in the order in which the archive lists its pages;
    those that it does not list follow. An entry of no page is one of the page that began first."""
    first_page = next((page for entry in entries if (page := _page_of(entry))), "")
    pages: dict[str, list[dict[str, Any]]] = {id_: [] for id_ in map(_id_of, _described_pages(log))}
    for entry in entries:
        if not _url_of(entry).startswith(SKIPPED_SCHEMES):
            pages.setdefault(_page_of(entry) or first_page, []).append(entry)
    return {page: requests for page, requests in pages.items() if requests}


def _first_page(pages: dict[str, list[dict[str, Any]]]) -> str:
    """The first of the `pages` that has an HTML document with its body: before it may be a browser's empty page, or one
    of which the tools have lost what came."""
    return next((page for page in pages if any(map(_is_document, pages[page]))), next(iter(pages), ""))


def _is_document(entry: dict[str, Any]) -> bool:
    content = _response_of(entry).get("content")
    return (
        isinstance(content, dict) and bool(content.get("text")) and "html" in str(content.get("mimeType", "")).lower()
    )


def _page_at(url: str, pages: dict[str, list[dict[str, Any]]], log: dict[str, Any]) -> str:
    """The page that `url` means (`read_page`)."""
    wanted = _comparable(url)

    def rank(page: str) -> int:
        if wanted in map(_comparable, _titles(log, page)):
            return 0
        urls = [_comparable(_url_of(entry)) for entry in pages[page]]
        return 1 if wanted == urls[0] else 2 if wanted in urls else NOT_OF_THE_PAGE

    page = min(pages, key=rank, default=None) if wanted else None
    if page is None or rank(page) == NOT_OF_THE_PAGE:
        begins = ", ".join(excerpt(_url_of(requests[0])) for requests in list(pages.values())[:LISTED])
        raise EyelevelError(
            f"--url: {excerpt(url)} was not recorded; the archive's pages begin with: {begins or 'none'}"
        )
    return page


def _comparable(url: str) -> str:
    """`url` without its scheme, which a site changes; "" for what is none, such as a title."""
    try:
        return normal_url(url).partition("://")[2]
    except ValueError:
        return ""


def _log_and_entries(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The archive's log, and its entries in the order they began."""
    try:
        document = read_regular(path, FILE_BYTES, follow=True)
    except TooLong:
        raise EyelevelError(
            f"{path} is larger than {FILE_BYTES >> 20} MiB, more than a page's load; export one page"
        ) from None
    try:
        log = parse_json(document)["log"]
        entries = [entry for entry in log["entries"] if isinstance(entry, dict)]
        return log, sorted(entries, key=_time_ms)
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise EyelevelError(f"{path} is no HAR file ({printable(repr(error))})") from None


def _titles(log: dict[str, Any], page: str) -> list[str]:
    """The titles of the page `page` in the archive: in Chromium's archives and in ours, its URL."""
    return [str(one.get("title", "")) for one in _listed_pages(log, page)]


def _listed_pages(log: dict[str, Any], page: str) -> list[dict[str, Any]]:
    """The archive's descriptions of the page `page`."""
    return [one for one in _described_pages(log) if _id_of(one) == page]


def _described_pages(log: dict[str, Any]) -> list[dict[str, Any]]:
    """The archive's descriptions of its pages, in its order."""
    pages = log.get("pages")
    return [one for one in pages if isinstance(one, dict)] if isinstance(pages, list) else []


def _id_of(page: dict[str, Any]) -> str:
    return str(page.get("id", ""))


def _live(log: dict[str, Any], page: str, entries: list[dict[str, Any]]) -> LiveLoads | None:
    """The load that the archive is of, whose `entries` these are, if it says when the page had loaded. It is one load,
    behind a network that nobody has named."""
    described = next(iter(_listed_pages(log, page)), {})
    timings = described.get("pageTimings")
    plt_ms = timings.get("onLoad") if isinstance(timings, dict) else None
    if isinstance(plt_ms, bool) or not isinstance(plt_ms, int | float) or not 0 < plt_ms < LONGEST_LOAD_MS:
        return None
    versions = [str(entry["response"].get("httpVersion") or "") for entry in entries if _response_of(entry)]
    protocols = dict(Counter(http_version(version) for version in versions if version and version != UNKNOWN))
    browser = log.get("browser") if isinstance(log.get("browser"), dict) else log.get("creator")
    named = browser if isinstance(browser, dict) else {}
    name = excerpt(f"{named.get('name', 'unknown')} {named.get('version', '')}".strip())
    return LiveLoads(name, excerpt(str(described.get("startedDateTime", ""))), (LiveLoad({PLT: plt_ms}, protocols),))


def _response_of(entry: dict[str, Any]) -> dict[str, Any]:
    response = entry.get("response")
    return response if isinstance(response, dict) else {}


def _page_of(entry: dict[str, Any]) -> str:
    return str(entry.get("pageref", ""))


def _url_of(entry: dict[str, Any]) -> str:
    request = entry.get("request")
    return str(request.get("url", "")) if isinstance(request, dict) else ""


def write(site: Site, path: Path) -> None:
    """Write `site` as a HAR file; bodies are decoded, as tools that read HAR files expect."""
    connections: dict[tuple[str, str], list[Connection]] = defaultdict(list)
    for connection in site.recorded_connections():
        connections[connection.server, connection.host].append(connection)
    entries = []
    for exchange in map(site.recorded, site.exchanges):
        begun = connections[exchange.recorded_ip, authority_of(exchange.url).partition(":")[0]]
        # Which exchange a connection was begun for is not kept; a HAR has no other place for it.
        entries.append(_entry(exchange, site, begun.pop(0) if begun else None))
    page = {"startedDateTime": EPOCH, "id": PAGE, "title": site.url, "pageTimings": {}}
    creator = {"name": "Eyelevel", "version": "1"}
    log = {"version": "1.2", "creator": creator, "pages": [page], "entries": entries}
    write_file(path, json.dumps({"log": log}, indent=1) + "\n")


def _entry(exchange: Exchange, site: Site, begun: Connection | None) -> dict[str, Any]:
    response = exchange.response
    started = datetime.fromtimestamp((exchange.started_ms or 0) / 1000, UTC)
    return {
        "pageref": PAGE,
        "startedDateTime": started.isoformat(timespec="microseconds"),
        "time": exchange.ttfb_ms or 0,
        "request": {
            "method": exchange.method,
            "url": exchange.url,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(site.request_headers(exchange.url)),
            "queryString": [],
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": response.status,
            "statusText": response.reason,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(response.headers),
            "content": _content(response),
            "redirectURL": response.header("location") or "",
            "headersSize": -1,
            "bodySize": len(response.body),
        },
        "cache": {},
        "timings": {
            "send": 0,
            "wait": -1 if exchange.ttfb_ms is None else exchange.ttfb_ms,
            "receive": 0,
            **(_handshakes(begun) if begun else {}),
        },
        "serverIPAddress": exchange.recorded_ip,
        **({ALPN: begun.alpn or ""} if begun else {}),
    }


def _handshakes(connection: Connection) -> dict[str, float]:
    """The timings of a connection's beginning: what a HAR calls `connect` has TLS in it."""
    handshake_ms, tls_ms = connection.handshake_ms, connection.tls_ms
    if connection.alpn == "h3" and handshake_ms is not None:
        return {"connect": handshake_ms, "ssl": handshake_ms}
    if handshake_ms is None:
        return {}
    return {"connect": round(handshake_ms + (tls_ms or 0), 3), "ssl": -1 if tls_ms is None else tls_ms}


def _connection(entry: dict[str, Any], *, tls_is_beside: bool) -> Connection | None:
    """The connection that was begun for `entry`, if one was, and the archive says how long that took.

    `connect` has TLS in it (HAR 1.2), except where `tls_is_beside`, as in Firefox's archives. Both are the same
    handshake with QUIC.
    """
    try:
        timings, address = entry["timings"], entry["serverIPAddress"]
        connect_ms, tls_ms = float(timings["connect"]), float(timings.get("ssl") or -1)
        version = str(entry.get(ALPN, entry["response"].get("httpVersion", ""))).lower()
        host = authority_of(normal_url(entry["request"]["url"])).partition(":")[0]
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    alpn = next((alpn for name, alpn in ALPNS if name in version), None)
    if not connect_ms > 0 or not address:
        return None
    if alpn == "h3":
        return Connection(str(address), host, round(connect_ms, 3), alpn=alpn)
    if tls_ms < 0:
        return Connection(str(address), host, round(connect_ms, 3))
    tcp_ms = round(connect_ms if tls_is_beside or tls_ms > connect_ms else connect_ms - tls_ms, 3)
    is_whole = tcp_ms >= LEAST_SHARE_OF_TLS * (tls_ms - COMPUTING_MS)
    return Connection(str(address), host, tcp_ms if is_whole else None, round(tls_ms, 3), alpn)


def _pairs(headers: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def _content(response: Response) -> dict[str, Any]:
    content: dict[str, Any] = {}
    try:
        plain = decode(response.body, response.encoding) if response.body else b""
    except UndecodableContent:
        plain = response.body
        content[ENCODED] = True
    content |= {"size": len(plain), "mimeType": response.header("content-type") or ""}
    if plain:
        content |= {"text": base64.b64encode(plain).decode(), "encoding": "base64"}
    return content


def _exchange(entry: dict[str, Any]) -> Exchange:
    try:
        request, response = entry["request"], entry["response"]
        url = normal_url(request["url"])
        return Exchange(
            method=str(request["method"]),
            url=url,
            response=_response(response),
            recorded_ip=str(entry.get("serverIPAddress") or f"unknown server of {authority_of(url)}"),
            started_ms=_time_ms(entry),
            ttfb_ms=(entry.get("timings") or {}).get("wait"),
            request_headers=_headers(request["headers"]),
        )
    except MalformedMessage:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise MalformedMessage(f"its entry is broken ({error!r})") from None


def _headers(listed: list[dict[str, Any]]) -> Headers:
    return tuple((str(field["name"]), str(field["value"])) for field in listed if not field["name"].startswith(":"))


def _without_pseudo_header_fields(headers: Headers, status: int, version: str) -> Headers:
    """`headers` without those of HTTP/2 and SPDY, which some tools list as if they were header fields: `status: 200`.

    The tools join a real field of that name to it: `status: 200, 200 OK`.
    """
    if version.lower().startswith("http/1"):
        return headers
    fields = ((name, re.sub(rf"^{status}(, |$)", "", value) if name == "status" else value) for name, value in headers)
    return tuple((name, value) for name, value in fields if name != "version" and not (name == "status" and not value))


def _response(response: dict[str, Any]) -> Response:
    status = int(response["status"])
    headers = _without_pseudo_header_fields(
        _headers(response["headers"]), status, str(response.get("httpVersion", "HTTP/1.1"))
    )
    content = response.get("content") or {}
    plain = Response(status, str(response.get("statusText") or ""), headers, _content_of(content, status))
    if content.get(ENCODED) or len(plain.body) > BODY_BYTES:
        return plain
    try:
        return plain._replace(body=encode(plain.body, plain.encoding))
    except UndecodableContent:
        return plain._replace(headers=without_fields(headers, {"content-encoding"}))


def _content_of(content: dict[str, Any], status: int) -> bytes:
    text = content.get("text")
    if not text:
        if content.get("size", 0) > 0 and status // 100 == 2 and status != 204:
            raise MalformedMessage("the archive does not hold its body")
        return b""
    if content.get("encoding") != "base64":
        # Some tools write a lone surrogate for a byte that they could not decode.
        return bytes(text.encode("utf-8", "replace"))
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MalformedMessage(f"its body is not valid base64: {error}") from None


def _time_ms(entry: dict[str, Any]) -> float:
    """When the entry began, in ms."""
    return datetime.fromisoformat(entry["startedDateTime"]).timestamp() * 1000
