"""The page at which the load of an imported recording begins."""

import io
import json
import subprocess
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel.commands.import_ import import_recording
from record.assemble import chosen_page, start_page
from record.formats import read_recording
from record.http1 import Response
from record.intake import Intake
from record.site import Exchange
from record.summary import summary

START = "https://a.example/news"


def exchange(url: str, body: bytes = b"", *, at: float | None = None, by: str = "", **headers: str) -> Exchange:
    """A response with `body`, requested `at` this time (ms) `by` that page."""
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    referrer = (("referer", by),) if by else ()
    response = Response(301 if "location" in headers else 200, "", fields, body)
    return Exchange("GET", url, response, "192.0.2.1", started_ms=at, request_headers=referrer)


def document(url: str, body: bytes = b"<!doctype html><p>", *, at: float | None = None, by: str = "") -> Exchange:
    return exchange(url, body, at=at, by=by, content_type="text/html")


def image(number: int, *, by: str, at: float | None = None) -> Exchange:
    return exchange(f"https://a.example/{number}.png", b"png", at=at, by=by, content_type="image/png")


def images(*, by: str = START, begin: float | None = None) -> list[Exchange]:
    return [image(number, by=by, at=begin) for number in range(20)]


def begins(*exchanges: Exchange, listed: tuple[str, ...] = ()) -> str:
    return start_page(exchanges, listed, Intake("a recording", keep_cookies=False)).url


def test_it_is_found_through_redirects() -> None:
    page = document("https://m.a.example/")
    frame = document("https://ads.example/frame", b"<html> larger")
    entry = exchange("https://a.example/", location="https://m.a.example/")
    assert begins(image(1, by=page.url), frame, page, entry) == entry.url


def test_it_may_name_itself_as_its_referrer() -> None:
    frame = document("https://ads.example/sync", b"<html> larger than the page")
    assert begins(frame, document(START, by=START), *images()) == START


def test_a_tracking_pixel_that_says_text_html_is_none() -> None:
    gif = document("https://t.example/pixel", b"GIF89a<p>", at=0)
    empty = document("https://t.example/empty", b"", at=1)
    text = document("https://t.example/ok", b"OK", at=2)
    assert begins(gif, empty, text, document(START, at=3)) == START
    with pytest.raises(EyelevelError, match="no HTML page"):
        begins(gif, empty, text)


def test_the_first_by_time_of_those_that_others_name_begins_not_the_largest_or_the_most_named() -> None:
    sync = document("https://cookies.example/sync", b"<html> much larger than the page", at=0)
    page = document(START, at=1)
    later = document("https://player.example/", at=9, by="https://elsewhere.example/")
    more = [image(number, by=later.url, at=10) for number in range(40, 80)]
    assert begins(later, *more, *images(begin=2), page, sync) == START


def test_a_document_that_hardly_anything_names_is_no_start() -> None:
    consent = document("https://consent.example/", at=0)
    assert begins(consent, image(99, by=consent.url, at=1), document(START, at=2), *images(begin=3)) == START


def test_requests_that_name_its_origin_alone_name_it() -> None:
    frame = document("https://ads.example/frame", b"<html> larger", by="https://elsewhere.example/")
    others = [exchange(f"https://cdn.example/{n}", by="https://a.example/") for n in range(9)]
    inside = exchange("https://ads.example/x", by=frame.url)
    assert begins(frame, inside, document(START), *others) == START


def test_a_later_redirect_to_the_start_page_is_not_the_beginning() -> None:
    back = exchange("https://login.example/", at=50, location=START)
    assert begins(document(START, at=0), *images(begin=1), back) == START


def test_without_referrers_and_times_the_largest_document_begins() -> None:
    assert begins(document("https://ads.example/", b"<p>"), document(START)) == START


def test_what_the_archive_lists_as_its_page_begins() -> None:
    other = document("https://a.example/other", at=5, by=START)
    everything = (document(START, at=0), *images(begin=1), other)
    assert begins(*everything, listed=("https://gone.example/", "no URL", "http://A.example/other#top")) == other.url
    assert begins(*everything, listed=("https://a.example/1.png",)) == START  # a list that names a picture is ignored


