"""Writes a site as a collection of web archives (WACZ 1.1.1, Webrecorder), which replayweb.page and pywb open.

The archive (WARC 1.1) has each response as the site stores it, its request, and its server's address. Sites have no
dates, so times count from 1970, as in our HARs. Data for which a WARC has no field is left out: servers' think times,
the recorder's connections, and the size of its window.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit
from uuid import NAMESPACE_URL, uuid5

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from base.files import write_file
from record.http1 import Headers
from record.site import Exchange, Site

VERSION = "1.1.1"
SOFTWARE = "Eyelevel"
ARCHIVE = "data.warc.gz"

# Patterns of `search_key`: the beginning of a host's name; characters that are not escaped in paths and queries; and
# session identifiers in them.
WWW = re.compile(r"^www\d*\.")
UNESCAPED = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
SESSIONS_IN_PATHS = [
    re.compile(rf"^(.*/){name}/([^?]+\.aspx.*)$", re.IGNORECASE)
    for name in (r"\((?:[a-z]\([0-9a-z]{24}\))+\)", r"\([0-9a-z]{24}\)")
]
SESSIONS_IN_QUERIES = [
    re.compile(rf"^(.*)(?:{name})(?:&(.*))?$", re.IGNORECASE)
    for name in (
        *(f"{known}=[0-9a-zA-Z]{{32}}" for known in ("jsessionid", "phpsessid", "sid")),
        "ASPSESSIONID[a-zA-Z]{8}=[a-zA-Z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
]


class _AsStored(StatusAndHeaders):  # type: ignore[misc]
    """The head of a message, written byte by byte: warcio would percent-encode characters outside ASCII."""

    def to_ascii_bytes(self, header_filter: object = None) -> bytes:
        lines = [f"{self.protocol} {self.statusline}", *(f"{name}: {value}" for name, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")


@dataclass(frozen=True)
class _Line:
    """One line of the index: the response of `exchange` takes up `bytes` of the archive, from `offset` on."""

    exchange: Exchange
    time: datetime
    digest: str
    offset: int
    bytes: int

    def __str__(self) -> str:
        response = self.exchange.response
        fields = {
            "url": self.exchange.url,
            "mime": (response.header("content-type") or "unk").partition(";")[0].strip(),
            "status": str(response.status),
            "digest": self.digest,
            "length": str(self.bytes),
            "offset": str(self.offset),
            "filename": ARCHIVE,
        }
        return f"{search_key(self.exchange.url)} {self.time:%Y%m%d%H%M%S} {json.dumps(fields)}\n"


def write_wacz(site: Site, path: Path) -> None:
    """Write `site` as a WACZ file to `path`, which is replaced once the new file is complete. Raises EyelevelError."""
    archive = io.BytesIO()
    # Programs search the index with a binary search.
    index = "".join(sorted(map(str, _write_archive(site, archive))))
    begin = datetime.fromtimestamp(0, UTC).isoformat().replace("+00:00", "Z")
    page = {"id": str(uuid5(NAMESPACE_URL, site.url)), "url": site.url, "ts": begin, "title": site.name}
    pages = [{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}, page]
    members = {
        f"archive/{ARCHIVE}": archive.getvalue(),
        "indexes/index.cdxj": index.encode(),
        "pages/pages.jsonl": "".join(json.dumps(line) + "\n" for line in pages).encode(),
    }
    package = {
        "profile": "data-package",
        "wacz_version": VERSION,
        "title": site.name,
        "software": SOFTWARE,
        "mainPageUrl": site.url,
        "mainPageDate": begin,
        "resources": [
            {"name": Path(name).name, "path": name, "hash": _hash(content), "bytes": len(content)}
            for name, content in members.items()
        ],
    }
    description = _json(package)
    members["datapackage.json"] = description
    members["datapackage-digest.json"] = _json({"path": "datapackage.json", "hash": _hash(description)})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as collection:
        for name, content in members.items():
            # The archive is read at its offsets, so it must not be compressed again.
            is_archive = name.startswith("archive/")
            collection.writestr(
                zipfile.ZipInfo(name), content, zipfile.ZIP_STORED if is_archive else zipfile.ZIP_DEFLATED
            )
    write_file(path, file.getvalue())


def _write_archive(site: Site, into: io.BytesIO) -> Iterator[_Line]:
    """Write the exchanges of `site` as a compressed WARC; yields the index line of each."""
    writer = WARCWriter(into, gzip=True, warc_version="1.1")
    # Identifiers are derived from what they name, so that a site always gives the same archive.
    name = f"eyelevel:{site.url}"
    begin = datetime.fromtimestamp(0, UTC)
    info = {"WARC-Filename": ARCHIVE, **_fields(f"{name} info", begin)}
    software = f"software: {SOFTWARE}\r\nformat: WARC File Format 1.1\r\n".encode()
    writer.write_record(
        writer.create_warc_record(
            None, "warcinfo", io.BytesIO(software), len(software), "application/warc-fields", info
        )
    )
    started_ms = 0.0
    for number, exchange in enumerate(map(site.recorded, site.exchanges)):
        # An exchange without a time gets that of the exchange before it.
        started_ms = started_ms if exchange.started_ms is None else exchange.started_ms
        time = datetime.fromtimestamp(started_ms / 1000, UTC)
        fields = _fields(f"{name} {number}", time)
        with suppress(ValueError):  # a recording may have no addresses
            fields["WARC-IP-Address"] = str(ip_address(exchange.recorded_ip))
        response = exchange.response
        head = _AsStored(f"{response.status} {response.reason}", list(response.headers), "HTTP/1.1")
        answer = writer.create_warc_record(
            exchange.url,
            "response",
            io.BytesIO(response.body),
            len(response.body),
            warc_headers_dict=fields,
            http_headers=head,
        )
        offset = into.tell()
        writer.write_record(answer)
        digest = answer.rec_headers.get_header("WARC-Payload-Digest")
        yield _Line(exchange, time, digest, offset, into.tell() - offset)
        request = {**_fields(f"{name} {number} request", time), "WARC-Concurrent-To": fields["WARC-Record-ID"]}
        writer.write_record(
            writer.create_warc_record(
                exchange.url,
                "request",
                io.BytesIO(),
                0,
                warc_headers_dict=request,
                http_headers=_request_head(exchange, site.request_headers(exchange.url)),
            )
        )


def _fields(name: str, time: datetime) -> dict[str, str]:
    """A record's identifier, derived from its `name`, and its time."""
    return {
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, name)}>",
        "WARC-Date": time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }


