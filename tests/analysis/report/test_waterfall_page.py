"""The page of a waterfall in a real browser: it fits, folds, links to its numbers and shows URLs as text."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.axe import accessible
from support.browser import Browser

from analysis.report.waterfalls.loads import Load, LoadedRequest
from analysis.report.waterfalls.page import write_waterfall

pytestmark = pytest.mark.needs_browser

HOSTILE = "https://a.example/</script><script>document.title='pwned'</script>\"'><b>"
REQUESTS = 300


def load(folder: Path, protocol: str, later_ms: float, count: int = REQUESTS) -> Load:
    """A load of `count` requests, every tenth of which is delayed by `later_ms`."""
    requests = []
    for number in range(count):
        start = 10.0 * number + (later_ms if number % 10 == 0 else 0)
        spans = {
            "queue": (start, start + 20),
            "wait": (start + 20, start + 100),
            "download": (start + 100, start + 140),
        }
        url = HOSTILE if number == 7 else f"https://a.example/{'long-' * 30}{number}.png?{'q' * 200}"
        priority = ("image", "Low", protocol, 200, 1234, "7", "198.18.0.4", False)
        requests.append(LoadedRequest(url, "GET", *priority, start, spans))
    metrics = {"fvc": 300.0, "lcp": 2800.0, "plt": 3200.0 + later_ms, "lvc": 3000.0}
    paint = {
        "painted_ms": 2800.0,
        "url": requests[min(2, count - 1)].url,
        "requested_ms": 40.0,
        "arrived_ms": 160.0,
        "urgency": 3,
    }
    paint["ahead_bytes"] = {"more urgent": 20_000}
    whole = (metrics, tuple(requests), "{}", "asked for", paint)
    return Load(folder, "site", "lte", protocol, 1, folder / protocol, *whole)


def test_a_waterfall_of_many_requests_fits_folds_and_is_the_same_in_numbers(browser: Browser, tmp_path: Path) -> None:
    write_waterfall([load(tmp_path, "tcp+", 0), load(tmp_path, "quic", 400)], tmp_path)
    visible_rows = "return [...document.querySelectorAll('li.row')].filter((row) => row.offsetHeight).length"
    for width in (1400, 390):
        browser.narrow(width)
        browser.open((tmp_path / "index.html").as_uri())
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.run("return document.title").startswith("site on LTE: TCP+ run 1 and QUIC run 1")
        assert browser.run(visible_rows) == REQUESTS
        # A key press does the same.
        browser.run("document.getElementById('show-differing').click()")
        assert browser.run(visible_rows) == REQUESTS // 10
        # The bar's position on the axis matches its time.
        places = browser.run(
            "const time = document.querySelector('ol .time').getBoundingClientRect();"
            "const bars = document.querySelectorAll('ol li.differing svg .download');"
            "return [...bars].slice(0, 2).map((bar) => (bar.getBoundingClientRect().x - time.x) / time.width);"
        )
        # The axis ends at 3600 ms, at the load event of the load that takes longer.
        assert places == pytest.approx([100 / 3600, 500 / 3600], abs=0.002)
        named = browser.run(
            "return document.querySelector(document.querySelector('li a').getAttribute('href')).innerText"
        )
        assert named.split("\t")[1:4] == ["A", "200", "tcp+"]
    rows = browser.run("return document.querySelectorAll('[id^=request-]').length")
    assert rows == REQUESTS
    assert HOSTILE in browser.run("return document.body.innerText")
    assert browser.console() == []
    assert (
        browser.run("return performance.getEntriesByType('resource').filter((e) => !e.name.startsWith('data:')).length")
        == 0
    )


def test_a_request_with_another_query_in_each_load_has_both_urls(tmp_path: Path) -> None:
    first, second = load(tmp_path, "tcp+", 0, 1), load(tmp_path, "quic", 0, 1)
    (request,) = second.requests
    write_waterfall([first, replace(second, requests=(replace(request, url=f"{request.url}&n=<2>"),))], tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert f"GET {request.url}<br>GET {request.url}&amp;n=&lt;2&gt;</th>" in text


@pytest.mark.needs_axe
def test_everybody_can_read_a_waterfall(browser: Browser, tmp_path: Path) -> None:
    # All kinds of rows are present.
    write_waterfall([load(tmp_path, "tcp+", 0, 21), load(tmp_path, "quic", 400, 21)], tmp_path)
    assert accessible(browser, (tmp_path / "index.html").as_uri()) == []
