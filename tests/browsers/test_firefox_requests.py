"""Firefox's own log of its requests, from two real loads.

The page has a redirect, a WebSocket, a cancelled request, one that the cache answers, and missing hosts, ports and
files. (The logs' field `redirected` was added later, by hand.)
"""

import gzip
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browsers.contract import NAME_NOT_RESOLVED, Request
from browsers.firefox_browser import BROWSER, REQUESTS

LOGS = Path(__file__).with_name("data")
ADDRESSES = {"odd.example": "198.18.0.1", "other.example": "198.18.0.2"}


def requests_of(transport: str, folder: Path) -> list[Request]:
    """The requests in the log of the load over `transport`, which is kept in `folder` as after a load."""
    results = folder / "results"
    results.mkdir()
    (results / REQUESTS).write_bytes((LOGS / f"firefox-{transport}.jsonl").read_bytes())
    BROWSER.keep_network_log(results, folder)
    return BROWSER.read_requests(folder)


def paths(requests: list[Request]) -> list[str]:
    return [urlsplit(request.url).path for request in requests]


@pytest.mark.parametrize(("transport", "version"), [("tcp", "h2"), ("quic", "h3")])
def test_what_was_answered_has_protocol_status_and_address(transport: str, version: str, tmp_path: Path) -> None:
    requests = requests_of(transport, tmp_path)
    page = requests[0]
    assert (page.url, page.method, page.main_frame, page.status) == ("https://odd.example/", "GET", True, 200)
    sent = [request for request in requests if request.protocol and request.url.startswith("https:")]
    assert {request.protocol for request in sent} == {version}
    assert all(request.address == ADDRESSES[urlsplit(request.url).hostname or ""] for request in sent)
    assert all(request.began_s and request.ended_s and request.began_s <= request.ended_s for request in sent)
    assert [request.main_frame for request in requests].count(True) == 1
    assert {request.initiator for request in requests if "odd.example/" in request.url} >= {"https://odd.example"}


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_each_hop_of_a_redirect_is_a_request(transport: str, tmp_path: Path) -> None:
    requests = requests_of(transport, tmp_path)
    moved, code = (next(one for one in requests if one.url.endswith(end)) for end in ("/moved", "/code.js"))
    assert (moved.status, moved.error) == (302, None)
    assert (code.status, code.error) == (200, None)
    assert (moved.redirected, code.redirected) == (False, True)


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_only_what_the_network_did_is_an_error(transport: str, tmp_path: Path) -> None:
    requests = requests_of(transport, tmp_path)
    of_path = {urlsplit(request.url).path: request for request in requests}
    assert of_path["/x.png"].error == NAME_NOT_RESOLVED
    taken_back = of_path["/b.txt"]
    assert (taken_back.protocol, taken_back.error) == (None, None)
    missing = of_path["/missing.png"]
    assert (missing.status, missing.error) == (404, None)


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_what_the_cache_answers_was_not_sent(transport: str, tmp_path: Path) -> None:
    first, again = (one for one in requests_of(transport, tmp_path) if one.url.endswith("/a.txt"))
    assert first.protocol and first.address
    assert (again.protocol, again.address, again.status) == (None, None, 200)


def test_a_port_where_nobody_is_refuses_the_connection(tmp_path: Path) -> None:
    refused = next(one for one in requests_of("tcp", tmp_path) if ":444/" in one.url)
    assert (refused.protocol, refused.error) == (None, "NS_ERROR_CONNECTION_REFUSED")


def test_a_websocket_is_one_by_its_url_and_goes_over_tcp_alone(tmp_path: Path) -> None:
    (tmp_path / "tcp").mkdir()
    (tmp_path / "quic").mkdir()
    over_tcp, over_quic = (
        next(one for one in requests_of(transport, tmp_path / transport) if one.url == "wss://other.example/socket")
        for transport in ("tcp", "quic")
    )
    assert over_tcp.protocol == "http/1.1"
    assert (over_quic.protocol, over_quic.error) == (None, "NS_ERROR_CONNECTION_REFUSED")


def test_what_the_browser_asks_for_itself_is_its_own(tmp_path: Path) -> None:
    requests = [request for request in requests_of("quic", tmp_path) if request.by_browser]
    assert [request.url for request in requests] == ["https://127.0.0.1/selfsupport-dummy/"]


def test_a_log_that_was_cut_short_has_what_came_before(tmp_path: Path) -> None:
    text = (LOGS / "firefox-tcp.jsonl").read_text()
    (tmp_path / BROWSER.network_log).write_bytes(gzip.compress(text[: len(text) // 2].encode()))
    requests = BROWSER.read_requests(tmp_path)
    (tmp_path / BROWSER.network_log).write_bytes(gzip.compress(text.encode()))
    assert requests
    assert paths(requests) == paths(BROWSER.read_requests(tmp_path))[: len(requests)]


def test_a_log_that_is_broken_or_missing_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        BROWSER.read_requests(tmp_path)
    for broken in ("no JSON\n", '{"channel": 1, "at_ms": 1, "event": "http-on-stop-request", "code": 0}\n'):
        (tmp_path / BROWSER.network_log).write_bytes(gzip.compress(broken.encode()))
        with pytest.raises((ValueError, KeyError)):
            BROWSER.read_requests(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    results, kept = tmp_path / "results", tmp_path / "kept"
    for folder in (results, kept):
        folder.mkdir()
    (results / REQUESTS).symlink_to(tmp_path / "secret")
    BROWSER.keep_network_log(results, kept)
    assert not list(kept.iterdir())
