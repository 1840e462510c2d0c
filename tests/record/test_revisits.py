"""Records of a web archive that repeat another's body (`revisit`) become responses with that body."""

import base64
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from record.formats import read_recording
from record.formats.warc import parsed_digest
from record.http1 import Response

PAGE, FIRST, SECOND = ("https://a.example/", "https://a.example/1.js", "https://b.example/2.js")
SCRIPT = [("Content-Type", "text/javascript"), ("ETag", '"1"')]


DATES = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
Fields = list[tuple[str, str]]


def response(writer: WARCWriter, url: str, headers: Fields, body: bytes, date: str, digest: str = "") -> None:
    head = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
    dated = {"WARC-Date": date, **({"WARC-Payload-Digest": digest} if digest else {})}
    record = writer.create_warc_record(
        url, "response", payload=io.BytesIO(body), http_headers=head, warc_headers_dict=dated
    )
    writer.write_record(record)


def archive(
    path: Path,
    *,
    digest: str = "",
    original: str = "",
    date: str = DATES[0],
    status: str = "200 OK",
    fields: Fields | None = None,
    is_first: bool = False,
) -> Path:
    """An archive of a page and of a script that was recorded at both DATES, first with the digest `original`.

    A record for SECOND repeats one of these: the one with this `date`, and with this `digest`, if given. The record
    `is_first`, or last.
    """
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
            response(writer, FIRST, SCRIPT, body, date, original if date == DATES[0] else "")
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
        # An unmodified response is sent completely to a browser with an empty cache.
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


ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "base 16": bytes.hex,
    "base 16, upper case": lambda value: value.hex().upper(),
    "base 32": lambda value: base64.b32encode(value).decode(),
    "base 32, lower case, unpadded": lambda value: base64.b32encode(value).decode().rstrip("=").lower(),
    "base 64": lambda value: base64.b64encode(value).decode(),
    "base 64 of URLs, unpadded": lambda value: base64.urlsafe_b64encode(value).decode().rstrip("="),
}


@pytest.mark.parametrize("labels", [("sha1", "SHA-1"), ("sha256", "sha-256"), ("sha-256", "sha256"), ("md5", "MD5")])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_digests_are_compared_by_algorithm_and_value(labels: tuple[str, str], encoding: str, tmp_path: Path) -> None:
    first, second = labels
    value = hashlib.new(first.replace("-", ""), b"1;").digest()
    of_original, of_revisit = f"{first}:{value.hex()}", f"{second}:{ENCODINGS[encoding](value)}"
    assert parsed_digest(of_original) == parsed_digest(of_revisit)
    assert parsed_digest(of_revisit) != parsed_digest(f"{second}:{ENCODINGS[encoding](bytes(len(value)))}")
    source = archive(tmp_path / "a.warc.gz", digest=of_revisit, original=of_original)
    assert repeated(source).body == b"1;"


def test_a_digest_by_another_algorithm_says_nothing_against_the_original(tmp_path: Path) -> None:
    assert repeated(archive(tmp_path / "a.warc.gz", digest="md5:" + "0" * 32)).body == b"1;"


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