def _request_head(exchange: Exchange, headers: Headers) -> _AsStored:
    url = urlsplit(exchange.url)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return _AsStored(f"{target} HTTP/1.1", [("Host", url.netloc), *headers], exchange.method)


def search_key(url: str) -> str:
    """The key by which the index sorts `url`, as in Webrecorder's programs (SURT): `https://www.a.example/B?d&c` has
    the key `example,a)/b?c&d`.

    For a web archive, URLs are the same page if they differ only in case, in needless escapes, in the order of the
    query, or in a session identifier with one of the usual names (the rules are those of the library `surt`).
    """
    parts = urlsplit(url)
    host = WWW.sub("", parts.hostname or "")
    port = f":{parts.port}" if parts.port and parts.port != 443 else ""
    path, query = _escaped(_without_dots(_unescaped(parts.path))).lower(), _escaped(_unescaped(parts.query))
    for session in SESSIONS_IN_PATHS:
        path = session.sub(r"\1\2", path)
    for session in SESSIONS_IN_QUERIES:
        query = session.sub(r"\1\2", query)
    # "a=1" comes before "a_=0", since its name is shorter.
    ordered = "&".join(sorted(query.lower().split("&"), key=lambda field: field.split("=", 1)))
    return f"{','.join(reversed(host.split('.')))}{port}){path.removesuffix('/') or '/'}{f'?{ordered}' * bool(query)}"


def _unescaped(text: str) -> bytes:
    """`text` without escapes, including escapes within escapes."""
    before, after = b"", text.encode()
    while before != after:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(text: bytes) -> str:
    return quote_from_bytes(text, UNESCAPED)


def _without_dots(path: bytes) -> bytes:
    """`path` without empty and dot segments. One that would lead above the root stays."""
    kept: list[bytes] = []
    *segments, last = path.split(b"/")[1:] or [b""]
    for segment in (*segments, last):
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    *folders, file = kept or [b""]
    return b"/" + b"".join(folder + b"/" for folder in folders if folder) + file


def _hash(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode()
