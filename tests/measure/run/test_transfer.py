"""Goodput and utilisation: the bytes in a browser's log, and their shares of a link."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from browsers.chromium.netlog import read_transfer
from browsers.contract import Transfer
from dataset.metrics import read_metrics, time_names, web_names
from measure.run.evidence import Evidence, RequestCounts
from measure.run.largest_paint import LargestPaint
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.on_off import OnOff
from tuning.networks import Network

KINDS = (
    *("TCP_CONNECT_ATTEMPT", "UDP_CONNECT", "UDP_BYTES_RECEIVED", "UDP_BYTES_SENT", "SOCKET_BYTES_RECEIVED"),
    *("SOCKET_BYTES_SENT", "URL_REQUEST_JOB_BYTES_READ", "URL_REQUEST_JOB_FILTERED_BYTES_READ"),
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
)


def event(at_ms: int, source: int, kind: str, **parameters: Any) -> dict[str, Any]:
    return {"time": str(at_ms), "source": {"id": source}, "type": KINDS.index(kind), "params": parameters}


def transfer(folder: Path, *events: dict[str, Any]) -> Transfer:
    """The transfer from 1 s to 2 s in a log with these events."""
    constants = {"logEventTypes": {name: number for number, name in enumerate(KINDS)}, "timeTickOffset": "0"}
    log = folder / "netlog.gz"
    log.write_bytes(gzip.compress(json.dumps({"constants": constants, "events": events}).encode()))
    return read_transfer(log, 1, 2)


def test_content_counts_as_it_was_transferred_and_only_what_came_over_the_network_in_time(tmp_path: Path) -> None:
    events = [event(1000, source, KINDS[-1], headers=[]) for source in (1, 2)]
    for at_ms in (1500, 1999, 2001):
        events += [event(at_ms, 1, "URL_REQUEST_JOB_BYTES_READ", byte_count=100)]
        events += [event(at_ms, 1, "URL_REQUEST_JOB_FILTERED_BYTES_READ", byte_count=300)]
        # Source 2 is a response without a content encoding. Source 3 is one from the cache, which does not count.
        events += [event(at_ms, source, "URL_REQUEST_JOB_FILTERED_BYTES_READ", byte_count=7) for source in (2, 3)]
    assert transfer(tmp_path, *events) == Transfer(2 * 100 + 2 * 7, 0, 0)


def test_datagrams_count_with_their_headers_but_for_those_of_the_name_server(tmp_path: Path) -> None:
    events = [
        event(900, 1, "UDP_CONNECT", address="198.18.0.1:443"),
        event(900, 2, "UDP_CONNECT", address="127.0.0.1:53"),
    ]
    for source in (1, 2):
        events += [event(1100, source, "UDP_BYTES_SENT", byte_count=1250)]
        events += [event(at_ms, source, "UDP_BYTES_RECEIVED", byte_count=1200) for at_ms in (999, 1200, 1300)]
    assert transfer(tmp_path, *events) == Transfer(0, 2 * 1228, 1278, 1, 1)


def test_segments_are_as_few_as_can_carry_what_each_connection_read_and_acknowledgements_are_unknown(
    tmp_path: Path,
) -> None:
    # Source 3 is a connection to a second server, over which nothing comes.
    servers = {1: "198.18.0.1:443", 2: "198.18.0.1:443", 3: "198.18.0.2:443"}
    events = [event(900, source, "TCP_CONNECT_ATTEMPT", address=address) for source, address in servers.items()]
    events += [event(1100, source, "SOCKET_BYTES_SENT", byte_count=500) for source in (1, 2)]
    events += [event(1200, 1, "SOCKET_BYTES_RECEIVED", byte_count=size) for size in (1448, 1440, 9)]
    events += [event(1200, 2, "SOCKET_BYTES_RECEIVED", byte_count=1)]
    assert transfer(tmp_path, *events) == Transfer(0, 2897 + 3 * 52 + 1 + 52, None, 2, 1)


def evidence(**values: Any) -> Evidence:
    usual: dict[str, Any] = {"failures": (), "plt": 500.0, "visual": None, "film": None, "requests": ()}
    return Evidence(**{**usual, "har_protocols": {}, "request_counts": RequestCounts(), **values})


def test_goodput_and_utilisation_are_of_the_time_until_the_load_event() -> None:
    metrics = read_metrics(evidence(transfer=Transfer(100_000, 125_000, 6_250), up_mbps=1.0, down_mbps=4.0))
    # In half a second, 0.8 Mbit of content arrive. Packets take 1 of 2 Mbit down, and 0.05 of 0.5 Mbit up.
    assert {name: metrics[name] for name in metrics.keys() - {*time_names(), *web_names()}} == pytest.approx(
        {"goodput_mbps": 1.6, "down_utilisation": 0.5, "up_utilisation": 0.1}
    )


@pytest.mark.parametrize(
    "values",
    [{"plt": None}, {"transfer": None}, {"down_mbps": None, "up_mbps": None}, {"transfer": Transfer(1, 1, None)}],
)
def test_what_is_not_known_is_empty(values: dict[str, Any]) -> None:
    whole = {"transfer": Transfer(1, 1, 1), "up_mbps": 1.0, "down_mbps": 1.0}
    metrics = read_metrics(evidence(**{**whole, **values}))
    assert metrics["up_utilisation"] is None
    assert (metrics["goodput_mbps"] is None) == (values.get("plt", 0) is None or values.get("transfer", 0) is None)


def test_a_rate_that_varies_is_no_constant_one() -> None:
    network = Network("n", min_rtt_ms=10, up_mbps=1, down_mbps=4, up_trace="a trace")
    assert [network.constant_rate_of(direction) for direction in (UP, DOWN)] == [None, 4]
    off_at_times = Network("n", min_rtt_ms=10, up_mbps=1, down_mbps=4, down_on_off=OnOff(1, 1))
    assert [off_at_times.constant_rate_of(direction) for direction in (UP, DOWN)] == [1, None]


def page(**pageinfo: Any) -> dict[str, Any]:
    timings = {"paintTiming": {"first-contentful-paint": 100}}
    return {"browserScripts": [{"timings": timings, "pageinfo": pageinfo}]}


def test_blocking_time_is_what_long_tasks_take_beyond_50_ms_from_the_first_paint_to_the_later_end() -> None:
    tasks = [{"startTime": at_ms, "duration": 80} for at_ms in (10, 60, 150, 290, 400)]
    # The second task continues for 40 ms after the paint. The load event is at 200 ms, LCP at 300 ms.
    largest = LargestPaint(300, "body > p", "")
    assert read_metrics(evidence(plt=200.0, largest=largest, page=page(longTask=tasks)))["tbt"] == 30
    assert read_metrics(evidence(plt=500.0, largest=largest, page=page(longTask=tasks)))["tbt"] == 90
    assert read_metrics(evidence(page=page(longTask=[])))["tbt"] == 0


def test_what_a_browser_does_not_give_is_empty_and_no_zero() -> None:
    metrics = read_metrics(evidence(page={"browserScripts": [{"timings": {}, "pageinfo": {}}]}))
    assert [metrics.get(name) for name in web_names()] == [None] * len(web_names())
    assert read_metrics(evidence(page=page(cumulativeLayoutShift=0)))["cls"] == 0
