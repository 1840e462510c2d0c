"""Compressed bodies are decompressed to the same bytes as in browsers; those that browsers cannot decompress are
reported."""

import gzip
import io
import zlib
from pathlib import Path

import pytest
from support.recordings import HTML, save_file, warc_record

from record.content import BrokenContent, UndecodableContent, decode, encode
from record.formats import read_recording
from record.http1 import Response

CONTENT = b"<p>navy, blue and teal</p>" * 9


def deflated(window_bits: int) -> bytes:
    stream = zlib.compressobj(wbits=window_bits)
    return stream.compress(CONTENT) + stream.flush()


def gzip_with_a_name() -> bytes:
    file = io.BytesIO()
    with gzip.GzipFile("style.css", "wb", fileobj=file) as stream:
        stream.write(CONTENT)
    return file.getvalue()


@pytest.mark.case("gzip-with-bytes-behind")
@pytest.mark.parametrize(
    "behind",
    [b"\n \n", b"\0" * 9, b"</html>" * 99, gzip.compress(b"another member")],
    ids=["blanks", "zeros", "text", "another member"],
)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, br"])
def test_bytes_behind_a_stream_are_ignored(encoding: str, behind: bytes) -> None:
    assert decode(encode(CONTENT, encoding) + behind, encoding) == CONTENT


@pytest.mark.case("gzip-with-bytes-behind")
@pytest.mark.parametrize("end", [b"", b"12345678"])
def test_a_gzip_stream_needs_no_check_sum(end: bytes) -> None:
    assert decode(gzip.compress(CONTENT)[:-8] + end, "gzip") == CONTENT


def test_a_gzip_header_may_have_further_parts() -> None:
    assert decode(gzip_with_a_name(), "gzip") == CONTENT
    head, rest = gzip.compress(CONTENT)[:10], gzip.compress(CONTENT)[10:]
    whole = head[:3] + bytes([2 | 4 | 8 | 16]) + head[4:] + b"\3\0abc" + b"name\0" + b"comment\0" + b"12"
    assert decode(whole + rest, "gzip") == CONTENT


@pytest.mark.case("deflate-of-a-small-window")
@pytest.mark.parametrize("window_bits", [*range(9, 16), *range(-15, -8)])
def test_deflate_is_taken_with_any_window_and_raw(window_bits: int) -> None:
    assert decode(deflated(window_bits), "deflate") == CONTENT


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("cut", [9, 12])
def test_a_stream_that_is_cut_short_is_refused(encoding: str, cut: int) -> None:
    with pytest.raises(BrokenContent, match=f"not valid {encoding}"):
        decode(encode(CONTENT, encoding)[:-cut], encoding)


def test_a_body_packed_by_an_unknown_encoding_too_is_not_touched() -> None:
    with pytest.raises(UndecodableContent, match="unknown content-encoding dcz"):
        decode(encode(CONTENT, "br"), "dcz, br")


def test_several_fields_name_the_encodings_in_their_order() -> None:
    response = Response(
        200, "", (("Content-Encoding", "GZIP"), ("content-encoding", "br")), encode(CONTENT, "gzip, br")
    )
    assert decode(response.body, response.encoding) == CONTENT


@pytest.mark.case("gzip-with-bytes-behind")
@pytest.mark.case("deflate-of-a-small-window")
@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(CONTENT) + b"\n \n"), ("deflate", deflated(13))],
    ids=["gzip", "deflate"],
)
def test_such_a_body_is_stored_as_it_was_sent(encoding: str, body: bytes, tmp_path: Path) -> None:
    headers = (HTML, ("Content-Encoding", encoding))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "save.0").write_bytes(save_file(headers=headers, body=body))
    message = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encoding}\r\n\r\n".encode() + body
    (tmp_path / "x.warc").write_bytes(warc_record("https://a.example/", message))
    for source in ("m", "x.warc"):
        recording = read_recording(tmp_path / source)
        assert [exchange.response.body for exchange in recording.exchanges] == [body]
        assert recording.skipped == ()
