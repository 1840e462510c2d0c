"""All servers answer every request alike: status, header fields and their order, body bytes.

Caddy, which is tested if it is set up, is an exception: it sends header fields in its own order, and no hop-by-hop
fields. This uses only a few recordings, chosen for their oddities; `tests/proof/test_level_corpus.py` uses all.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from support.level import Request, differences, fetch
from support.material import recording_path

from record.formats import mahimahi
from record.http1 import Headers, Response
from record.site import Exchange, Recording, write_site
from record.urls import normal_url

SITES = ["www.yelp.com", "imdb"]  # the last with redirects to relative locations

# The protocols of all servers; each server is compared with NGINX.
OTHERS = [
    pytest.param(("quic",), id="quic_server"),
    pytest.param(("quinn-h3",), id="quinn", marks=pytest.mark.needs_quinn),
    pytest.param(("caddy-h2", "caddy-h3"), id="caddy", marks=pytest.mark.needs_caddy),
]

pytestmark = pytest.mark.needs_namespaces


@pytest.mark.needs_corpus
@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("others", OTHERS)
def test_every_recorded_exchange_comes_back_alike_and_as_recorded(
    name: str, others: tuple[str, ...], tmp_path: Path
) -> None:
    site = write_site(mahimahi.read(recording_path(f"mahimahi/{name}")), tmp_path / name)
    assert differences(site, tmp_path, ("tcp", *others)) == []


# Header fields that servers, NGINX in particular, might interpret, and fields whose differences show only on the wire.
ODD_HEADERS: tuple[Headers, ...] = (
    (("Status", "500 Internal Server Error"),),
    (("X-Accel-Redirect", "/elsewhere"), ("X-Accel-Buffering", "no"), ("X-Accel-Expires", "0")),
    (("X-Accel-Charset", "utf-8"), ("X-Accel-Limit-Rate", "100")),
    (("Location", "/relative"),),
    (("Location", "https://a.example/absolute"), ("Location", "https://a.example/twice")),
    (("Refresh", "0; url=http://a.example/"),),
    (("Content-Type", "TEXT/HTML;Charset=ISO-8859-1"),),
    (("Content-Type", ""),),
    (("Content-Type", "text/html"), ("Content-Type", "text/plain")),
    (("Set-Cookie", "a=1"), ("X", "between"), ("Set-Cookie", "b=2; expires=Thu, 01 Jan 2026 00:00:00 GMT")),
    (("Cache-Control", "no-store"), ("Cache-Control", "private"), ("Expires", "0"), ("Pragma", "no-cache")),
    (("Pragma", "no-cache"),),
    (("Pragma", "no-cache"), ("pragma", "no-cache"), ("Pragma", "x")),
    (("Vary", "Accept-Encoding"), ("vary", "Origin"), ("VARY", "*")),
    (("Link", "</style.css>; rel=preload; as=style"),),
    (("ETag", 'W/"x"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")),
    (("Last-Modified", "not a date"),),
    (("ETag", '"a"'), ("ETag", '"b"'), ("Expires", "0"), ("Expires", "1"), ("Refresh", "1"), ("Refresh", "2")),
    (("Date", "not a date either"), ("Server", "two words"), ("Server", "another")),
    (("Content-Encoding", "gzip"),),
    (("Content-Encoding", ""), ("Content-Language", "")),
    (("Accept-Ranges", "none"), ("Content-Range", "bytes 0-3/100")),
    (("WWW-Authenticate", 'Basic realm="x"'),),
    (("Via", "1.1 x"), ("Age", "-1")),
    (("Content-Length", "999"), ("Content-Disposition", "inline")),
    (("under_score", "1"), ("x!#$%&'*+-.^`|~", "token"), ("X", "")),
    (("Latin", "caf\xe9"), ("High", "\xff\x80"), ("Tab", "a\tb"), ("Quote", '"\\')),
    (("Long", "x" * 20_000), ("Set-Cookie", "y" * 9_000)),
    tuple((f"X-{number}", str(number)) for number in range(300)),
    (("Upgrade", "h2c"), ("Keep-Alive", "timeout=5"), ("Connection", "close"), ("Alt-Svc", 'h3=":443"')),
    (("Strict-Transport-Security", "max-age=1"), ("Public-Key-Pins", "x"), ("Clear-Site-Data", '"*"')),
)
# Hop-by-hop fields (RFC 9110, section 7.6.1): Caddy, which forwards responses, omits them.
OF_ONE_HOP: tuple[Headers, ...] = ((("Proxy-Authenticate", "Basic"), ("Trailer", "Expires"), ("TE", "trailers")),)
ODD_STATUSES = [200, 201, 203, 204, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 407]
ODD_STATUSES += [408, 410, 413, 414, 416, 417, 418, 421, 425, 426, 429, 431, 444, 451, 494, 495, 496, 497, 499]
ODD_STATUSES += [500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599]
ODD_TARGETS = (
    "/?" + "q" * 20_000,
    "/a//b/../c/./d",
    "/a/%2e%2e/%41?%zz%00",
    "/a/../b/..%2fc",
    "/;a=b,c",
    "/?#",
    "/[]{}|\\^'",
    "/*",
    "//",
    "/?a?b",
)
# The crate h3 refuses this in a path, and no browser sends it there (WHATWG URL standard, path percent-encode set).
BACKTICK = "/`"
PREFLIGHT = [["origin", "https://x.example"], ["access-control-request-method", "PUT"]]
ALONE = "https://alone.example/"
# Requests that are answered without an exchange of their own, at a host with one page, and the statuses of the answers.
MADE_UP: tuple[tuple[Request, int], ...] = (
    ({"method": "HEAD", "url": ALONE}, 200),
    ({"method": "GET", "url": f"{ALONE}never/recorded?at=all"}, 404),
    ({"method": "OPTIONS", "url": f"{ALONE}never/recorded", "headers": PREFLIGHT}, 204),
    (
        {
            "method": "OPTIONS",
            "url": f"{ALONE}never/recorded",
            "headers": [*PREFLIGHT, ["access-control-request-headers", "a,b"]],
        },
        204,
    ),
    ({"method": "OPTIONS", "url": f"{ALONE}never/recorded"}, 404),
    ({"method": "GET", "url": f"{ALONE}?prefix"}, 200),
    ({"method": "GET", "url": ALONE, "headers": [["range", "bytes=0-1"], ["if-modified-since", "x"]]}, 200),
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "PROPFIND", "X-OWN")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("others", OTHERS)
def test_what_is_odd_in_a_response_comes_back_as_it_was_recorded_and_made_up_answers_are_alike_too(
    others: tuple[str, ...], tmp_path: Path
) -> None:
    headers_of_all = (*ODD_HEADERS, *(() if "caddy-h2" in others else OF_ONE_HOP))
    exchanges = [odd("GET", "/", 200, (("Content-Type", "text/html"),))]
    exchanges += [odd("GET", f"/status/{status}", status, ()) for status in ODD_STATUSES]
    exchanges += [odd("GET", f"/odd/{number}", 200, headers) for number, headers in enumerate(headers_of_all)]
    exchanges += [odd("GET", f"/missing/{number}", 404, headers) for number, headers in enumerate(headers_of_all)]
    exchanges += [odd("GET", f"/unchanged/{number}", 304, headers) for number, headers in enumerate(headers_of_all)]
    exchanges += [odd("HEAD", f"/head/{number}", 200, headers) for number, headers in enumerate(headers_of_all)]
    targets = ODD_TARGETS if "quinn-h3" in others else (*ODD_TARGETS, BACKTICK)
    exchanges += [odd("GET", target, 200, ()) for target in targets]
    exchanges += [odd(method, "/method", 200, ()) for method in METHODS]
    exchanges += [odd("GET", f"/length/{length}", 200, (), b"x" * length) for length in (0, 1, 16_384, 1_100_000)]
    exchanges += [Exchange("GET", "https://a.example:8443/", Response(200, "", (), b"port"), "192.0.2.1")]
    exchanges += [replace(exchanges[0], url=ALONE, recorded_ip="192.0.2.2")]
    site = write_site(Recording(exchanges[0].url, tuple(exchanges), {"tool": "test"}), tmp_path / "site")
    assert differences(site, tmp_path, ("tcp", *others), MADE_UP) == []


def odd(method: str, target: str, status: int, headers: Headers, body: bytes = b"body") -> Exchange:
    return Exchange(method, normal_url(f"https://a.example{target}"), Response(status, "", headers, body), "192.0.2.1")


@pytest.mark.needs_caddy
@pytest.mark.parametrize("protocol", ["caddy-h2", "caddy-h3"])
def test_an_answer_comes_when_all_of_the_request_has_come(protocol: str, tmp_path: Path) -> None:
    page = odd("POST", "/", 200, (("Content-Type", "text/html"),))
    site = write_site(Recording(page.url, (page,), {"tool": "test"}), tmp_path / "site")
    request = {"method": "POST", "url": page.url, "body_bytes": 60_000}
    # Browsers send the length of a body, but not if they stream it; if it were not read, some answers would be lost.
    requests: list[Request] = [{**request, "headers": [["content-length", "60000"]]}, *10 * [request]]
    answers = fetch(site, protocol, requests, tmp_path)
    assert [(answer["status"], answer["length"]) for answer in answers] == [(200, 4)] * len(requests)


@pytest.mark.parametrize(
    "protocol",
    [
        "tcp",
        "quic",
        pytest.param("quinn-h3", marks=pytest.mark.needs_quinn),
        *(pytest.param(name, marks=pytest.mark.needs_caddy) for name in ("caddy-h2", "caddy-h3")),
    ],
)
def test_servers_take_as_long_as_the_recorded_ones_when_asked_to(protocol: str, tmp_path: Path) -> None:
    waits_ms = (None, 0.0, 150.0, 700.5)
    exchanges = tuple(
        Exchange("GET", f"https://a.example/{wait_ms}", Response(200, "", (), b"x"), "192.0.2.1", ttfb_ms=wait_ms)
        for wait_ms in waits_ms
    )
    site = write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), tmp_path / "site")
    requests: list[Request] = [{"method": "GET", "url": exchange.url} for exchange in exchanges]

    def least_ms(*, think_time: bool) -> list[float]:
        """The least of three times of each request: a busy machine makes single answers late."""
        answers = fetch(site, protocol, 3 * requests, tmp_path, think_time=think_time)
        return [min(one["ttfb_ms"] for one in answers[number :: len(requests)]) for number in range(len(requests))]

    hurried, taking_time = least_ms(think_time=False), least_ms(think_time=True)
    for wait_ms, at_once, late in zip(waits_ms, hurried, taking_time, strict=True):
        assert at_once < 150
        assert (wait_ms or 0) <= late < (wait_ms or 0) + 500
