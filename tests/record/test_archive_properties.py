"""Everything in a web archive is imported unchanged; if an archive is damaged, messages name all parts that are lost.

Checksums reveal damage to archives whose records are compressed one by one, so each imported body is one that was
archived. Uncompressed archives have no checksums: in a truncated one, the remaining records are whole.
"""

import gzip
import tempfile
import zipfile
from io import BytesIO
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.recordings import PAGE, warc_record

from base.errors import EyelevelError
from record.formats import read_recording, wacz
from record.http1 import Headers, Response
from record.site import Exchange, Recording, Site, write_site

# Bytes of Latin-1, which a response's field may contain; without white space at the ends, which would not be part of
# it.
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20)
NAMES = st.sampled_from(("X-One", "x-two", "ETag", "Location", "Link", "Set-Cookie", "Content-Type", "Alt-Svc"))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(tuple)
STATUSES = st.sampled_from((200, 201, 204, 206, 301, 302, 304, 404, 500))
# Bodies that resemble parts of an archive or of a message.
PARTS = (b"WARC/1.0\r\n\r\n", PAGE, b"5\r\nab", b"\r\n\r\n", gzip.compress(b"x"))
BODIES = st.binary(max_size=60) | st.sampled_from(PARTS)
METHODS = st.sampled_from(("GET", "POST", "HEAD", "OPTIONS"))
HTML = (("Content-Type", "text/html"),)
FIRST = Exchange("GET", "https://a.example/", Response(200, "OK", HTML, b"<p>"), "192.0.2.1", 0.0)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    count = draw(st.integers(1, 4))
    further = []
    for number in range(count):
        response = Response(draw(STATUSES), draw(st.sampled_from(("", "OK", "\xe9 x"))), draw(FIELDS), draw(BODIES))
        url = f"https://a.example/{draw(st.sampled_from(('x', 'y?z=%C3%A9', 'x')))}"
        agent: Headers = (("User-Agent", "B/1"),)
        further.append(Exchange(draw(METHODS), url, response, "192.0.2.1", number + 1.0, request_headers=agent))
    return further


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(exchanges())
def test_each_exchange_comes_back_from_a_collection_byte_for_byte(further: list[Exchange]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(FIRST.url, (FIRST, *further), {"tool": "test"}, "B/1")
        site = write_site(recording, Path(folder, "site"))
        wacz.write(site, Path(folder, "x.wacz"))
        back = write_site(read_recording(Path(folder, "x.wacz"), keep_cookies=True), Path(folder, "back"))
        assert back.skipped == () and contents(back) == contents(site)


def contents(site: Site) -> list[tuple[str, str, Response]]:
    return [(one.method, one.url, one.response) for one in map(site.recorded, site.exchanges)]


def named(number: int) -> str:
    return f"https://a.example/{number}"


def text_record(url: str, body: bytes) -> bytes:
    return warc_record(url, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body)


TEXTS = {named(number): bytes(range(60 + number)) * 3 for number in range(4)}
RECORDS = [PAGE, *(text_record(url, body) for url, body in TEXTS.items()), PAGE.replace(b"e/\r", b"e/z\r")]
ARCHIVED = {"https://a.example/": b"<p>", "https://a.example/z": b"<p>", **TEXTS}
PACKED = [gzip.compress(record, mtime=0) for record in RECORDS]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """`content` with a few bytes changed, removed or added."""
    start = draw(st.integers(0, len(content) - 1))
    end = start + draw(st.integers(0, 12))
    return content[:start] + draw(st.binary(max_size=12)) + content[end:]


def imported(name: str, content: bytes) -> Recording | None:
    """The recording; None if it is refused with one line."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
        try:
            return read_recording(Path(folder, name))
        except EyelevelError as error:
            assert str(error).isprintable()
            return None


def require_all_or_named(recording: Recording | None) -> None:
    if recording is None:
        return
    bodies = {exchange.url: exchange.response.body for exchange in recording.exchanges}
    assert bodies.items() <= ARCHIVED.items()
    assert bodies == ARCHIVED or recording.skipped
    assert all(line.isprintable() for line in recording.skipped)


@settings(deadline=None, max_examples=300)
@given(damaged(b"".join(PACKED)))
def test_a_damaged_archive_is_imported_whole_or_names_what_is_lost(content: bytes) -> None:
    recording = imported("x.warc.gz", content)
    require_all_or_named(recording)
    assert recording is None or len(recording.exchanges) >= len(RECORDS) - 2, "it costs what is damaged, and no more"


@settings(deadline=None)
@given(st.integers(1, sum(map(len, RECORDS)) - 1), st.booleans())
def test_what_is_there_of_an_archive_that_is_cut_is_whole(place: int, packed: bool) -> None:
    records = PACKED if packed else RECORDS
    content = b"".join(records)[:place]
    # Skip an archive that is shorter but whole; the line ends after its last record may be missing.
    ends = list(accumulate(map(len, records)))
    assume(not any(end - (0 if packed else 4) <= place <= end for end in ends))
    require_all_or_named(imported("x.warc", content))


@settings(deadline=None)
@given(st.data())
def test_a_damaged_collection_is_refused_or_imported_whole_or_names_what_is_lost(data: st.DataObject) -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr(zipfile.ZipInfo("archive/data.warc.gz"), b"".join(PACKED))
    require_all_or_named(imported("x.wacz", data.draw(damaged(file.getvalue()))))
