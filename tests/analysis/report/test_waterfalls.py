"""Waterfalls: the differences between two loads, the median run of a setting, and the meaning of a HAR's times."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.report.waterfalls.differences import FRAME_MS, default_threshold_ms, match, rows_of_loads
from analysis.report.waterfalls.loads import Load, LoadedRequest, median_run, named_run, read_load, requests_of
from analysis.report.waterfalls.page import write_waterfall
from base.errors import EyelevelError
from dataset.har import navigated_s
from dataset.navigation import Navigation
from dataset.run_files import HAR


def entry(url: str, protocol: str, second: float, **timings: float) -> dict[str, Any]:
    """An entry of a HAR as Browsertime writes it (chrome-har), for a request begun this many seconds after 12:00."""
    return {
        "pageref": "page_1",
        "startedDateTime": f"2026-11-23T12:00:{second:06.3f}Z",
        "request": {"method": "GET", "url": url},
        "response": {"httpVersion": protocol, "status": 200, "content": {}, "_transferSize": 1000, "bodySize": 900},
        "timings": {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0, "receive": 0, **timings},
        "_priority": "High",
    }


def har(*entries: dict[str, Any]) -> dict[str, Any]:
    pages = [{"id": f"page_{second}", "startedDateTime": f"2026-11-23T12:00:0{second}.000Z"} for second in (0, 1)]
    return {"log": {"pages": pages, "entries": list(entries)}}


def load_of(*requests: tuple[str, float, float]) -> Any:
    """A load with requests: URL, begin and end (ms)."""
    entries = [entry(url, "h2", 1 + start / 1000, wait=end - start) for url, start, end in requests]
    return requests_of(har(*entries))


def differing(first: Any, second: Any, threshold_ms: float = 50) -> dict[str, tuple[str, ...]]:
    class Side:
        def __init__(self, requests: tuple[LoadedRequest, ...]) -> None:
            self.requests = requests

    rows = rows_of_loads([Side(first), Side(second)], threshold_ms)  # type: ignore[list-item]
    return {row.some.url: row.differences for row in rows if row.differences}


def test_phases_follow_each_other_from_when_a_request_was_wanted_to_its_last_byte() -> None:
    # In Chromium's HARs, a request's start does not include its time in the page's queue (`_queued`), and `connect`
    # includes TLS.
    times = {"_queued": 20, "blocked": 5, "dns": 10, "connect": 90, "ssl": 50, "send": 1, "wait": 60, "receive": 14}
    (tcp,) = requests_of(har(entry("https://a/", "h2", 1.1, **times)))
    assert tcp.start_ms == pytest.approx(80, abs=0.01)
    lengths = {phase: round(end - begin) for phase, (begin, end) in tcp.spans.items()}
    assert lengths == {"queue": 25, "dns": 10, "tcp": 40, "tls": 50, "wait": 61, "download": 14}
    assert [begin for begin, _ in [*tcp.spans.values()][1:]] == [end for _, end in [*tcp.spans.values()][:-1]]
    assert tcp.duration_ms == pytest.approx(200)
    # QUIC's handshake includes TLS's; the HAR counts it as both.
    (quic,) = requests_of(har(entry("https://a/", "h3", 1.1, connect=50, ssl=50, wait=60)))
    assert {phase: round(end - begin) for phase, (begin, end) in quic.spans.items()} == {"quic": 50, "wait": 60}


@pytest.mark.parametrize(
    ("first_data_ms", "lengths", "over"),
    [
        # Relative to the page's start, 100 ms before the request. The response's header needs 3 ms more than the
        # handshake.
        (705, {"early": 600, "wait": 3}, "h3 0-RTT"),
        (1310, {"quic": 600, "wait": 603}, "h3"),
    ],
)
def test_a_request_whose_answer_came_with_the_handshake_was_early_data(
    first_data_ms: float, lengths: dict[str, float], over: str
) -> None:
    opened = entry("https://a/", "h3", 1.1, connect=600, ssl=600, send=1, wait=602)
    (request,) = requests_of(har({**opened, "_chunks": [{"ts": first_data_ms, "bytes": 900}]}))
    assert {phase: round(end - begin) for phase, (begin, end) in request.spans.items()} == lengths
    assert request.over == over


def test_the_requests_of_a_page_that_led_to_another_are_there_from_the_first_navigation_on() -> None:
    before, first, last = (entry(f"https://a/{second}", "h2", second, wait=10) for second in (0.5, 1.05, 1.2))
    document = har({**before, "pageref": "page_0"}, {**first, "pageref": "page_0"}, last)
    began_ms = 1000 * navigated_s(document) + 20
    followed = requests_of(document, Navigation(began_ms, followed_ms=170))
    assert [round(request.start_ms) for request in followed] == [30, 180]
    # If a page did not lead to another one, only its own requests are included, from its own start on.
    assert [round(request.start_ms) for request in requests_of(document, Navigation(began_ms, 0))] == [200]


def test_only_what_differs_by_more_than_the_threshold_is_marked() -> None:
    first = load_of(("/", 0, 100), ("/a", 100, 200), ("/b", 100, 200), ("/c", 300, 400))
    second = load_of(("/", 0, 149), ("/a", 151, 251), ("/b", 149, 300), ("/d", 300, 400))
    assert differing(first, second) == {
        "/a": ("B starts 51 ms later",),
        "/b": ("B takes 51 ms more",),
        "/c": ("only in A",),
        "/d": ("only in B",),
    }


def test_responses_differ_in_size_by_more_than_their_headers_may() -> None:
    def of(*sizes: int | None) -> Any:
        return [replace(request, bytes=size) for request, size in zip(load_of(*urls), sizes, strict=True)]

    urls = [(f"/{number}", 0.0, 1.0) for number in range(5)]
    assert differing(of(500, 900, 99_000, 99_000, None), of(1600, 1800, 92_000, 103_000, 5000), 999) == {
        "/0": ("+1,100 bytes",),
        "/2": ("-7,000 bytes",),
    }


def test_the_fewest_requests_are_in_another_order_and_those_of_a_burst_are_in_none() -> None:
    first = load_of(("/a", 0, 1), ("/b", 100, 101), ("/c", 200, 201), ("/d", 300, 301))
    assert differing(first, load_of(("/b", 0, 1), ("/c", 100, 101), ("/a", 200, 201), ("/d", 300, 301)), 999) == {
        "/a": ("other order",)
    }
    burst = load_of(("/a", 0, 1), ("/b", 5, 6), ("/c", 14, 15))
    assert differing(burst, load_of(("/c", 0, 1), ("/b", 50, 51), ("/a", 100, 101)), 999) == {}


def test_requests_are_the_same_by_url_then_without_their_query_and_the_nth_is_the_nth() -> None:
    first = load_of(("/a?1", 0, 1), ("/a?2", 10, 11), ("/b", 20, 21), ("/b", 30, 31))
    second = load_of(("/a?3", 0, 1), ("/a?1", 10, 11), ("/b", 20, 21))
    pairs = [
        tuple(request and (request.url, round(request.start_ms)) for request in pair) for pair in match(first, second)
    ]
    assert pairs == [
        (("/a?1", 0), ("/a?1", 10)),
        (("/b", 20), ("/b", 20)),
        (("/a?2", 10), ("/a?3", 0)),
        (("/b", 30), None),
    ]


def test_the_same_request_in_the_hars_of_two_browsers_is_one() -> None:
    ((first, second),) = match(load_of(("/a|b?{1}", 0, 1)), load_of(("/a%7Cb?%7B1%7D#top", 5, 6)))
    assert first and second


def runs_of(**columns: list[Any]) -> pd.DataFrame:
    count = len(columns["si"])
    alike = {"site": "s", "network": "lte", "protocol": "quic", "valid": True, "reason": ""}
    table = pd.DataFrame({**{name: [value] * count for name, value in alike.items()}, **columns})
    return table.assign(
        run=range(1, count + 1), folder=[f"runs/s/lte/quic/{number}-1" for number in range(1, count + 1)]
    )


def test_the_median_run_is_the_nearest_to_both_medians_or_to_that_of_the_metric() -> None:
    # Run 2 has the median SI and an unusual PLT, run 4 the median PLT and an unusual SI; run 3 is near both medians.
    runs = runs_of(si=[500, 600, 610, 900, 700], plt=[900, 2000, 1010, 1000, 950])
    assert median_run(runs, "s", "lte", "quic")[0]["run"] == 3
    assert "5 runs that count, the nearest to their median SI and PLT" in median_run(runs, "s", "lte", "quic")[1]
    assert median_run(runs, "s", "lte", "quic", "plt")[0]["run"] == 4
    runs.loc[3, "valid"] = False
    assert median_run(runs, "s", "lte", "quic", "plt")[0]["run"] != 4
    with pytest.raises(EyelevelError, match="no run of s on lte over tcp counts"):
        median_run(runs, "s", "lte", "tcp")
    with pytest.raises(EyelevelError, match="no metric lcpp"):
        median_run(runs, "s", "lte", "quic", "lcpp")


def test_of_runs_that_were_made_elsewhere_the_nearest_with_requests_here_is_shown(tmp_path: Path) -> None:
    runs = runs_of(si=[500, 600, 610, 900, 700], plt=[900, 2000, 1010, 1000, 950])
    for number in (1, 5):
        (tmp_path / f"runs/s/lte/quic/{number}-1").mkdir(parents=True)
        (tmp_path / f"runs/s/lte/quic/{number}-1" / HAR).touch()
    row, why = median_run(runs, "s", "lte", "quic", within=tmp_path)
    assert row["run"] == 5
    assert why == "of 5 runs that count, the nearest of the 2 whose requests are here to their median SI and PLT"
    # If no run has the files, the median run is still returned, so that the error names it.
    assert median_run(runs, "s", "lte", "quic", within=tmp_path / "none")[0]["run"] == 3


def test_a_run_is_named_by_the_end_of_its_folder_if_that_is_one_folders() -> None:
    runs = runs_of(si=[1] * 12)
    assert named_run(runs, "quic/1-1")[0]["run"] == 1
    assert named_run(runs, "s/lte/quic/11-1")[0]["run"] == 11
    with pytest.raises(EyelevelError, match="no run's folder ends with 'uic/1-1'"):
        named_run(runs, "uic/1-1")
    with pytest.raises(EyelevelError, match="2 runs' folders end with 'quic/1-1'"):
        named_run(pd.concat([runs, runs.assign(folder="runs/s/dsl/quic/1-1").head(1)]), "quic/1-1")


def test_a_run_without_its_har_is_refused_in_one_line_that_names_it(tmp_path: Path) -> None:
    row = {"site": "s", "network": "lte", "protocol": "quic", "run": 1, "folder": "runs/s/lte/quic/1-1", "plt": 500.0}
    folder = tmp_path / row["folder"]  # type: ignore[operator]
    folder.mkdir(parents=True)
    for content in (None, b"no gzip", gzip.compress(b'{"log": {"pages": []}}'), gzip.compress(b"[")):
        if content is not None:
            (folder / "browsertime.har.gz").write_bytes(content)
        with pytest.raises(EyelevelError, match=r"browsertime\.har\.gz") as error:
            read_load(tmp_path, row, "")
        assert "\n" not in str(error.value)
    (folder / "browsertime.har.gz").write_bytes(gzip.compress(json.dumps(har(entry("/", "h3", 1.1, wait=9))).encode()))
    load = read_load(tmp_path, row, "")
    assert (load.end_ms, len(load.requests)) == (500, 1)
    # The threshold is one frame of the film if 5 % of the load is less.
    assert default_threshold_ms([load]) == FRAME_MS


PAINT = {"painted_ms": 912.0, "url": "https://a/hero.png", "requested_ms": 310.0, "arrived_ms": 850.4, "urgency": 3}
BEFORE, MORE_URGENT, LATER = "as urgent, requested before", "more urgent", "as urgent, requested later"


@pytest.mark.parametrize(
    ("paint", "said", "is_marked"),
    [
        (
            {**PAINT, "ahead_bytes": {MORE_URGENT: 20_400, BEFORE: 100_000, LATER: 0}},
            "is hero.png: requested at 310 ms with urgency 3, complete at 850 ms; in between, its connection "
            "carried other responses: 20.4 kB more urgent and 100.0 kB as urgent, requested before.",
            True,
        ),
        ({**PAINT, "ahead_bytes": {LATER: 0}}, "in between, its connection carried no other response.", True),
        ({**PAINT, "url": "https://a/hero.png#part", "ahead_bytes": {}}, "is hero.png: requested at 310 ms", True),
        ({**PAINT, "requested_ms": None}, "is hero.png; the network log does not have its request.", True),
        ({"painted_ms": 912.0, "url": ""}, "The largest paint (LCP) of A, at 912 ms, is text.", False),
        ({}, "", False),
    ],
)
def test_the_largest_paint_is_said_and_its_request_marked(
    tmp_path: Path, paint: dict[str, Any], said: str, is_marked: bool
) -> None:
    requests = load_of(("https://a/", 0, 300), ("https://a/hero.png", 310, 850))
    one = Load(
        tmp_path, "s", "lte", "quic", 1, tmp_path, {"plt": 860.0, "lcp": 912.0}, requests, "{}", "asked for", paint
    )
    assert one.end_ms == 912
    write_waterfall([one], tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert said in page and ("The largest paint" in page) == bool(said)
    assert page.count(">LCP of A<") == is_marked
    if is_marked:
        assert "hero.png</a><b" in page
