"""Generated recordings for measurements: the same every time, and as large as those of real pages."""

import io
import random
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from record.content import encode
from record.formats import har, mahimahi
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site

# The HTTP Archive's median page of 2024 weighs 2.7 MB in 71 requests: 38 kB each.
BODY_BYTES = 38_000


def recording(exchanges: int, servers: int, seed: int = 4) -> Recording:
    """A recording with this many exchanges on this many servers.

    A fifth of the bodies is compressed text; the rest cannot be compressed.
    """
    noise = random.Random(seed)
    result = []
    for number in range(exchanges):
        server = number % servers
        kind, encoding = ("text/css", "gzip") if number % 5 == 1 else ("image/png", "")
        content = noise.randbytes(BODY_BYTES)
        if encoding:
            content = content.hex().encode()
        if number == 0:
            kind, encoding, content = "text/html", "gzip", b"<!doctype html>" + content.hex().encode()
        headers = [("Content-Type", kind), ("Cache-Control", "max-age=600"), ("Set-Cookie", "id=0123456789; Path=/")]
        headers += [("Content-Encoding", encoding)] if encoding else []
        url = f"https://h{server}.example/{number}?v=1" if number else "https://h0.example/"
        response = Response(200, "OK", tuple(headers), encode(content, encoding)).replayable("GET")
        result.append(Exchange("GET", url, response, f"192.0.2.{server}", started_ms=float(number), ttfb_ms=12.5))
    return Recording(result[0].url, tuple(result), {"tool": "benchmark"})


def write_formats(site: Site, folder: Path) -> dict[str, Path]:
    """`site` in every format that can be imported, by the format's name."""
    paths = {"Mahimahi": folder / "mahimahi", "HAR": folder / "site.har", "WARC": folder / "site.warc.gz"}
    mahimahi.write(site, paths["Mahimahi"])
    har.write(site, paths["HAR"])
    _write_warc(site, paths["WARC"])
    return {**paths, "raw responses": site.folder}


def _write_warc(site: Site, path: Path) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for indexed in site.exchanges:
            response = site.recorded(indexed).response
            head = StatusAndHeaders(f"{response.status} {response.reason}", list(response.headers), "HTTP/1.1")
            body = io.BytesIO(response.body)
            writer.write_record(writer.create_warc_record(indexed.url, "response", payload=body, http_headers=head))


def site_of(exchanges: int, servers: int, folder: Path) -> Site:
    """A generated recording of this size as a site."""
    return write_site(recording(exchanges, servers), folder)
