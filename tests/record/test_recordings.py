"""Recorded sites: what was recorded is stored, in a form that any server can send again."""

import gzip
import random
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handing_on import lost_by_handing_on
from support.material import recording_path

from base.errors import EyelevelError
from record.content import BrokenContent, decode, encode
from record.formats import WritableFormat, har, mahimahi, read_recording, wacz
from record.http1 import MalformedMessage, Response, format_response, parse_response, unchunk
from record.layout import INDEX
from record.site import Exchange, Recording, Site, write_site
from record.upgrade import upgrade

header_names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,20}", fullmatch=True)
header_values = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f\x85\xa0"))


def exchange(url: str, body: bytes = b"", status: int = 200, ip: str = "192.0.2.1", **headers: str) -> Exchange:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Exchange("GET", url, Response(status, "", fields, body), ip)


def recording(*exchanges: Exchange) -> Recording:
    return Recording(url=exchanges[0].url, exchanges=exchanges, recorder={"tool": "test"})


@given(st.integers(100, 599), st.lists(st.tuples(header_names, header_values)), st.binary())
def test_a_stored_response_is_read_back_as_it_was(status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    response = Response(status, "Some reason", tuple(headers), body)
    assert parse_response(format_response(response)) == response


@pytest.mark.parametrize(
    "message",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"x\r\n\r\n"],
)
def test_a_malformed_response_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_response(message)


