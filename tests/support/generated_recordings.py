"""Random exchanges, and recordings of them in each format, written after the formats' specifications.

Our own exporters are not used.

python -m support.generated_recordings SECONDS      import, replay over TCP and QUIC and export such recordings for this
                                                     long; prints how many exchanges there were in how many recordings
"""

import base64
import gzip
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import brotli
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from record.content import decode
from record.formats import read_recording, writable_formats
from record.http1 import SINGLE, Headers
from record.site import Site, write_site
from support.handing_on import lost_by_handing_on
from support.level import differences
from support.recordings import save_file, wacz, warc_record

HOSTS = ("a.example", "b.example", "xn--bcher-kva.example")
# Letters that browsers send in a path and a query as they are.
PATH_LETTERS = "abzAZ09-._~!$&'()*+,;=:@/"
QUERY_LETTERS = PATH_LETTERS.replace("'", "") + "?"
STATUSES = (200, 200, 200, 201, 203, 404, 410, 500, 503)
# Names of header fields that importers do not change, and values: any octet that a field may contain (RFC 9110, section
# 5.5).
NAMES = (
    "Cache-Control",
    "ETag",
    "X-Note",
    "Vary",
    "Link",
    "Content-Language",
    "X-Frame-Options",
    "Server-Timing",
    "P3P",
)
VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
BEYOND_ASCII = "".join(map(chr, range(0xA0, 0x100)))
# Texts declare their encoding, since a HAR contains them decoded.
TEXTUAL = tuple(f"{kind}; charset=utf-8" for kind in ("text/css", "text/javascript", "application/json"))
DOCUMENT = "text/html; charset=utf-8"
TYPES = (*TEXTUAL, "image/png", "font/woff2", "application/octet-stream", "")
ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "br": lambda content: bytes(brotli.compress(content)),
    "deflate": zlib.compress,
}


@dataclass(frozen=True)
class Generated:
    """One exchange. `fields` are the response's, without those for its length and framing; `body` is encoded."""

    host: str
    target: str
    status: int
    fields: Headers
    body: bytes
    encoding: str
    prefix: str = ""

    @property
    def path(self) -> str:
        """The path and the query, which are unique in the recording."""
        return f"{self.prefix}/{self.target}"

    @property
    def url(self) -> str:
        return f"https://{self.host}{self.path}"

    @property
    def kept_fields(self) -> Headers:
        """The header fields, except empty ones that a response has at most once: NGINX does not send these."""
        return tuple(field for field in self.fields if field[1] or field[0].lower() not in SINGLE)

    @property
    def content_type(self) -> str:
        return next((value for name, value in self.fields if name == "Content-Type"), "")


def values(letters: str) -> st.SearchStrategy[str]:
    """Values of header fields, without spaces around them."""
    return st.text(letters + " ", max_size=30).map(str.strip)


@st.composite
def exchanges(draw: st.DrawFn, number: int, letters: str) -> Generated:
    """The exchange at this place in a recording; number 0 is its page."""
    path = draw(st.text(PATH_LETTERS, max_size=20).filter(lambda path: not {".", ".."} & {*path.split("/")}))
    query = draw(st.none() | st.text(QUERY_LETTERS, max_size=20))
    target = f"{number}/{path}{'' if query is None else '?' + query}"
    kind = DOCUMENT if number == 0 else draw(st.sampled_from(TYPES))
    content = draw(st.text(max_size=200).map(str.encode) if kind in TEXTUAL else st.binary(max_size=200))
    if number == 0:
        content = b"<!doctype html><title>A</title>" + draw(st.text(max_size=200)).encode()
    encoding = draw(st.sampled_from(tuple(ENCODE)))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    fields = [*([("Content-Type", kind)] if kind else []), *((name, draw(values(letters))) for name in names)]
    if encoding:
        fields.insert(draw(st.integers(0, len(fields))), ("Content-Encoding", encoding))
    status = 200 if number == 0 else draw(st.sampled_from(STATUSES))
    return Generated(draw(st.sampled_from(HOSTS)), target, status, tuple(fields), ENCODE[encoding](content), encoding)


def recordings(letters: str) -> st.SearchStrategy[list[Generated]]:
    """The exchanges of a small recording, whose header fields consist of `letters`."""
    counts = st.integers(1, 6)
    return counts.flatmap(lambda count: st.tuples(*(exchanges(number, letters) for number in range(count)))).map(list)


