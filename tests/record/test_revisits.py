"""Records of a web archive that repeat another's body (`revisit`) are responses with that body."""

import io
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from record.formats import read_recording

PAGE, FIRST, SECOND = ("https://a.example/", "https://a.example/1.js", "https://b.example/2.js")
SCRIPT = [("Content-Type", "text/javascript"), ("ETag", '"1"')]


def archive(path: Path, *, digest: str, status: str = "200 OK", fields: list[tuple[str, str]] | None = None) -> Path:
    """An archive of a page and a script, whose body a record for SECOND repeats: that with this digest."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for url, headers, body in (
            (PAGE, [("Content-Type", "text/html")], b"<!doctype html><p>"),
            (FIRST, SCRIPT, b"1;"),
        ):
            head = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head))
        head = fields and StatusAndHeaders(status, fields, protocol="HTTP/1.1")
        record = writer.create_revisit_record(SECOND, digest, FIRST, "2026-11-23T00:00:00Z", http_headers=head)
        if digest == "sha1:NONE":
            record.rec_headers.replace_header("WARC-Refers-To-Target-URI", "https://a.example/none")
        writer.write_record(record)
    return path


@pytest.mark.parametrize(
    ("status", "fields", "kept"),
    [
        ("200 OK", [("Content-Type", "text/javascript"), ("ETag", '"2"')], '"2"'),
        # What was not modified is sent whole to a browser that has nothing.
        ("304 Not Modified", [("ETag", '"2"')], '"1"'),
        ("200 OK", None, '"1"'),
    ],
)
def test_what_is_repeated_is_a_response(
    status: str, fields: list[tuple[str, str]] | None, kept: str, tmp_path: Path
) -> None:
    recording = read_recording(archive(tmp_path / "a.warc.gz", digest="sha1:OTHER", status=status, fields=fields))
    (response,) = (exchange.response for exchange in recording.exchanges if exchange.url == SECOND)
    assert (response.status, response.body, response.header("etag")) == (200, b"1;", kept)
    assert not recording.skipped


def test_what_repeats_nothing_in_the_archive_is_named(tmp_path: Path) -> None:
    recording = read_recording(archive(tmp_path / "a.warc.gz", digest="sha1:NONE"))
    assert SECOND not in [exchange.url for exchange in recording.exchanges]
    assert recording.skipped == (f"{SECOND}: it repeats a response that is not in the archive",)
