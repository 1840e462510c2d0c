"""Broken recordings by the thousand, and importing each."""

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import EyelevelError
from record.formats import read_recording
from record.site import write_site
from servers.application.wsgi import load_responses
from support.recordings import PAGE, har_entry, save_file, warc_record

RAW = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nContent-Length: 3\r\n\r\n<p>"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\nReferer: http://a.example/\r\n\r\n"
ARCHIVE = PAGE + warc_record("http://b.example/x", CHUNKED) + warc_record("http://b.example/x", REQUEST, "request")
HAR: dict[str, Any] = {"log": {"entries": [har_entry(text="<p>"), har_entry("http://b.example/x?y#z", text="")]}}

SAVE = save_file(headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip")), body=gzip.compress(b"<p>"))

# What parsers stumble over.
BITS = [
    b"\0",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b":",
    b" ",
    b"%",
    b"-1",
    b"99999999999999999999",
    b"\xff",
    b"\xed\xa0\x80",
    b"../",
]
JUNK = st.binary(max_size=20) | st.sampled_from(BITS)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """`content` with some parts replaced, repeated, or cut."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        content = content[:start] + draw(JUNK) + content[end:]
    return content[: draw(st.integers(0, len(content)))] if draw(st.integers(0, 9)) == 0 else content


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda v: st.lists(v, max_size=2),
    max_leaves=4,
)


@st.composite
def damaged_har(draw: st.DrawFn) -> bytes:
    """An archive in which some values are others, or missing."""
    archive = json.loads(json.dumps(HAR))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = archive
        while isinstance(place, dict | list) and place:
            key: Any = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if draw(st.integers(0, 3)) == 0 or not isinstance(place[key], dict | list):
                if draw(st.booleans()):
                    place[key] = draw(json_values)
                else:
                    del place[key]
                break
            place = place[key]
    return json.dumps(archive).encode()


def import_of(name: str, content: bytes) -> None:
    """Import a recording with `content` at `name`, store it, and load it as the servers do."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        source = folder / Path(name).parts[0]
        try:
            site = write_site(read_recording(source), folder / "site")
        except EyelevelError as error:
            assert str(error).isprintable()
            return
        assert all(reason.isprintable() for reason in site.skipped)
        assert len(list(load_responses(site.folder))) == len(site.exchanges)
    finally:
        shutil.rmtree(folder)


FORMATS: dict[str, tuple[str, st.SearchStrategy[bytes]]] = {
    "mahimahi": ("m/save.0", damaged(SAVE)),
    "raw": ("r/a.example/index", damaged(RAW)),
    "warc": ("x.warc", damaged(ARCHIVE)),
    "warc.gz": ("x.warc.gz", damaged(gzip.compress(PAGE, mtime=0))),
    "har": ("x.har", damaged_har() | damaged(json.dumps(HAR).encode())),
    "garbage": ("x.har", st.binary()),
}


def fuzz(form: str, examples: int) -> Callable[[], None]:
    """A test that imports that many broken recordings of one format."""
    name, contents = FORMATS[form]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(contents)
    def run(content: bytes) -> None:
        import_of(name, content)

    return run