@given(st.lists(st.binary(min_size=1)))
def test_unchunking_joins_what_was_chunked(chunks: list[bytes]) -> None:
    message = b"".join(b"%x;extension=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    assert unchunk(message) == b"".join(chunks)


@pytest.mark.case("har-zstd-is-unpacked")
@given(st.binary(), st.sampled_from(["", "gzip", "deflate", "br", "zstd", "gzip, br", "deflate,x-gzip"]))
def test_content_encodings_are_put_on_as_they_were_taken_off(content: bytes, encoding: str) -> None:
    assert decode(encode(content, encoding), encoding) == content


def test_a_replayable_response_tells_its_true_length_and_loses_the_connection_specific() -> None:
    headers = (("Transfer-Encoding", "chunked"), ("Alt-Svc", "h3=1"), ("Content-Length", "99"), ("X-Kept", "yes"))
    response = Response(200, "OK", headers, b"3\r\nabc\r\n0\r\n\r\n")
    assert response.replayable("GET") == Response(200, "OK", (("X-Kept", "yes"), ("Content-Length", "3")), b"abc")


def test_a_stale_chunked_header_over_a_plain_body_is_dropped() -> None:
    response = Response(200, "OK", (("Transfer-Encoding", "chunked"),), b"plain")
    assert response.replayable("GET").body == b"plain"


def test_a_head_response_keeps_the_length_of_the_body_it_does_not_have() -> None:
    response = Response(200, "OK", (("Content-Length", "1234"),), b"")
    assert response.replayable("HEAD") == response
    odd = Response(200, "OK", (("Content-Length", "1"), ("content-length", "1234"), ("X", "y")), b"")
    assert odd.replayable("HEAD").headers == (("content-length", "1234"), ("X", "y"))
    assert Response(200, "OK", (("Content-Length", "many"),), b"").replayable("HEAD").headers == ()


@pytest.mark.parametrize("status", [204, 304])
def test_a_bodiless_status_tells_no_length(status: int) -> None:
    response = Response(status, "", (("Content-Length", "5"),), b"stray")
    assert response.replayable("GET") == Response(status, "", (), b"")


def test_every_recorded_ip_becomes_one_benchmark_address(tmp_path: Path) -> None:
    first = exchange("https://a.example/", ip="192.0.2.7")
    second = exchange("https://b.example/x", ip="2001:db8::1")
    third = exchange("https://c.example/y", ip="192.0.2.7")
    site = write_site(recording(first, second, third), tmp_path / "site")
    assert site.recorded_ips == {"198.18.0.1": "192.0.2.7", "198.18.0.2": "2001:db8::1"}
    assert site.servers == {"198.18.0.1": ("a.example", "c.example"), "198.18.0.2": ("b.example",)}
    assert site.addresses == {"a.example": ("198.18.0.1",), "b.example": ("198.18.0.2",), "c.example": ("198.18.0.1",)}


def test_a_host_on_two_servers_resolves_to_both(tmp_path: Path) -> None:
    exchanges = (exchange("https://a.example/", ip="192.0.2.1"), exchange("https://a.example/x", ip="192.0.2.2"))
    site = write_site(recording(*exchanges), tmp_path / "site")
    assert site.addresses == {"a.example": ("198.18.0.1", "198.18.0.2")}


def test_a_host_that_leads_out_of_the_folder_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="not a host name"):
        write_site(recording(exchange("https://../etc")), tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_import_leaves_the_old_site_whole(tmp_path: Path) -> None:
    write_site(recording(exchange("https://a.example/", b"old")), tmp_path / "site")
    with pytest.raises(EyelevelError):
        write_site(recording(exchange("https://a.example/", b"new"), exchange("https://../")), tmp_path / "site")
    assert Site.load(tmp_path / "site").exchanges[0].bytes == 3
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("index", ["", "{}", "[]", '{"format": 99}'])
def test_a_broken_index_is_one_clear_error(index: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(index)
    with pytest.raises(EyelevelError, match="import"):
        Site.load(tmp_path)


def test_links_to_recorded_http_hosts_become_https_and_lengths_stay_true(tmp_path: Path) -> None:
    page = b'<a href="http://a.example/x?u=http://a.example/y">http:\\/\\/b.example\\/z http://other.example/ http://a.example.org/'
    exchanges, _ = upgrade(
        [
            exchange("http://a.example/", gzip.compress(page), content_type="text/html", content_encoding="gzip"),
            exchange("http://b.example/z", b"http://a.example/", content_type="image/png"),
        ]
    )
    assert [e.url for e in exchanges] == ["https://a.example/", "https://b.example/z"]
    upgraded = page.replace(b"http://a.example/", b"https://a.example/").replace(b"http:\\/", b"https:\\/")
    assert gzip.decompress(exchanges[0].response.body) == upgraded
    assert exchanges[1].response.body == b"http://a.example/", "only text is rewritten"
    stored = write_site(recording(*exchanges), tmp_path / "site").exchanges[0]
    assert stored.bytes == len(exchanges[0].response.body)


def test_a_redirect_to_its_own_https_form_is_left_out() -> None:
    exchanges, reasons = upgrade(
        [
            exchange("http://a.example/", status=301, location="https://a.example/"),
            exchange("http://b.example/", status=301, location="https://b.example/"),
            exchange("https://a.example/", b"page"),
        ]
    )
    assert [e.url for e in exchanges] == ["https://a.example/"]
    assert len(reasons) == 2


# Every recording in the corpus: its start page, and its number of exchanges.
RECORDINGS = {
    "mahimahi/about": ("https://www.about.com/", 71),
    "mahimahi/amazon": ("https://www.amazon.com/", 270),
    "mahimahi/apple": ("https://www.apple.com/", 30),
    "mahimahi/ask": ("https://www.ask.com/", 154),
    "mahimahi/ebay": ("https://www.ebay.com/", 176),
    "mahimahi/espn": ("https://espn.go.com/", 161),
    "mahimahi/fandango": ("https://mobile.fandango.com/", 45),
    "mahimahi/finishline": ("https://m.finishline.com/", 151),
    "mahimahi/imdb": ("https://www.imdb.com/", 112),
    "mahimahi/imgur": ("https://imgur.com/", 106),
    "mahimahi/outbrain": ("https://www.outbrain.com/", 96),
    "mahimahi/stackoverflow": ("https://stackoverflow.com/", 33),
    "mahimahi/weather": ("https://www.weather.com/", 295),
    "mahimahi/www.apple.com": ("https://www.apple.com/", 49),
    "mahimahi/www.yelp.com": ("https://www.yelp.com/", 62),
    "warc/Reddit.warc.gz": ("https://www.reddit.com/", 69),
    "warc/Twitter.warc.gz": ("https://www.twitter.com/", 18),
    "warc/Wikipedia.warc.gz": ("https://www.wikipedia.org/", 6),
    "har/example.har": ("https://www.iana.org/domains/example", 13),
    "har/http2.github.io.har": ("https://http2.github.io/", 21),
}


@pytest.mark.needs_corpus
@pytest.mark.parametrize("source", RECORDINGS)
def test_recordings_of_the_corpus_import_whole(source: str, tmp_path: Path) -> None:
    start, count = RECORDINGS[source]
    site = write_site(read_recording(recording_path(source)), tmp_path / "site")
    assert site.url == start
    assert len(site.exchanges) + len(site.skipped) == count
    assert all(e.url.startswith("https://") for e in site.exchanges)
    for stored in site.exchanges:
        response = parse_response((site.folder / stored.file).read_bytes())
        length = response.header("content-length")
        if stored.method != "HEAD" and length is not None:
            assert int(length) == len(response.body)
        if stored.method != "HEAD" and response.status == 200 and response.body:
            decode(response.body, response.header("content-encoding") or "")


@pytest.mark.needs_corpus
def test_a_truncated_save_file_is_named_and_the_rest_imported(tmp_path: Path) -> None:
    whole = sorted(recording_path("mahimahi/www.yelp.com").iterdir())
    for file in whole:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    broken = tmp_path / whole[0].name
    broken.write_bytes(broken.read_bytes()[:-100])
    read = mahimahi.read(tmp_path)
    assert any(reason.startswith(broken.name) for reason in read.skipped)
    assert len(read.exchanges) + len(read.skipped) == len(whole)


@pytest.mark.needs_corpus
@pytest.mark.parametrize("form", [mahimahi, har, wacz], ids=lambda form: form.__name__)
@pytest.mark.parametrize("source", ["mahimahi/www.yelp.com", "warc/Wikipedia.warc.gz", "har/http2.github.io.har"])
def test_a_site_handed_on_and_imported_again_is_the_same(source: str, form: WritableFormat, tmp_path: Path) -> None:
    site = write_site(read_recording(recording_path(source)), tmp_path / "site")
    assert lost_by_handing_on(site, form, tmp_path) == []


def test_what_is_rare_in_a_site_survives_being_handed_on(tmp_path: Path) -> None:
    page = replace(exchange("https://a.example/", b"<p>", content_type="text/html"), started_ms=0.0, ttfb_ms=12.345)
    unknown = replace(
        exchange("https://a.example/z", b"(\xb5/\xfd", content_encoding="dcz"), started_ms=0.125, ttfb_ms=0.0
    )
    part = exchange("https://a.example/p", gzip.compress(b"x" * 99)[:9], 206, content_encoding="gzip")
    post = replace(exchange("https://a.example:8443/?a=b,c", b"\0\xff", ip="2001:db8::1"), method="POST")
    empty = exchange("https://b.example/", b"", 204)
    later = [replace(one, started_ms=1.0 + number) for number, one in enumerate((part, post, empty))]
    site = write_site(recording(page, unknown, *later), tmp_path / "site")
    for form in (mahimahi, har, wacz):
        assert lost_by_handing_on(site, form, tmp_path) == []


def test_a_folder_of_raw_responses_is_a_recording(tmp_path: Path) -> None:
    host = tmp_path / "cache" / "www.a.example"
    host.mkdir(parents=True)
    (host / "index.html").write_bytes(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nX-Original-Url: https://www.a.example/\r\n\r\n<p>"
    )
    (host / "logo.png").write_bytes(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\npng")
    (host / "broken").write_bytes(b"HTTP/1.1 200 OK\r\n")
    read = read_recording(tmp_path / "cache")
    assert [e.url for e in read.exchanges] == ["https://www.a.example/", "https://www.a.example/logo.png"]
    assert read.url == "https://www.a.example/"
    assert read.skipped[0].startswith("www.a.example/broken")


def test_a_site_s_own_folder_is_a_recording(tmp_path: Path) -> None:
    page = exchange("https://a.example/", b"<p>", content_type="text/html")
    site = write_site(recording(page, exchange("https://b.example/x?y", b"1")), tmp_path / "site")
    assert [e.url for e in read_recording(site.folder).exchanges] == [e.url for e in site.exchanges]


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["import", "/no/such/recording"], "there is no recording at /no/such/recording", 1),
        (["import", "/proc/self/fd"], "not a recording that can be imported", 1),
        (["demo", "demo-nothing"], "there are demo-light, demo-news, demo-gallery", 2),
        (["export", "no-such-site", "--as", "har"], "unknown site 'no-such-site'", 1),
    ],
)
def test_a_wrong_command_is_answered_by_one_line(arguments: list[str], message: str, status: int) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "eyelevel", *arguments], capture_output=True, text=True, check=False
    )
    assert completed.returncode == status
    assert message in completed.stderr
    assert completed.stderr.count("\n") == 1


CONTENT = random.Random(1).randbytes(300_000) * 3 + bytes(5_000_000) + b"end"
ZLIB = zlib.compress(CONTENT)


@pytest.mark.parametrize(
    ("encoding", "body", "content"),
    [
        ("gzip", gzip.compress(CONTENT), CONTENT),
        ("gzip", b"", b""),
        ("deflate", ZLIB, CONTENT),
        ("deflate", ZLIB[2:-4], CONTENT),
        ("br", brotli.compress(CONTENT, quality=4), CONTENT),
        ("br", brotli.compress(bytes(1 << 24), quality=1), bytes(1 << 24)),
    ],
)
def test_a_body_of_many_pieces_is_decoded_whole_or_not_at_all(encoding: str, body: bytes, content: bytes) -> None:
    assert decode(body, encoding) == content
    for end in (len(body) // 2, 1) if body else ():
        with pytest.raises(BrokenContent):
            decode(body[:end], encoding)
