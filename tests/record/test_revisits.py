"""Records of a web archive that repeat another's body (`revisit`) are responses with that body."""

import io
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from record.formats import read_recording
from record.http1 import Response

PAGE, FIRST, SECOND = ("https://a.example/", "https://a.example/1.js", "https://b.example/2.js")
SCRIPT = [("Content-Type", "text/javascript"), ("ETag", '"1"')]


DATES = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
Fields = list[tuple[str, str]]


def response(writer: WARCWriter, url: str, headers: Fields, body: bytes, date: str) -> None:
    head = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
    dated = {"WARC-Date": date}
    record = writer.create_warc_record(
        url, "response", payload=io.BytesIO(body), http_headers=head, warc_headers_dict=dated
    )
    writer.write_record(record)


def archive(
    path: Path,
    *,
    digest: str = "",
    date: str = DATES[0],
    status: str = "200 OK",
    fields: Fields | None = None,
    is_first: bool = False,
) -> Path:
    """An archive of a page and of a script that was taken at both DATES, of which a record for SECOND repeats one: that
    with this `date`, and, if it says one, this `digest`. It `is_first`, or stands at the end."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        head = fields and StatusAndHeaders(status, fields, protocol="HTTP/1.1")
        repeats = writer.create_revisit_record(SECOND, digest or "none", FIRST, date, http_headers=head)
        if not digest:
            repeats.rec_headers.remove_header("WARC-Payload-Digest")
        if is_first:
            writer.write_record(repeats)
        response(writer, PAGE, [("Content-Type", "text/html")], b"<!doctype html><p>", DATES[0])
        for body, date in zip((b"1;", b"2;"), DATES, strict=True):
            response(writer, FIRST, SCRIPT, body, date)
        if not is_first:
            writer.write_record(repeats)
    return path


def repeated(file: Path) -> Response:
    recording = read_recording(file)
    assert not recording.skipped
    (answer,) = (exchange.response for exchange in recording.exchanges if exchange.url == SECOND)
    return answer


@pytest.mark.parametrize(
    ("status", "fields", "kept"),
    [
        ("200 OK", [("Content-Type", "text/javascript"), ("ETag", '"2"')], '"2"'),
        # A response that was not modified is sent whole to a browser that has nothing.
        ("304 Not Modified", [("ETag", '"2"')], '"1"'),
        ("200 OK", None, '"1"'),
    ],
)
def test_what_is_repeated_is_a_response(status: str, fields: Fields | None, kept: str, tmp_path: Path) -> None:
    answer = repeated(archive(tmp_path / "a.warc.gz", status=status, fields=fields))
    assert (answer.status, answer.body, answer.header("etag")) == (200, b"1;", kept)


def test_of_two_responses_the_one_of_its_date_is_repeated(tmp_path: Path) -> None:
    assert repeated(archive(tmp_path / "a.warc.gz", date=DATES[1])).body == b"2;"


def test_what_it_repeats_may_follow_it(tmp_path: Path) -> None:
    assert repeated(archive(tmp_path / "a.warc.gz", is_first=True)).body == b"1;"


@pytest.mark.parametrize(
    ("digest", "date", "why"),
    [
        ("", "2026-11-22T00:00:00Z", "it repeats a response that is not in the archive"),
        ("sha1:OTHER", DATES[0], "it repeats a response whose body has another digest than it says"),
    ],
)
def test_what_repeats_nothing_in_the_archive_is_named(digest: str, date: str, why: str, tmp_path: Path) -> None:
    recording = read_recording(archive(tmp_path / "a.warc.gz", digest=digest, date=date))
    assert SECOND not in [exchange.url for exchange in recording.exchanges]
    assert recording.skipped == (f"{SECOND}: {why}",)