def test_an_unknown_choice_is_answered_with_the_likely_ones() -> None:
    everything = [document(START), *images(), document("https://a.example/frame", by=START)]
    assert chosen_page(everything, "http://a.example/frame") == "https://a.example/frame"
    with pytest.raises(EyelevelError, match=f"was not recorded; likely ones are: {START}$"):
        chosen_page(everything, "https://a.example/none")


def warc(path: Path, *, lists: dict[str, str]) -> Path:
    """An archive with records that list pages, a larger frame, and the page START. `lists`: a record's type, and after
    a space its URL → its text."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for kind, text in lists.items():
            kind, _, target = kind.partition(" ")
            if kind == "warcinfo":
                writer.write_record(writer.create_warcinfo_record("a.warc", {"json-metadata": text}))
            else:
                content = io.BytesIO(text.encode())
                content_type = "application/json" if kind == "resource" else "application/warc-fields"
                record = writer.create_warc_record(target, kind, payload=content, warc_content_type=content_type)
                writer.write_record(record)
        for url in ("https://ads.example/frame", START):
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            body = io.BytesIO(b"<!doctype html><p>" + b"x" * (len(url) % 11) * 9)
            response = writer.create_warc_record(url, "response", payload=body, http_headers=head)
            request_head = StatusAndHeaders("GET / HTTP/1.1", [("Host", "x")], is_http_request=True)
            request = writer.create_warc_record(url, "request", payload=io.BytesIO(), http_headers=request_head)
            writer.write_request_response_pair(request, response)
    return path


@pytest.mark.parametrize(
    ("lists", "start"),
    [
        ({}, "https://ads.example/frame"),
        ({"warcinfo": json.dumps({"pages": [{"url": START, "title": "News"}]})}, START),
        ({f"resource urn:pageinfo:{START}": "{}"}, START),
        ({"metadata https://ads.example/frame": "via: x\r\n", f"metadata {START}": "seed: \r\nfetchTimeMs: 3"}, START),
        ({"warcinfo": "[1]", "metadata https://b.example/": "\ud7ff no fields"}, "https://ads.example/frame"),
    ],
    ids=["no list", "Webrecorder", "Browsertrix", "Heritrix", "broken"],
)
def test_lists_of_pages_in_web_archives(lists: dict[str, str], start: str, tmp_path: Path) -> None:
    assert read_recording(warc(tmp_path / "a.warc.gz", lists=lists)).url == start


def har_entry(url: str, second: int, by: str = "") -> dict[str, object]:
    headers = [{"name": "Referer", "value": by}] if by else []
    content = {"size": 18, "text": "<!doctype html><p>"}
    response = {"status": 200, "headers": [{"name": "content-type", "value": "text/html"}], "content": content}
    return {
        "pageref": "p",
        "startedDateTime": f"2026-01-01T00:00:0{second}Z",
        "request": {"method": "GET", "url": url, "headers": headers},
        "response": response,
    }


@pytest.mark.parametrize(("title", "start"), [("A title", "https://early.example/"), (START, START)])
def test_the_url_that_an_http_archive_calls_its_page(title: str, start: str, tmp_path: Path) -> None:
    entries = [har_entry("https://early.example/", 0), har_entry("https://a.example/x", 3, "https://early.example/")]
    log = {"pages": [{"id": "p", "title": title}], "entries": [*entries, har_entry(START, 1)]}
    path = tmp_path / "a.har"
    path.write_text(json.dumps({"log": log}))
    assert read_recording(path).url == start


def test_an_import_begins_where_it_is_asked_to(tmp_path: Path) -> None:
    source = warc(tmp_path / "a.warc.gz", lists={})
    assert f"starts at {START}" in summary(import_recording(source, tmp_path / "a", START))


def test_make_import_hands_the_url_on() -> None:
    done = subprocess.run(
        ["make", "-n", "import", "FROM=x.har", f"URL={START}"], cwd=PROJECT, text=True, capture_output=True, check=True
    )
    assert f"eyelevel import --url {START} x.har\n" in done.stdout
