"""Recordings of plain http: scripts stay on the recorded hosts, and the browser requests https."""

import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from record.http1 import Response
from record.site import Exchange
from record.upgrade import (
    PLAIN_LETTER,
    PLAIN_PROTOCOL,
    READS_LETTER,
    READS_PROTOCOL,
    in_plain_page,
    upgrade,
)

SCRIPT_PARTS = ["location.protocol", "Location.Protocol", "URL.charAt(4)", ".", "a", "$", "_", "é", " ", "=", "=="]
SCRIPT_PARTS += ["+'//'", ")", "]", "\\", r"\x3d", r"\u003D", "3d", "s"]


def upgraded(url: str, body: bytes, content_type: str, referrer: str = "", *headers: tuple[str, str]) -> Response:
    response = Response(200, "OK", (("Content-Type", content_type), *headers), body)
    referrers = (("referer", referrer),) if referrer else ()
    page = Exchange("GET", "http://a.example/", Response(200, "OK", (), b""), "192.0.2.1")
    _, exchange = upgrade([page, Exchange("GET", url, response, "192.0.2.1", request_headers=referrers)])[0]
    return exchange.response


@pytest.mark.parametrize(
    ("script", "runs"),
    [
        (
            '("https:"==document.location.protocol?"https://ssl":"http://www")',
            '("https:"==/http:/.source?"https://ssl":"http://www")',
        ),
        ("'https:' === a.b.location.protocol", "'https:' === /http:/.source"),
        ("location.protocol == 'https:'", "/http:/.source == 'https:'"),
        (r"\x22https:\x22\x3d\x3db.location.protocol?", r"\x22https:\x22\x3d\x3d/http:/.source?"),
        ("switch(a.location.protocol){", "switch(/http:/.source){"),
        ("d.URL.charAt(4)=='s'", "/:/.source=='s'"),
        ("w.location.protocol.toLowerCase()", "/http:/.source.toLowerCase()"),
    ],
)
def test_a_script_that_looks_at_the_protocol_sees_that_of_the_recording(script: str, runs: str) -> None:
    assert upgraded("http://a.example/s.js", script.encode(), "text/javascript").body == runs.encode()


@pytest.mark.parametrize(
    "script",
    [
        "location.protocol='https:'",
        "location.protocol+'//'+location.host",
        "frame().location.protocol",
        "frames[0].location.protocol",
        "location.protocols",
        "a.allocation.protocol",
    ],
)
def test_a_protocol_that_is_set_or_begins_an_origin_stays(script: str) -> None:
    assert upgraded("http://a.example/s.js", script.encode(), "text/javascript").body == script.encode()


@given(st.lists(st.sampled_from(SCRIPT_PARTS), max_size=12).map("".join))
@example("location.protocol.location.protocol=1")
@example(r"\x3da.location.protocol.URL.charAt(4)")
def test_what_is_changed_is_what_the_patterns_say(script: str) -> None:
    assert in_plain_page(script) == READS_LETTER.sub(PLAIN_LETTER, READS_PROTOCOL.sub(PLAIN_PROTOCOL, script))


def test_what_a_page_of_https_asked_for_stays_as_it_was() -> None:
    script = b"'https:'==location.protocol"
    url = "https://b.example/s.js"
    assert upgraded(url, script, "text/javascript", "https://b.example/").body == script
    assert upgraded(url, script, "text/javascript", "http://a.example/").body == b"'https:'==/http:/.source"
    page = upgraded("https://b.example/", b"<html>", "text/html", "https://b.example/")
    assert page.header("content-security-policy") is None


def test_pages_have_the_browser_ask_for_https() -> None:
    policy = ("Content-Security-Policy", "img-src *")
    response = upgraded("http://a.example/page", b"<html>", "text/html; charset=utf-8", "", policy)
    policies = [value for name, value in response.headers if name == "Content-Security-Policy"]
    assert policies == ["img-src *", "upgrade-insecure-requests"]
    assert upgraded("http://a.example/i", b"i", "image/png").header("content-security-policy") is None


def test_an_encoded_script_stays_encoded() -> None:
    body = gzip.compress(b"'https:'==location.protocol")
    response = upgraded("http://a.example/s.js", body, "text/javascript", "", ("Content-Encoding", "gzip"))
    assert gzip.decompress(response.body) == b"'https:'==/http:/.source"
