"""HTTP archives (HAR 1.2) that contain response bodies, as browsers' developer tools save them.

A HAR contains bodies without their content-encoding, and text as UTF-8 whatever its encoding was. Both are undone,
since a replay needs the bytes on the wire; where that is impossible, the header field is changed, and a line in
`skipped` says so. In files that we write, bodies have the private field `_encoded`: true if a body is as it was sent,
because it cannot be decoded.
"""

import base64
import binascii
import json
import math
import re
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from base.bounded import TooLong, parse_json, read_regular
from base.errors import EyelevelError
from base.files import write_file
from base.text import excerpt, printable
from record.assemble import assemble
from record.charsets import charset_of, encoded, with_charset
from record.connections import Connection
from record.content import Budget, UndecodableContent, codings, decode, encode, is_packed
from record.http1 import LENGTH, Headers, MalformedMessage, Response, first_value, without_fields
from record.intake import Intake
from record.layout import authority_of
from record.limits import BODY_BYTES
from record.live import LiveLoad, LiveLoads, http_version
from record.site import Exchange, Recording, Site
from record.urls import normal_url

NAME = "har"
DESCRIPTION = "an HTTP archive with bodies"
ENDINGS = (".har",)

# A site's times count from its first request. A HAR has dates, so it is written as if the first request had been at
# this time.
EPOCH = datetime.fromtimestamp(0, UTC).isoformat(timespec="milliseconds")
PAGE = "page_1"
ENCODED = "_encoded"

# Our name for an archive's time of the load event (`dataset.metrics`), and its limit: no page takes a day.
PLT = "plt"
LONGEST_LOAD_MS = 86_400_000
# Chromium's word for a protocol version that it does not know.
UNKNOWN = "unknown"

# The file is read into memory. Bodies in it are a third longer than in a site.
FILE_BYTES = 1 << 30

# The TCP handshake takes one round trip; TLS takes one or two, and some computing. If TCP took less than this share of
# TLS's time, the browser began the TCP handshake before it measured.
LEAST_SHARE_OF_TLS, COMPUTING_MS = 0.25, 20.0
# Parts of the names of HTTP versions in archives → ALPN. QUIC comes first.
ALPNS = (("quic", "h3"), ("h3", "h3"), ("http/3", "h3"), ("h2", "h2"), ("http/2", "h2"), ("http/1", "http/1.1"))
ALPN = "_alpn"

# An error names at most this many pages.
LISTED = 5
NOT_OF_THE_PAGE = 3

SKIPPED_SCHEMES = ("data:", "blob:", "chrome-extension:", "about:", "file:")
WEBSOCKET_SCHEMES = ("ws:", "wss:")
UTF8 = "utf-8"
# Firefox truncates bodies at this length by default.
FIREFOX_BODY_BYTES = 1 << 20


def recognises(path: Path) -> bool:
    """Whether `path` is a recording in this format."""
    return path.is_file() and path.suffix in ENDINGS


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the first page in the archive `path` that has a document; all others are named as left out.
    Raises EyelevelError."""
    return _recording(path, None, keep_cookies=keep_cookies)


def read_page(path: Path, url: str, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the page at `url`: the page with this title; otherwise the first that began with this URL;
    otherwise the first that requested it. Raises EyelevelError, which lists the archive's pages, when there is none."""
    return _recording(path, url, keep_cookies=keep_cookies)


def _recording(path: Path, url: str | None, *, keep_cookies: bool) -> Recording:
    log, entries = _log_and_entries(path)
    pages = _entries_by_page(log, entries)
    page = _first_page(pages) if url is None else _page_at(url, pages, log)
    intake = Intake(path.name, keep_cookies=keep_cookies)
    programs = [one.get("name") for one in (log.get("creator"), log.get("browser")) if isinstance(one, dict)]
    tls_is_beside = any(isinstance(name, str) and "firefox" in name.lower() for name in programs)
    in_utf8 = all(_charset(entry) == UTF8 for entry in entries if _is_document(entry))
    for entry in pages.get(page, ()):
        changes: list[str] = []
        if intake.take(_url_of(entry), partial(_exchange, entry, changes, intake.budget, in_utf8=in_utf8)):
            for change in changes:
                intake.change(_url_of(entry), change)
        if connection := _connection(entry, tls_is_beside=tls_is_beside):
            intake.connect(connection)
    for entry in (entry for other in pages if other != page for entry in pages[other]):
        intake.leave_out(_url_of(entry), "belongs to another page of the archive, which --url chooses")
    if others := len(log["entries"]) - len(entries):
        intake.leave_out(f"{others} of the archive's entries", "are no objects")
    creator = log.get("creator")
    creator = creator if isinstance(creator, dict) else {}
    recorder = {"tool": "har", "creator": f"{creator.get('name', 'unknown')} {creator.get('version', '')}".strip()}
    recording = assemble(intake, recorder, listed=_titles(log, page))
    return replace(recording, live=_live(log, page, pages.get(page, [])))


