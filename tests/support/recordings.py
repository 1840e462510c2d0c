"""Parts of recordings, as the formats store them."""

import io
import json
import zipfile
from typing import Any

from record.formats.mahimahi import _RequestResponse
from record.http1 import Headers

HTML = ("Content-Type", "text/html")


def save_file(
    target: str = "/",
    *,
    host: str = "a.example",
    status: str = "HTTP/1.1 200 OK",
    headers: Headers = (HTML,),
    body: bytes = b"<p>",
    method: str = "GET",
) -> bytes:
    """One exchange as Mahimahi stores it."""
    record = _RequestResponse(ip="192.0.2.1", port=443, scheme=2)
    record.request.first_line = f"{method} {target} HTTP/1.1".encode()
    record.request.header.add(key=b"Host", value=host.encode())
    record.response.first_line = status.encode()
    for name, value in headers:
        record.response.header.add(key=name.encode(), value=value.encode("latin-1"))
    record.response.body = body
    content: bytes = record.SerializeToString()
    return content


def warc_record(url: str, message: bytes, kind: str = "response", **fields: str) -> bytes:
    lines = ["WARC/1.0", f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", "WARC-Date: 2026-01-01T00:00:00Z"]
    lines += [f"WARC-Record-ID: <urn:{url}>", f"Content-Type: application/http; msgtype={kind}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(message)}", "", ""]).encode() + message + b"\r\n\r\n"


PAGE = warc_record("https://a.example/", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")


def har_entry(url: str = "https://a.example/", **content: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": {"method": "GET", "url": url, "headers": []},
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": "text/html"}],
            "content": {"size": 3, **content},
        },
    }


def wacz(archives: dict[str, bytes], pages: tuple[str, ...] = (), packed_as: int = zipfile.ZIP_STORED) -> bytes:
    """A small generated collection (WACZ): `archives` by their names in `archive/`, and a list of `pages`."""
    lines = [{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}, *({"url": url} for url in pages)]
    members = {
        "datapackage.json": b'{"profile": "data-package", "wacz_version": "1.1.1", "resources": []}',
        "pages/pages.jsonl": "\n".join(map(json.dumps, lines)).encode(),
        **{f"archive/{name}": content for name, content in archives.items()},
    }
    return zipped(members, packed_as)


def zipped(members: dict[str, bytes], packed_as: int = zipfile.ZIP_STORED) -> bytes:
    """A ZIP file, identical each time it is made."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packed_as) as package:
        for name, content in members.items():
            package.writestr(zipfile.ZipInfo(name), content, packed_as, compresslevel=1)
    return file.getvalue()
