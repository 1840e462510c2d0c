"""HTTP archives (HAR 1.2) that hold response bodies, as browsers' developer tools save them.

A HAR holds bodies without their content-encoding; they are encoded again as their header says, since the
bytes on the wire are what a replay is about.
"""

import base64
import binascii
import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eyelevel.errors import EyelevelError
from eyelevel.files import write_atomically
from record.assemble import assemble
from record.content import UndecodableContent, decode, encode
from record.http1 import Headers, MalformedMessage, Response, first_value
from record.site import Exchange, Recording, Site, authority_of, kept_request_headers

# A site keeps times from its own beginning; a HAR needs a date to begin at.
EPOCH = datetime.fromtimestamp(0, UTC).isoformat(timespec="milliseconds")
PAGE = "page_1"

SKIPPED_SCHEMES = ("data:", "blob:", "chrome-extension:", "about:", "ws:", "wss:", "file:")


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_file() and path.suffix == ".har"


def read(path: Path) -> Recording:
    """The exchanges of one page of the archive `path`: the one of which most can be used.

    What cannot be used is named. Raises EyelevelError.
    """
    try:
        log = json.loads(path.read_bytes())["log"]
        entries = sorted(log["entries"], key=lambda entry: _time_ms(entry["startedDateTime"]))
    except (ValueError, KeyError, TypeError) as error:
        raise EyelevelError(f"{path} is no HAR file ({error!r})") from None
    first_page = next((entry["pageref"] for entry in entries if "pageref" in entry), None)
    pages: dict[str | None, list[Exchange]] = defaultdict(list)
    skipped: list[str] = []
    began_ms = _time_ms(entries[0]["startedDateTime"]) if entries else 0.0
    for entry in entries:
        url = str(entry.get("request", {}).get("url", ""))
        if url.startswith(SKIPPED_SCHEMES):
            continue
        try:
            pages[entry.get("pageref", first_page)].append(_exchange(entry, url, began_ms))
        except (MalformedMessage, KeyError, TypeError, ValueError) as error:
            skipped.append(f"{url}: {error}")
    page = max(pages, key=lambda page: len(pages[page]), default=None)
    skipped += [f"{e.url}: belongs to another page of the archive" for p in pages if p != page for e in pages[p]]
    creator = log.get("creator", {})
    recorder = {"tool": "har", "creator": f"{creator.get('name', 'unknown')} {creator.get('version', '')}".strip()}
    return assemble(path.name, pages[page], skipped, recorder)


def write(site: Site, path: Path) -> None:
    """Write `site` as a HAR file; bodies are decoded, as tools that read HAR files expect."""
    entries = [_entry(site.recorded(indexed), site) for indexed in site.exchanges]
    page = {"startedDateTime": EPOCH, "id": PAGE, "title": site.url, "pageTimings": {}}
    creator = {"name": "Eyelevel", "version": "1"}
    log = {"version": "1.2", "creator": creator, "pages": [page], "entries": entries}
    write_atomically(path, json.dumps({"log": log}, indent=1) + "\n")


def _entry(exchange: Exchange, site: Site) -> dict[str, Any]:
    response = exchange.response
    started = datetime.fromtimestamp((exchange.started_ms or 0) / 1000, UTC)
    request_headers = [] if exchange.url == site.url else [{"name": "Referer", "value": site.url}]
    if site.user_agent:
        request_headers.append({"name": "User-Agent", "value": site.user_agent})
    return {
        "pageref": PAGE,
        "startedDateTime": started.isoformat(timespec="milliseconds"),
        "time": exchange.ttfb_ms or 0,
        "request": {
            "method": exchange.method,
            "url": exchange.url,
            "httpVersion": "h2",
            "cookies": [],
            "headers": request_headers,
            "queryString": [],
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": response.status,
            "statusText": response.reason,
            "httpVersion": "h2",
            "cookies": [],
            "headers": [{"name": name, "value": value} for name, value in response.headers],
            "content": _content(response),
            "redirectURL": response.header("location") or "",
            "headersSize": -1,
            "bodySize": len(response.body),
        },
        "cache": {},
        "timings": {"send": 0, "wait": exchange.ttfb_ms or 0, "receive": 0},
        "serverIPAddress": exchange.recorded_ip,
    }


def _content(response: Response) -> dict[str, Any]:
    encoding = (response.header("content-encoding") or "").strip().lower()
    try:
        plain = decode(response.body, encoding) if response.body else b""
    except UndecodableContent:
        plain = response.body
    content: dict[str, Any] = {"size": len(plain), "mimeType": response.header("content-type") or ""}
    if plain:
        content |= {"text": base64.b64encode(plain).decode(), "encoding": "base64"}
    return content


def _exchange(entry: dict[str, Any], url: str, began_ms: float) -> Exchange:
    request, response = entry["request"], entry["response"]
    status = int(response["status"])
    if not 200 <= status <= 599:
        raise MalformedMessage(f"status {status} is none that can be replayed")
    headers = _headers(response["headers"])
    return Exchange(
        method=request["method"],
        url=url.partition("#")[0],
        response=Response(status, response.get("statusText", ""), headers, _body(response, headers, status)),
        recorded_ip=entry.get("serverIPAddress") or f"unknown server of {authority_of(url)}",
        started_ms=_time_ms(entry["startedDateTime"]) - began_ms,
        ttfb_ms=entry.get("timings", {}).get("wait"),
        request_headers=kept_request_headers(_headers(request["headers"])),
    )


def _headers(listed: list[dict[str, str]]) -> Headers:
    """Header fields without the pseudo-header fields of HTTP/2, which some tools list with and without a colon."""
    return tuple(
        (field["name"], field["value"].replace("\n", ", "))
        for field in listed
        if not field["name"].startswith(":") and field["name"] not in ("status", "version")
    )


def _body(response: dict[str, Any], headers: Headers, status: int) -> bytes:
    content = response.get("content", {})
    text = content.get("text")
    if text is None:
        if content.get("size", 0) > 0 and status // 100 == 2 and status != 204:
            raise MalformedMessage("the archive does not hold its body")
        return b""
    try:
        plain = base64.b64decode(text, validate=True) if content.get("encoding") == "base64" else text.encode()
    except binascii.Error as error:
        raise MalformedMessage(f"its body is not valid base64: {error}") from None
    encoding = (first_value(headers, "content-encoding") or "").strip().lower()
    return encode(plain, encoding)


def _time_ms(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1000