def _entries_by_page(log: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Page id → the entries that a server answered. Pages are in the order in which the archive lists them; unlisted
    ones follow. An entry without a page belongs to the page that began first."""
    first_page = next((page for entry in entries if (page := _page_of(entry))), "")
    pages: dict[str, list[dict[str, Any]]] = {id_: [] for id_ in map(_id_of, _described_pages(log))}
    for entry in entries:
        if not _url_of(entry).startswith(SKIPPED_SCHEMES):
            pages.setdefault(_page_of(entry) or first_page, []).append(entry)
    return {page: requests for page, requests in pages.items() if requests}


def _first_page(pages: dict[str, list[dict[str, Any]]]) -> str:
    """The first of the `pages` that has an HTML document with its body. Earlier ones may be a browser's empty page, or
    a page whose content the tools have lost."""
    return next((page for page in pages if any(map(_is_document, pages[page]))), next(iter(pages), ""))


def _is_document(entry: dict[str, Any]) -> bool:
    content = _response_of(entry).get("content")
    return (
        isinstance(content, dict) and bool(content.get("text")) and "html" in str(content.get("mimeType", "")).lower()
    )


def _page_at(url: str, pages: dict[str, list[dict[str, Any]]], log: dict[str, Any]) -> str:
    """The page that `url` means (see `read_page`)."""
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
    """`url` without its scheme, which a site changes; "" for a text that is no URL, such as a title."""
    try:
        return normal_url(url).partition("://")[2]
    except ValueError:
        return ""


def _log_and_entries(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The archive's log, and its entries in the order in which they began."""
    try:
        document = read_regular(path, FILE_BYTES, follow=True)
    except TooLong:
        raise EyelevelError(
            f"{path} is larger than {FILE_BYTES >> 20} MiB, more than a page's load; export one page"
        ) from None
    try:
        log = parse_json(document)["log"]
        entries = [entry for entry in log["entries"] if isinstance(entry, dict)]
    except ValueError as error:
        raise EyelevelError(f"{path} is not a HAR file: {printable(str(error))}") from None
    except (LookupError, TypeError):
        raise EyelevelError(f"{path} is not a HAR file: it has no list 'entries' in an object 'log'") from None
    # An entry without a time stays after the entry before it.
    time_ms, times_ms = -math.inf, []
    for entry in entries:
        own_ms = _time_ms(entry)
        time_ms = time_ms if own_ms is None else own_ms
        times_ms.append(time_ms)
    in_order = sorted(zip(times_ms, entries, strict=True), key=itemgetter(0))
    return log, [entry for _, entry in in_order]


def _titles(log: dict[str, Any], page: str) -> list[str]:
    """The titles of the page `page` in the archive. In Chromium's archives and in ours, the title is the page's URL."""
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
    """The archive's own load as a live load, with these `entries`, if it has the time of the load event. It is a single
    load, on a network whose name is unknown."""
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
    return str(entry.get("pageref") or "")


def _url_of(entry: dict[str, Any]) -> str:
    """The URL of the request, as it was sent if that is known; "" if there is none.

    Browsertime escapes characters that Chromium sends as they are, such as `{` in a query. Over HTTP/2 and HTTP/3, the
    field `:path` has what was sent.
    """
    request = entry.get("request")
    if not isinstance(request, dict):
        return ""
    url, fields = str(request.get("url", "")), request.get("headers")
    server, fields = re.match("https?://[^/?#]*", url), fields if isinstance(fields, list) else []
    for field in fields:
        if server and isinstance(field, dict) and field.get("name") == ":path" and isinstance(field.get("value"), str):
            sent = server[0] + field["value"]
            return sent if unquote(sent) == unquote(url.partition("#")[0]) else url
    return url


def write(site: Site, path: Path) -> None:
    """Write `site` as a HAR file; bodies are decoded, as programs that read HAR files expect."""
    connections: dict[tuple[str, str], list[Connection]] = defaultdict(list)
    for connection in site.recorded_connections():
        connections[connection.server, connection.host].append(connection)
    entries = []
    for exchange in map(site.recorded, site.exchanges):
        begun = connections[exchange.recorded_ip, authority_of(exchange.url).partition(":")[0].removesuffix(".")]
        # A HAR stores connections only with entries, but a site does not know for which exchange a connection was
        # opened. So the first exchanges of each host get the connections.
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
    """The timings of a connection's beginning; in a HAR, `connect` includes TLS."""
    handshake_ms, tls_ms = connection.handshake_ms, connection.tls_ms
    if connection.alpn == "h3" and handshake_ms is not None:
        return {"connect": handshake_ms, "ssl": handshake_ms}
    if handshake_ms is None:
        return {}
    return {"connect": round(handshake_ms + (tls_ms or 0), 3), "ssl": -1 if tls_ms is None else tls_ms}


def _connection(entry: dict[str, Any], *, tls_is_beside: bool) -> Connection | None:
    """The connection that was opened for `entry`, if there was one and the archive has its times.

    `connect` includes TLS (HAR 1.2) unless `tls_is_beside`: in Firefox's archives it does not. With QUIC, there
    is a single handshake, which includes TLS.
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
    content: dict[str, Any] = {ENCODED: False}
    try:
        plain = decode(response.body, response.encoding)
    except UndecodableContent:
        plain = response.body
        content[ENCODED] = True
    content |= {"size": len(plain), "mimeType": response.header("content-type") or ""}
    if plain:
        content |= {"text": base64.b64encode(plain).decode(), "encoding": "base64"}
    return content


def _exchange(entry: dict[str, Any], changes: list[str], budget: Budget, *, in_utf8: bool) -> Exchange:
    """The exchange of `entry`. A description of each way in which it differs from what was sent is appended to
    `changes`. `in_utf8`: whether documents are in UTF-8."""
    try:
        request, response = entry["request"], entry["response"]
        if request["url"].startswith(WEBSOCKET_SCHEMES):
            raise MalformedMessage("is a WebSocket, which cannot be replayed")
        url = normal_url(_url_of(entry))
        method, request_headers = str(request["method"]), _headers(request.get("headers"))
        return Exchange(
            method=method,
            url=url,
            response=_response(response, method, request_headers, changes, budget, in_utf8=in_utf8),
            recorded_ip=str(entry.get("serverIPAddress") or f"unknown server of {authority_of(url)}"),
            started_ms=_time_ms(entry),
            ttfb_ms=(entry.get("timings") or {}).get("wait"),
            request_headers=request_headers,
        )
    except MalformedMessage:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise MalformedMessage(f"its entry is broken ({type(error).__name__}: {error})") from None


def _headers(listed: list[dict[str, Any]] | None) -> Headers:
    return tuple((str(field["name"]), _value(field)) for field in listed or () if not field["name"].startswith(":"))


def _value(field: dict[str, Any]) -> str:
    """A field's value; empty if it has none."""
    value = field.get("value")
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _without_pseudo_header_fields(headers: Headers, status: int, version: str) -> Headers:
    """`headers` without the pseudo-header fields of HTTP/2 and SPDY, such as `status: 200`, which some tools list as
    header fields.

    If there is a real field with the same name, the tools join the two: `status: 200, 200 OK`.
    """
    if version.lower().startswith("http/1"):
        return headers
    fields = ((name, re.sub(rf"^{status}(, |$)", "", value) if name == "status" else value) for name, value in headers)
    return tuple((name, value) for name, value in fields if name != "version" and not (name == "status" and not value))


def _response(
    response: dict[str, Any],
    method: str,
    request_headers: Headers,
    changes: list[str],
    budget: Budget,
    *,
    in_utf8: bool,
) -> Response:
    status = int(response["status"])
    if status == 0:
        why = excerpt(str(response.get("_error") or "blocked, cancelled or failed"))
        raise MalformedMessage(f"was not answered (status 0: {why})")
    headers = _without_pseudo_header_fields(
        _headers(response.get("headers")), status, str(response.get("httpVersion", "HTTP/1.1"))
    )
    content = response.get("content") or {}
    plain = Response(status, str(response.get("statusText") or ""), headers, b"")
    if not content.get("text"):
        _require_no_body(content, method, status, request_headers, changes)
        return plain
    if status == 304:
        plain = _fresh(plain, content)
        changes.append("was answered by 304, since the browser had it, and is sent with its body and status 200")
    plain = _with_content(plain, content, changes, in_utf8=in_utf8)
    if content.get(ENCODED) or len(plain.body) > BODY_BYTES:
        return plain
    names = codings(plain.encoding)
    done = _packed(plain, names, content, budget)
    try:
        return plain._replace(body=encode(plain.body, ", ".join(names[done:])))
    except UndecodableContent:
        changes.append(f"is sent without its content-encoding {excerpt(plain.encoding)}, which cannot be put on")
        return plain._replace(headers=without_fields(plain.headers, {"content-encoding"}))


def _require_no_body(
    content: dict[str, Any], method: str, status: int, request_headers: Headers, changes: list[str]
) -> None:
    """Refuse a response whose body is missing from the archive. Error responses are accepted without their body.

    Raises MalformedMessage.
    """
    if method == "HEAD" or status == 204:
        return
    conditional = any(first_value(request_headers, name) for name in ("if-none-match", "if-modified-since"))
    has_body = _size(content) > 0
    if status == 304 and (conditional or has_body):
        raise MalformedMessage(
            "was answered by 304, since the browser had it, and the archive does not hold its body; save it again with "
            "an empty cache"
        )
    if has_body and status // 100 == 2:
        raise MalformedMessage("the archive does not hold its body; save it with content")
    if has_body and status >= 400:
        changes.append(f"is sent without its body of status {status}, which the archive does not hold")


def _size(content: dict[str, Any]) -> float:
    """The length of a body in bytes, as the archive states it; 0 if it does not."""
    size = content.get("size")
    return size if isinstance(size, int | float) else 0


def _fresh(response: Response, content: dict[str, Any]) -> Response:
    """`response`, which has status 304, as a response with the body."""
    headers = response.headers
    if not response.header("content-type") and content.get("mimeType"):
        headers = (*headers, ("Content-Type", str(content["mimeType"])))
    return response._replace(status=200, reason="OK", headers=headers)


def _packed(response: Response, names: list[str], content: dict[str, Any], budget: Budget) -> int:
    """The number of the response's content-encodings (`names`) that its body still has.

    Some proxies write bodies as they were sent. Our own archives state this in ENCODED, so there is nothing to
    guess (0). Text without base64 is always decoded.
    """
    length = response.header("content-length") or ""
    if ENCODED in content or content.get("encoding") != "base64":
        return 0
    if LENGTH.fullmatch(length) and int(length) != len(response.body):
        return 0
    return next((n for n in range(len(names), 0, -1) if is_packed(response.body, ", ".join(names[:n]), budget)), 0)


def _with_content(response: Response, content: dict[str, Any], changes: list[str], *, in_utf8: bool) -> Response:
    """`response` with the body from its `content`, without its content-encoding."""
    text = content["text"]
    if content.get("encoding") == "base64":
        try:
            body = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise MalformedMessage(f"its body is not valid base64: {error}") from None
        size = len(body)
    else:
        response = _as_sent(response, content, changes, in_utf8=in_utf8)
        body, size = response.body, max(len(response.body), len(text.encode(UTF8, "replace")))
    if FIREFOX_BODY_BYTES <= size < _size(content):
        raise MalformedMessage(f"the archive holds {size:,} of the {_size(content):,} bytes of its body")
    return response._replace(body=body)


def _as_sent(response: Response, content: dict[str, Any], changes: list[str], *, in_utf8: bool) -> Response:
    """`response` with the text of its `content`, in the character encoding that browsers will assume.

    If the text cannot be in the encoding that browsers would assume, the response declares UTF-8.
    """
    text = content["text"]
    kind = response.header("content-type") or ""
    charset = charset_of(kind or str(content.get("mimeType", "")), text)
    is_part = "html" not in kind.lower()  # a part of a document has the document's encoding unless it declares another
    if charset is None and is_part and (in_utf8 or not kind):
        charset = UTF8
    body = encoded(text, charset or "ascii")
    # All encodings that may be assumed without a declaration contain ASCII.
    if body is not None and (charset or text.isascii()):
        return response._replace(body=body)
    # Some tools write a lone surrogate for a byte that they could not decode.
    body = text.encode(UTF8, "replace")
    if text.isascii():
        return response._replace(body=body)
    if encoded(text, UTF8) is None:
        changes.append("has ? for bytes that the archive does not hold")
    if charset == UTF8:
        return response._replace(body=body)
    changes.append(f"is sent as UTF-8, not as {excerpt(charset) if charset else 'text that names no encoding'}")
    headers = ((n, with_charset(v, UTF8)) if n.lower() == "content-type" else (n, v) for n, v in response.headers)
    return response._replace(headers=tuple(headers), body=body)


def _charset(entry: dict[str, Any]) -> str | None:
    """The character encoding of the document in `entry`."""
    response = _response_of(entry)
    content = response["content"]
    text = str(content["text"])
    if content.get("encoding") == "base64":
        with suppress(ValueError):
            text = base64.b64decode(text).decode(UTF8, "replace")
    with suppress(LookupError, TypeError, AttributeError):
        if kind := first_value(_headers(response.get("headers")), "content-type"):
            return charset_of(kind, text)
    return charset_of(str(content.get("mimeType", "")), text)


def _time_ms(entry: dict[str, Any]) -> float | None:
    """When the entry began, in ms; None if the archive does not say."""
    try:
        return datetime.fromisoformat(entry["startedDateTime"]).timestamp() * 1000
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