def large_recording(letters: str, chance: int) -> list[Generated]:
    """The exchanges of many small recordings: a single draw contains too little randomness for all."""
    large: list[Generated] = []

    @seed(chance)
    @settings(
        max_examples=SMALL_ONES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(recordings(letters))
    def add(small: list[Generated]) -> None:
        prefix = f"/{len(large)}"
        # Only one page, since most formats cannot say which of several pages starts a recording.
        large.extend(replace(one, prefix=prefix) for one in (small[1:] if large else small))

    add()
    return large


def message(one: Generated, chunks: random.Random) -> bytes:
    """The response as sent on the wire, in one of HTTP/1.1's framings (RFC 9112, section 6)."""
    fields, body = list(one.fields), one.body
    match chunks.randrange(3):
        case 0:
            fields.append(("Content-Length", str(len(body))))
        case 1:
            fields.append(("Transfer-Encoding", "chunked"))
            cuts = sorted({0, len(body), *(chunks.randint(0, len(body)) for _ in range(3))})
            parts = [body[start:end] for start, end in itertools.pairwise(cuts)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"
    lines = [f"HTTP/1.1 {one.status} Some", *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def as_warc(recording: Sequence[Generated], seed: random.Random) -> list[bytes]:
    """The records of a WARC: responses with their requests."""
    records = []
    for one in recording:
        referrer = "" if one is recording[0] else f"Referer: {recording[0].url}\r\n"
        request = f"GET {one.path} HTTP/1.1\r\nHost: {one.host}\r\n{referrer}\r\n".encode()
        records.append(warc_record(one.url, message(one, seed)))
        linked = {"WARC-Concurrent-To": f"<urn:{one.url}>", "WARC-Record-ID": f"<urn:request:{one.url}>"}
        records.append(_request_record(one.url, request, linked))
    return records


def _request_record(url: str, request: bytes, fields: dict[str, str]) -> bytes:
    lines = ["WARC/1.1", "WARC-Type: request", f"WARC-Target-URI: {url}", "WARC-Date: 2026-01-01T00:00:00Z"]
    lines += [
        "Content-Type: application/http; msgtype=request",
        *(f"{name}: {value}" for name, value in fields.items()),
    ]
    return "\r\n".join([*lines, f"Content-Length: {len(request)}", "", ""]).encode() + request + b"\r\n\r\n"


def as_wacz(recording: Sequence[Generated], seed: random.Random) -> bytes:
    """A collection of one archive, whose list of pages has the first URL."""
    return wacz({"data.warc": b"".join(as_warc(recording, seed))}, (recording[0].url,))


def as_har(recording: Sequence[Generated], seed: random.Random) -> bytes:
    """A HAR, which contains decoded bodies: as text if they are text, otherwise in base64."""
    entries: list[dict[str, Any]] = []
    for one in recording:
        content = decode(one.body, one.encoding)
        is_text = one.content_type in (*TEXTUAL, DOCUMENT)
        text = (
            {"text": content.decode()}
            if is_text
            else {"text": base64.b64encode(content).decode(), "encoding": "base64"}
        )
        referrer = [] if one is recording[0] else [{"name": "Referer", "value": recording[0].url}]
        entries.append(
            {
                "startedDateTime": "2026-01-01T00:00:00Z",
                "request": {"method": "GET", "url": one.url, "headers": referrer},
                "response": {
                    "status": one.status,
                    "statusText": "Some",
                    "headers": [{"name": name, "value": value} for name, value in one.fields],
                    "content": {"size": len(content), "mimeType": one.content_type, **text},
                    "bodySize": len(one.body),
                },
            }
        )
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def as_mahimahi(recording: Sequence[Generated], folder: Path) -> None:
    """Write a folder of Mahimahi's files, whose bodies are without framing."""
    folder.mkdir()
    for number, one in enumerate(recording):
        content = save_file(
            one.path, host=one.host, status=f"HTTP/1.1 {one.status} Some", headers=one.fields, body=one.body
        )
        (folder / f"save.{number:05}").write_bytes(content)


def as_responses(recording: Sequence[Generated], folder: Path, seed: random.Random) -> None:
    """Write a folder of raw responses."""
    for number, one in enumerate(recording):
        (folder / one.host).mkdir(parents=True, exist_ok=True)
        head, _, body = message(one, seed).partition(b"\r\n")
        (folder / one.host / f"{number:05}").write_bytes(head + f"\r\nX-Original-Url: {one.url}\r\n".encode() + body)


ARCHIVES: dict[str, Callable[[Sequence[Generated], random.Random], bytes]] = {
    "har": as_har,
    "wacz": as_wacz,
    "warc": lambda recording, seed: b"".join(as_warc(recording, seed)),
    # Each record is compressed by itself (WARC 1.1, annex D).
    "warc.gz": lambda recording, seed: b"".join(map(gzip.compress, as_warc(recording, seed))),
}
# The letters that header fields of a format may contain: JSON texts do not say which octets they were.
LETTERS_OF = {
    "har": VISIBLE,
    **dict.fromkeys(("mahimahi", "responses", "wacz", "warc", "warc.gz"), VISIBLE + BEYOND_ASCII),
}
FORMATS = tuple(LETTERS_OF)
# How many small recordings make a large one.
SMALL_ONES = 60


def written(form: str, recording: Sequence[Generated], folder: Path, chance: int) -> Path:
    """Write `recording` in this format into `folder`; `chance` decides how messages are framed."""
    path, draws = folder / f"recording.{form}", random.Random(chance)
    if form == "mahimahi":
        as_mahimahi(recording, path)
    elif form == "responses":
        as_responses(recording, path, draws)
    else:
        path.write_bytes(ARCHIVES[form](recording, draws))
    return path


def imported_site(form: str, recording: Sequence[Generated], folder: Path, chance: int) -> Site:
    """Write `recording` in this format, and import it from there, all in `folder`."""
    return write_site(read_recording(written(form, recording, folder, chance)), folder / "site")


def faults_of(form: str, recording: Sequence[Generated], site: Site) -> list[str]:
    """A line for each exchange of `recording` that is missing or changed in `site`, which was imported from this
    format."""
    faults = [f"left out: {reason}" for reason in site.skipped]
    of_url = {exchange.url: site.recorded(exchange).response for exchange in site.exchanges}
    if site.url != recording[0].url:
        faults.append(f"it starts at {site.url}, not {recording[0].url}")
    for one in recording:
        if not (response := of_url.get(one.url)):
            faults.append(f"{one.url} is missing")
            continue
        # A HAR contains decoded bodies, and encoding them again need not give the same bytes.
        is_decoded = form == "har"
        pairs = {
            "status": (response.status, one.status),
            "fields": (tuple(field for field in response.headers if field[0] != "Content-Length"), one.kept_fields),
            "body": (decode(response.body, response.encoding), decode(one.body, one.encoding))
            if is_decoded
            else (response.body, one.body),
        }
        faults += [f"{one.url}: {name} {now!r}, was {was!r}" for name, (now, was) in pairs.items() if now != was]
    return faults


def replay_and_export(seconds: float) -> tuple[int, int]:
    """Draw large recordings for this long; import, replay over TCP and QUIC, export and import each of them.

    Returns how many exchanges there were, in how many recordings. Raises AssertionError.
    """
    end_s, count, number = time.monotonic() + seconds, 0, 0
    draws = random.Random()
    while time.monotonic() < end_s:
        chance = draws.getrandbits(32)
        form = FORMATS[number % len(FORMATS)]
        recording = large_recording(LETTERS_OF[form], chance)
        folder = Path(tempfile.mkdtemp(prefix="generated-"))
        try:
            site = imported_site(form, recording, folder, chance)
            faults = [*faults_of(form, recording, site), *differences(site, folder), *_lost(site, folder)]
            assert not faults, f"seed {chance}, {form}: {faults[:5]}"
        finally:
            shutil.rmtree(folder)
        count, number = count + len(recording), number + 1
    return count, number


def _lost(site: Site, folder: Path) -> list[str]:
    lost = []
    for name, form in writable_formats().items():
        (folder / name).mkdir()
        lost += [f"{name}: {what}" for what in lost_by_handing_on(site, form, folder / name)]
    return lost


if __name__ == "__main__":
    print(*replay_and_export(float(sys.argv[1])))
