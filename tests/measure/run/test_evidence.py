"""The evidence in a run's folder: the netlog, the HAR, Browsertime's timings, and the servers' log."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.bounded import JSON_BYTES
from browsers.chromium.netlog import BROWSERS_PURPOSES, PREFETCH, read_netlog, read_streams
from browsers.chromium_browser import BROWSER
from browsers.contract import Request, StreamRequest
from dataset.run_files import HAR, LOG, REPLAY_EVIDENCE, REQUEST_LOG, SYNS, TIMINGS, VISUAL
from measure.run.evidence import RequestCounts, read_evidence, read_request_log

KINDS = [
    "REQUEST_ALIVE",
    "URL_REQUEST_START_JOB",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    "LOCAL_NETWORK_ACCESS_CHECK",
    "HTTP_CACHE_ADD_TO_ENTRY",
    "HTTP2_SESSION_SEND_HEADERS",
    "HTTP2_SESSION_RECV_DATA",
    "QUIC_CHROMIUM_CLIENT_STREAM_SEND_REQUEST_HEADERS",
    "QUIC_SESSION_STREAM_FRAME_RECEIVED",
    "HTTP_STREAM_JOB_CONTROLLER_BOUND",
    "HTTP_STREAM_JOB_CONTROLLER_ALT_SVC_FOUND",
    "HOST_RESOLVER_DNS_TASK_EXTRACTION_RESULTS",
]
ERRORS = {"ERR_ABORTED": -3, "ERR_CONNECTION_RESET": -101, "ERR_NAME_NOT_RESOLVED": -105, "ERR_CACHE_MISS": -400}


def event(source: int, kind: str, **parameters: Any) -> dict[str, Any]:
    return {"type": KINDS.index(kind), "source": {"id": source, "type": 1}, "params": parameters}


def start(source: int, url: str, **more: Any) -> dict[str, Any]:
    usual = {"method": "GET", "request_type": "other", "initiator": "https://a.example"}
    return event(source, "URL_REQUEST_START_JOB", url=url, **{**usual, **more})


def answer(source: int, status: int, address: str = "198.18.0.1") -> list[dict[str, Any]]:
    sent = "TransportInfo{ type = TransportType::kDirect, endpoint = " + address + ":443, is_issued = false }"
    return [
        event(source, "LOCAL_NETWORK_ACCESS_CHECK", transport_info=sent),
        event(source, "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", headers=[":method: GET"]),
        event(source, "HTTP_TRANSACTION_READ_RESPONSE_HEADERS", headers=[f"HTTP/1.1 {status}"]),
    ]


def log_text(events: list[dict[str, Any]], **more: str) -> str:
    """A netlog as Chromium writes it: one event a line."""
    constants = {"logEventTypes": {name: number for number, name in enumerate(KINDS)}, "netError": ERRORS, **more}
    lines = ",\n".join(json.dumps(event) for event in events)
    last = json.dumps({"type": 99, "source": {"id": 0}})
    return f'{{"constants":{json.dumps(constants)},\n"events": [\n{lines},\n{last}],\n"polledData": []\n}}\n'


def netlog(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


PAGE = [start(1, "https://a.example/", request_type="main frame", initiator="null"), *answer(1, 200)]


def test_a_request_and_its_answer(tmp_path: Path) -> None:
    (request,) = read_netlog(netlog(tmp_path / "n.gz", log_text(PAGE)))
    assert request == Request("https://a.example/", "GET", True, False, "198.18.0.1", "h3", 200, None, "null")


def test_a_hop_says_that_a_redirect_led_to_it(tmp_path: Path) -> None:
    events = [*PAGE, start(1, "https://a.example/moved", request_type="main frame"), start(2, "https://a.example/i")]
    requests = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [request.redirected for request in requests] == [False, True, False]


def test_a_page_that_is_made_ready_and_not_shown_is_none(tmp_path: Path) -> None:
    headers = [":method: GET", "sec-purpose: prefetch;prerender"]
    sent = event(2, "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", headers=headers)
    events = [*PAGE, start(2, "https://a.example/next", request_type="main frame"), sent]
    requests = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [request.main_frame for request in requests] == [True, False]


def test_a_request_has_the_times_of_its_beginning_and_end(tmp_path: Path) -> None:
    events = [
        {**start(1, "https://a.example/"), "time": "1000", "phase": 1},
        {**start(1, "https://b.example/"), "time": "1250", "phase": 1},
        {**event(1, "URL_REQUEST_START_JOB"), "time": "1260", "phase": 2},
        {**event(1, "REQUEST_ALIVE"), "time": "1500", "phase": 2},
        {**start(2, "https://a.example/open"), "time": "1600", "phase": 1},
    ]
    text = log_text(events).replace('"constants":{', '"constants":{"timeTickOffset": "5000", ')
    requests = read_netlog(netlog(tmp_path / "n.gz", text))
    # A redirect ends the request before it; a request still under way when the log ended has no end.
    assert [(one.began_s, one.ended_s) for one in requests] == [(6, 6.25), (6.25, 6.5), (6.6, None)]


def test_a_request_says_whether_the_browser_knew_of_an_alternative_and_whether_the_response_announced_one(
    tmp_path: Path,
) -> None:
    headers = ["HTTP/1.1 200", 'Alt-Svc: h3=":443"; ma=86400']
    events = [
        start(1, "https://a.example/"),
        event(1, "HTTP_STREAM_JOB_CONTROLLER_BOUND", source_dependency={"id": 7}),
        event(8, "HTTP_STREAM_JOB_CONTROLLER_ALT_SVC_FOUND"),  # of a connection opened in advance, for no request
        event(1, "HTTP_TRANSACTION_READ_RESPONSE_HEADERS", headers=headers),
        start(2, "https://a.example/i"),
        event(2, "HTTP_STREAM_JOB_CONTROLLER_BOUND", source_dependency={"id": 9}),
        event(9, "HTTP_STREAM_JOB_CONTROLLER_ALT_SVC_FOUND"),
        *answer(2, 200),
    ]
    requests = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [(one.knows_alternative, one.announces_alternative) for one in requests] == [(False, True), (True, False)]


def test_the_browser_knows_what_the_name_server_says_of_a_host(tmp_path: Path) -> None:
    def record(host: str, *versions: str) -> dict[str, Any]:
        metadata = {"metadata_value": {"supported_protocol_alpns": versions}, "metadata_weight": 1}
        return {"domain_name": host, "query_type": "HTTPS", "type": "metadata", "metadatas": [metadata]}

    address = {"domain_name": "c.example", "query_type": "A", "type": "data", "endpoints": []}
    events = [start(number, f"https://{host}.example/") for number, host in enumerate("abc")]
    for results in ([record("a.example", "h3", "h2"), address], [record("b.example", "h2")]):
        events.append(event(9, "HOST_RESOLVER_DNS_TASK_EXTRACTION_RESULTS", results=results))
    requests = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [request.knows_alternative for request in requests] == [True, False, False]


def test_streams_have_the_priority_that_the_browser_gave_them(tmp_path: Path) -> None:
    common = [":method: GET", ":authority: a.example", ":scheme: https"]
    events = [
        event(1, "HTTP2_SESSION_SEND_HEADERS", stream_id=1, headers=[*common, ":path: /a", "priority: u=1, i"]),
        event(
            2, "QUIC_CHROMIUM_CLIENT_STREAM_SEND_REQUEST_HEADERS", quic_stream_id=4, headers=[*common, ":path: /b?c: d"]
        ),
        *answer(3, 200),  # whose stream is not logged
    ]
    assert read_streams(netlog(tmp_path / "n.gz", log_text(events))) == [
        StreamRequest(1, "https://a.example/a", urgency=1, incremental=True, connection=1),
        StreamRequest(4, "https://a.example/b?c: d", urgency=3, incremental=False, connection=2),
    ]


def test_data_count_where_they_arrive_first(tmp_path: Path) -> None:
    headers = [":method: GET", ":authority: a.example", ":scheme: https", ":path: /"]

    def frame(at_ms: int, offset: int, length: int, stream: int = 0) -> dict[str, Any]:
        return event(2, "QUIC_SESSION_STREAM_FRAME_RECEIVED", stream_id=stream, offset=offset, length=length) | at(
            at_ms
        )

    def at(ms: int) -> dict[str, Any]:
        return {"time": str(ms)}

    events = [
        event(1, "HTTP2_SESSION_SEND_HEADERS", stream_id=1, headers=headers) | at(1000),
        event(2, "QUIC_CHROMIUM_CLIENT_STREAM_SEND_REQUEST_HEADERS", quic_stream_id=0, headers=headers) | at(1001),
        *(event(1, "HTTP2_SESSION_RECV_DATA", stream_id=1, size=size) | at(1500 + size) for size in (10, 20, 0)),
        # Bytes 10 to 20 come last, and again with others around them; another stream's are its own.
        frame(1500, 0, 10),
        frame(1510, 20, 10),
        frame(1520, 10, 10),
        frame(1530, 5, 30),
        frame(1540, 0, 35),
        frame(1550, 0, 7, stream=4),
    ]
    over_tcp, over_quic = read_streams(netlog(tmp_path / "n.gz", log_text(events, timeTickOffset="0")))
    assert (over_tcp.sent_s, over_tcp.arrivals) == (1.0, ((1.51, 10), (1.52, 20)))
    assert (over_quic.sent_s, over_quic.arrivals) == (1.001, ((1.5, 10), (1.51, 10), (1.52, 10), (1.53, 5)))


def test_each_hop_of_a_redirect_is_a_request(tmp_path: Path) -> None:
    events = [
        start(1, "https://a.example/"),
        *answer(1, 302),
        start(1, "https://b.example/"),
        *answer(1, 200, "198.18.0.2"),
    ]
    hops = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [(hop.url, hop.status, hop.address) for hop in hops] == [
        ("https://a.example/", 302, "198.18.0.1"),
        ("https://b.example/", 200, "198.18.0.2"),
    ]


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        ("URL_REQUEST_START_JOB", -105, "ERR_NAME_NOT_RESOLVED"),
        ("REQUEST_ALIVE", -101, "ERR_CONNECTION_RESET"),
        # A request that the page cancels, and a font that is only looked up in the cache, are not faults of the
        # network.
        ("REQUEST_ALIVE", -3, None),
        ("REQUEST_ALIVE", -400, None),
        # The network stack recovered from this one by itself.
        ("HTTP_CACHE_ADD_TO_ENTRY", -101, None),
    ],
)
def test_only_what_the_network_did_is_an_error(tmp_path: Path, kind: str, code: int, error: str | None) -> None:
    events = [start(1, "https://a.example/x"), event(1, kind, net_error=code)]
    (request,) = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert request.error == error


def test_what_a_page_has_fetched_for_a_later_one_is_not_the_page(tmp_path: Path) -> None:
    events = [
        event(1, "REQUEST_ALIVE", traffic_annotation=63171670),
        start(1, "https://a.example/", request_type="main frame"),
        event(2, "REQUEST_ALIVE", traffic_annotation=PREFETCH),
        start(2, "https://a.example/next", request_type="main frame", initiator="not an origin"),
        event(2, "URL_REQUEST_START_JOB", net_error=-105),
    ]
    requests = read_netlog(netlog(tmp_path / "n.gz", log_text(events)))
    assert [request.main_frame for request in requests] == [True, False]


@pytest.mark.parametrize("purpose", sorted(BROWSERS_PURPOSES))
def test_the_browsers_own_requests_are_told_from_the_pages(tmp_path: Path, purpose: int) -> None:
    events = [
        start(1, "https://browser.invalid/time", initiator="not an origin"),
        event(2, "REQUEST_ALIVE", traffic_annotation=purpose),
        start(2, "https://a.example/favicon.ico"),
        event(3, "REQUEST_ALIVE", traffic_annotation=101845102),
        start(3, "https://a.example/i.png"),
    ]
    assert [request.by_browser for request in read_netlog(netlog(tmp_path / "n.gz", log_text(events)))] == [
        True,
        True,
        False,
    ]


@given(st.data())
def test_a_netlog_cut_short_tells_what_it_still_has(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = log_text([*PAGE, start(2, "https://a.example/2"), *answer(2, 200)])
    first_event = text.index("},\n", text.index('"events"')) + 3
    cut = data.draw(st.integers(first_event, len(text)))
    requests = read_netlog(netlog(tmp_path_factory.mktemp("n") / "n.gz", text[:cut]))
    assert requests[0].url == "https://a.example/"


def test_a_netlog_that_may_lack_its_beginning_is_refused(tmp_path: Path) -> None:
    """Such a log is refused whatever page requests it still contains; a log of the same size with a larger limit is
    accepted."""
    file = netlog(tmp_path / "n.gz", log_text([*PAGE, start(2, "https://a.example/" + (1 << 20) * "2")]))
    assert len(read_netlog(file)) == len(read_netlog(file, 2 << 20)) == 2
    with pytest.raises(ValueError, match="the page made the browser log more than 1 MiB, so its beginning is missing"):
        read_netlog(file, 1 << 20)


def whole_run(folder: Path) -> None:
    """Write the files of a valid run."""
    page = {"errors": [[]], "browserScripts": [{"timings": {"pageTimings": {"pageLoadTime": 1234}}}]}
    (folder / TIMINGS).write_text(json.dumps([page]))
    versions = ("h3", "h3", "H3")
    entries = [{"serverIPAddress": "198.18.0.1", "response": {"httpVersion": version}} for version in versions]
    har = {"log": {"entries": entries}}
    (folder / HAR).write_bytes(gzip.compress(json.dumps(har).encode()))
    netlog(folder / BROWSER.network_log, log_text(PAGE))
    visual = {
        "faults": [],
        "start": {"orange_ms": 300, "blank_ms": -9, "blank_after": True},
        "metrics": {"fvc": 1, "lvc": 2, "vc85": 3, "si": 4},
    }
    (folder / VISUAL).write_text(json.dumps(visual))
    (folder / REQUEST_LOG).write_text("exact\tGET\thttps://a.example/\ta.example/00000-index\n")


def test_a_sound_run(tmp_path: Path) -> None:
    whole_run(tmp_path)
    evidence = read_evidence(tmp_path)
    assert evidence.failures == ()
    assert evidence.plt == 1234
    assert evidence.visual and evidence.visual.vc85 == 3
    assert evidence.har_protocols == {"h3": 3}
    assert evidence.request_counts == RequestCounts(requests=1, served=1, missed=0, exchanges=1)


@pytest.mark.case("page-with-critical-ch")
def test_what_no_server_was_asked_is_no_request_over_another_protocol(tmp_path: Path) -> None:
    whole_run(tmp_path)
    har = json.loads(gzip.decompress((tmp_path / HAR).read_bytes()))
    redirect = {"status": 307, "statusText": "Internal Redirect", "httpVersion": "http/1.1"}
    made_by_service_worker = {"status": 200, "httpVersion": "http/1.1"}
    har["log"]["entries"] += [{"response": response} for response in (redirect, made_by_service_worker)]
    (tmp_path / HAR).write_bytes(gzip.compress(json.dumps(har).encode()))
    assert read_evidence(tmp_path).har_protocols == {"h3": 3}


@pytest.mark.parametrize("name", [TIMINGS, HAR, BROWSER.network_log, VISUAL])
@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_missing_or_broken_evidence_is_told(tmp_path: Path, name: str, content: bytes | None) -> None:
    whole_run(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert any(failure.startswith(name) for failure in read_evidence(tmp_path).failures)


def packed(document: object) -> bytes:
    return gzip.compress(json.dumps(document).encode())


WHOLE = packed({"log": {"entries": []}})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (HAR, WHOLE[:12] + b"\xff\xff" + WHOLE[14:]),
        (HAR, gzip.compress(b"[" * 100_000)),
        (HAR, packed([1])),
        (HAR, packed({"log": 1})),
        (HAR, packed({"log": {"entries": [{"serverIPAddress": "198.18.0.1", "response": {"httpVersion": 3}}]}})),
        (HAR, packed({"log": {"entries": [], "pages": [{"startedDateTime": 5}]}})),
        (TIMINGS, b"[" * 100_000),
        (TIMINGS, b'{"a": 1}'),
        (TIMINGS, b'[{"browserScripts": [{"timings": {"pageTimings": {"pageLoadTime": "1"}}}]}]'),
        (TIMINGS, b'[{"browserScripts": {"timings": 1}}]'),
        (BROWSER.network_log, gzip.compress(b"[" * 100_000)),
        (BROWSER.network_log, gzip.compress(b'{"constants": [], "events": []}')),
    ],
    ids=[
        "a damaged archive",
        "an archive of brackets",
        "a list as an archive",
        "no log",
        "a number as a version",
        "a number as a time",
        "brackets",
        "no list of pages",
        "a text as a time",
        "no list of scripts",
        "a network log of brackets",
        "a network log of nothing",
    ],
)
def test_evidence_that_a_browser_was_made_to_forge_fails_its_load_and_nothing_else(
    tmp_path: Path, name: str, content: bytes
) -> None:
    whole_run(tmp_path)
    (tmp_path / name).write_bytes(content)
    failures = read_evidence(tmp_path).failures
    assert any(failure.startswith(f"{name} is broken: ") for failure in failures)


def test_an_archive_that_would_take_much_memory_fails_its_load(tmp_path: Path) -> None:
    whole_run(tmp_path)
    (tmp_path / HAR).write_bytes(gzip.compress(bytes(JSON_BYTES + 1), compresslevel=1))
    fault = f"{HAR} is broken: it is longer than {JSON_BYTES >> 20} MiB when decompressed"
    assert read_evidence(tmp_path).failures == (fault,)


def test_logs_that_had_no_space_are_told(tmp_path: Path) -> None:
    whole_run(tmp_path)
    for evidence in ({"seed": 1}, {"seed": 1, "full": "the page made the servers write more"}):
        (tmp_path / REPLAY_EVIDENCE).write_text(json.dumps(evidence))
        assert read_evidence(tmp_path).failures == tuple(text for name, text in evidence.items() if name == "full")


def test_the_last_words_of_a_browsertime_that_left_nothing_are_told(tmp_path: Path) -> None:
    whole_run(tmp_path)
    (tmp_path / TIMINGS).unlink()
    (tmp_path / LOG).write_text("INFO: starting\nFatal server error: no fonts\n\n")
    failure = "Browsertime reports no page; the last line of its log: Fatal server error: no fonts"
    assert read_evidence(tmp_path).failures == ("browsertime.json is missing", failure)
    (tmp_path / TIMINGS).write_text("[]")
    assert read_evidence(tmp_path).failures == (failure,)


@pytest.mark.parametrize("plt", [0, -1763000000000])
def test_a_load_event_that_never_came_is_no_page_load_time(tmp_path: Path, plt: int) -> None:
    whole_run(tmp_path)
    page = {"errors": [[]], "browserScripts": [{"timings": {"pageTimings": {"pageLoadTime": plt}}}]}
    (tmp_path / TIMINGS).write_text(json.dumps([page]))
    assert read_evidence(tmp_path).plt is None


def test_what_browsertime_says_is_told_once(tmp_path: Path) -> None:
    whole_run(tmp_path)
    page = {"failureMessages": ["Could not load"], "errors": [["UrlLoadError"], ["UrlLoadError"], "Could not load"]}
    (tmp_path / TIMINGS).write_text(json.dumps([page]))
    assert read_evidence(tmp_path).failures == ("Could not load", "UrlLoadError")


def test_requests_served_and_missed_are_the_pages(tmp_path: Path) -> None:
    lines = [
        "exact\tGET\thttps://a.example/\ta.example/00000-index",
        "prefix\tGET\thttps://a.example/x?2\ta.example/00001-x",
        "prefix\tGET\thttps://a.example/x?3\ta.example/00001-x",
        "preflight\tOPTIONS\thttps://a.example/api\t",
        "miss\tGET\thttps://a.example/gone\t",
        "miss\tGET\thttps://a.example/favicon.ico\t",
    ]
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in lines))
    icon = Request("https://a.example/favicon.ico", "GET", False, True, "198.18.0.1", "h3", 404)
    assert read_request_log(tmp_path / "log", [icon]) == RequestCounts(requests=5, served=4, missed=1, exchanges=2)
    of_a_part = replace(icon, url=f"{icon.url}#dark")
    assert read_request_log(tmp_path / "log", [of_a_part]).requests == 5
    page_wants_it_too = [*lines, lines[-1]]
    (tmp_path / "twice").write_text("".join(f"{line}\n" for line in page_wants_it_too))
    assert read_request_log(tmp_path / "twice", [icon]) == RequestCounts(requests=6, served=4, missed=2, exchanges=2)
    assert read_request_log(tmp_path / "log") == RequestCounts(requests=6, served=4, missed=2, exchanges=2)
    assert read_request_log(tmp_path / "none") == RequestCounts()


def test_what_a_browser_asks_a_proxy_for_is_also_a_try_of_tcp(tmp_path: Path) -> None:
    assert read_evidence(tmp_path, filmed=False).tcp_syns is None
    (tmp_path / SYNS).write_text('{"sent": 2}')
    for hop, attempts in (({}, 2), ({"hop": {"kind": "split"}}, 2), ({"hop": {"tcp_requests": 3}}, 5)):
        (tmp_path / REPLAY_EVIDENCE).write_text(json.dumps(hop))
        assert read_evidence(tmp_path, filmed=False).tcp_syns == attempts
