"""Congestion states: from the kernel's statistics and from logs to windows, spells and shares of time."""

import json
import math
import socket
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import ROW, rejected, with_metrics
from support.browser import Browser
from support.declaring import declare
from support.figures import smallest_type
from support.reports import accessible_report

from analysis.figures.style import SMALL, save
from analysis.statistics.intervals import over_runs
from base.errors import EyelevelError
from base.qlog import CLOSED, METRICS, PARAMETERS, STATE, Event, Qlog, read_qlog, write_qlog
from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, header, lines, write_document
from servers.kernel_sockets import ACCOUNTS, RECORD, Bbr, KernelSockets, TcpInfo, decoded, identity, lasting
from studies.states import graph as states_graph
from studies.states import windows_figure
from studies.states.estimates import probability_estimates, share_estimates, transition_counts
from studies.states.measure import log_fault, require_account
from studies.states.section import read_settings, section
from studies.states.series import Spell, delivered_bytes, probabilities, series, shares, spells, transitions
from studies.states.socket_series import congestion_state, metrics, qlog_of, write_qlogs
from tuning import protocols

BEGAN_S = 1_000.0
MSS = 1448


def account(**changed: object) -> TcpInfo:
    """A connection in slow start with half of its window in flight and more to send."""
    values: dict[str, object] = {
        "server": ("198.18.0.1", 443),
        "client": ("100.64.0.2", 50000),
        "congestion_control": "cubic",
        "ca_state": 0,
        "mss_bytes": MSS,
        "in_flight": 16,
        "smoothed_rtt_ms": 50.0,
        "min_rtt_ms": 48.0,
        "ssthresh": None,
        "cwnd": 32,
        "retransmitted": 0,
        "pacing_bytes_per_s": 1_000_000,
        "delivered_bytes": 0,
        "unsent_bytes": 100_000,
        "delivery_bytes_per_s": 0,
        "bbr": None,
    }
    return TcpInfo(**{**values, **changed})  # type: ignore[arg-type]


def message(
    *,
    cookie: int = 7,
    ca_state: int = 0,
    cwnd: int = 32,
    age_ms: int = 0,
    sacked: int = 0,
    server: str = "198.18.0.1",
) -> bytes:
    """An answer of the kernel, built by hand from linux/inet_diag.h and linux/tcp.h."""
    ends = (
        struct.pack("!HH", 443, 50000)
        + socket.inet_aton(server).ljust(16, b"\0")
        + bytes([100, 64, 0, 2]).ljust(16, b"\0")
    )
    head = struct.pack("=BBBB", 2, 1, 0, 0) + ends + struct.pack("=IQ", 0, cookie) + bytes(20)
    info = bytearray(232)
    info[1] = ca_state
    for at, value in {
        16: MSS,
        24: 20,
        28: sacked,
        44: age_ms,
        68: 50_000,
        76: 0x7FFFFFFF,
        80: cwnd,
        148: 48_000,
    }.items():
        struct.pack_into("=I", info, at, value)
    struct.pack_into("=Q", info, 120, 5_000)
    attributes = [(2, bytes(info)), (4, b"bbr\0"), (16, struct.pack("=5I", 1_250_000, 0, 48_000, 739, 739))]
    return head + b"".join(
        struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4) for kind, value in attributes
    )


def test_an_account_of_the_kernel_is_read_as_its_headers_lay_it_out() -> None:
    info = decoded(message(sacked=2))
    assert info is not None
    assert (info.server, info.client) == (("198.18.0.1", 443), ("100.64.0.2", 50000))
    assert (info.congestion_control, info.mss_bytes, info.cwnd, info.ssthresh) == ("bbr", MSS, 32, None)
    assert (info.in_flight, info.delivered_bytes) == (18, 5_000 + 2 * MSS)
    assert (info.smoothed_rtt_ms, info.min_rtt_ms) == (50.0, 48.0)
    assert info.bbr == Bbr(1_250_000, 739 / 256, 739 / 256)
    assert decoded(message()[:72]) is None


def test_the_kernel_is_asked_and_tells_what_the_socket_itself_tells() -> None:
    with (
        closing(KernelSockets()) as kernel,
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as server,
    ):
        server.sendall(b"x" * 5_000)
        assert client.recv(5_000, socket.MSG_WAITALL)
        infos = [info for answer in kernel.ask() if (info := decoded(answer))]
        [connection] = [
            info for info in infos if (info.server, info.client) == (server.getsockname(), client.getsockname())
        ]
        tcp_info = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        control = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert connection.congestion_control == control.rstrip(b"\0").decode()
    assert (connection.mss_bytes, connection.cwnd) == (
        *struct.unpack_from("=I", tcp_info, 16),
        *struct.unpack_from("=I", tcp_info, 80),
    )
    assert (connection.delivered_bytes, connection.in_flight, connection.unsent_bytes) == (5_000, 0, 0)
    assert connection.smoothed_rtt_ms == struct.unpack_from("=I", tcp_info, 68)[0] / 1e3


def test_only_what_changes_by_itself_makes_an_account_another() -> None:
    assert lasting(message(age_ms=1)) == lasting(message(age_ms=2))
    assert lasting(message(cwnd=32)) != lasting(message(cwnd=33))
    assert lasting(message(ca_state=0)) != lasting(message(ca_state=3))
    assert identity(message(cookie=1)) != identity(message(cookie=2))


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "slow_start"),
        ({"ssthresh": 40}, "slow_start"),
        ({"ssthresh": 32}, "congestion_avoidance"),
        ({"ssthresh": 32, "ca_state": 1}, "congestion_avoidance"),
        ({"ca_state": 2}, "recovery"),
        ({"ca_state": 3, "unsent_bytes": 0}, "recovery"),
        ({"ca_state": 4, "unsent_bytes": 0}, "rto"),
        ({"unsent_bytes": 0}, "application_limited"),
        ({"unsent_bytes": 0, "in_flight": 32}, "slow_start"),
        ({"bbr": Bbr(1, 739 / 256, 739 / 256)}, "startup"),
        ({"bbr": Bbr(1, 88 / 256, 739 / 256)}, "drain"),
        ({"bbr": Bbr(1, 1.25, 2)}, "probe_bw"),
        ({"bbr": Bbr(1, 0.75, 2)}, "probe_bw"),
        ({"bbr": Bbr(1, 1, 1), "unsent_bytes": 0}, "probe_rtt"),
        ({"bbr": Bbr(1, 1, 2), "unsent_bytes": 0}, "application_limited"),
    ],
)
def test_the_state_of_a_tcp_connection(changed: dict[str, object], state: str) -> None:
    assert congestion_state(account(**changed)) == state


def test_metrics_are_bytes_milliseconds_and_bits() -> None:
    values = metrics(account(ssthresh=40, bbr=Bbr(2_500_000, 1, 2), retransmitted=3, pacing_bytes_per_s=2**64 - 1))
    assert values["congestion_window"] == 32 * MSS
    assert values["bytes_in_flight"] == 16 * MSS
    assert values["ssthresh"] == 40 * MSS
    assert values["bandwidth_estimate"] == 20_000_000
    assert values["packets_lost"] == 3
    assert "pacing_rate" not in values
    assert metrics(account())["pacing_rate"] == 8_000_000


def test_accounts_become_one_qlog_a_connection(tmp_path: Path) -> None:
    messages = [(0.0, message()), (0.001, message(cookie=8)), (0.005, message(cwnd=40)), (0.010, message(ca_state=3))]
    # A connection between two programs of the servers, not to a client.
    messages.insert(1, (0.0, message(cookie=9, server="127.0.0.1")))
    data = b"".join(RECORD.pack(BEGAN_S + at_s, len(one)) + one for at_s, one in messages)
    (tmp_path / ACCOUNTS).write_bytes(data)
    paths = write_qlogs(tmp_path)
    assert [path.name for path in paths] == ["tcp-198.18.0.1-50000.sqlog", "tcp-198.18.0.1-50000-2.sqlog"]
    assert not (tmp_path / ACCOUNTS).exists()
    first = read_qlog(paths[0])
    assert first.began_s == pytest.approx(BEGAN_S)
    assert first.parameters["congestion_control"] == "bbr"
    assert [event.data["congestion_window"] for event in first.named(METRICS)] == [32 * MSS, 40 * MSS, 32 * MSS]
    assert [(round(event.time_ms), event.data["new"]) for event in first.named(STATE)] == [
        (0, "application_limited"),
        (10, "recovery"),
    ]


def test_a_protocol_of_which_nobody_gives_an_account_is_refused() -> None:
    known = protocols.load()
    with pytest.raises(EyelevelError, match="caddy-h3: caddy gives no account of its congestion control over quic"):
        require_account(known["caddy-h3"])
    for name in ("caddy-h2", "quinn-h3", "quic", "tcp"):
        require_account(known[name])


def test_times_never_go_back_when_the_clock_is_put() -> None:
    log = qlog_of([(BEGAN_S, account()), (BEGAN_S + 1, account(cwnd=40)), (BEGAN_S - 5, account(cwnd=50))])
    assert [event.time_ms for event in log.events] == sorted(event.time_ms for event in log.events)


def test_a_qlog_is_text_sequences_that_qvis_takes(tmp_path: Path) -> None:
    log = Qlog("a title", BEGAN_S, (Event(0.5, METRICS, {"congestion_window": 1}), Event(1, STATE, {"new": "startup"})))
    write_qlog(tmp_path / "a.sqlog", log, "Linux", ["TCP"])
    assert read_qlog(tmp_path / "a.sqlog") == log
    # RFC 7464: each text is between a record separator and a line feed.
    records = (tmp_path / "a.sqlog").read_bytes().split(b"\x1e")
    assert records[0] == b""
    assert all(record.endswith(b"\n") and record.count(b"\n") == 1 for record in records[1:])
    header = json.loads(records[1])
    # The fields that qvis requires of a file (its TextSequenceJSONToQlog, its Defaults.versionAliases).
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["vantage_point"]["type"] == "server"
    assert header["trace"]["common_fields"]["time_format"] == "relative"
    assert header["trace"]["common_fields"]["reference_time"] == BEGAN_S * 1e3


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda text: text[:-1], "cut short"),
        (lambda text: text[1:], "cut short"),
        (lambda text: text.replace('"0.3"', '"0.9"'), "not of version"),
        (lambda text: text.replace('"time":1', '"time":-1'), "times go back"),
        (lambda text: text.replace('"name"', '"nam"'), "not a qlog that can be read"),
    ],
)
def test_a_broken_qlog_is_named(broken: object, reason: str, tmp_path: Path) -> None:
    log = Qlog("a title", BEGAN_S, (Event(0.5, METRICS, {}), Event(1, STATE, {"new": "startup"})))
    path = tmp_path / "a.sqlog"
    write_qlog(path, log, "Linux", ["TCP"])
    path.write_text(broken(path.read_text()))  # type: ignore[operator]
    with pytest.raises(EyelevelError, match=reason) as raised:
        read_qlog(path)
    assert str(path) in str(raised.value)


def log_of(*states: tuple[float, str], delivered: tuple[tuple[float, float], ...] = ((2_000, 10.0),)) -> Qlog:
    """A connection with these states (ms, state) and deliveries (ms, bytes)."""
    events = [Event(at, STATE, {"new": state}) for at, state in states]
    events += [Event(at, METRICS, {"bytes_delivered": total}) for at, total in delivered]
    return Qlog("t", BEGAN_S, tuple(sorted(events, key=lambda event: event.time_ms)))


def rounded(periods: list[Spell]) -> list[tuple[str, float, float]]:
    return [(spell.state, round(spell.start_s, 6), round(spell.end_s, 6)) for spell in periods]


def test_spells_end_with_the_last_delivery_before_the_page_was_complete() -> None:
    log = log_of((0, "a"), (500, "b"), delivered=((100, 1.0), (900, 2.0), (5_000, 3.0)))
    assert rounded(spells(log, BEGAN_S, BEGAN_S + 2)) == [("a", 0, 0.5), ("b", 0.5, 0.9)]
    # The time before the navigation and after the page's end does not count.
    assert rounded(spells(log, BEGAN_S + 0.6, BEGAN_S + 2)) == [("b", 0, 0.3)]
    assert rounded(spells(log, BEGAN_S, BEGAN_S + 0.3)) == [("a", 0, 0.1)]


def test_spells_are_what_one_sees_who_looks_every_five_milliseconds() -> None:
    log = log_of((0, "a"), (101, "b"), (103, "a"), (500, "c"))
    assert rounded(spells(log, BEGAN_S, BEGAN_S + 9)) == [("a", 0, 0.5), ("c", 0.5, 2)]
    # A state at the moment of a sample is seen, however short it is; and of two that alternate fast, neither gets all
    # the time.
    turns = [(1000 + 3 * n, "cd"[n % 2]) for n in range(200)]
    looks = log_of((0, "a"), (99, "b"), (101, "a"), *turns, delivered=((1_600, 10.0),))
    result = spells(looks, BEGAN_S, BEGAN_S + 9)
    assert rounded(result)[:3] == [("a", 0, 0.1), ("b", 0.1, 0.105), ("a", 0.105, 1)]
    assert shares([result[3:]]) == {"c": pytest.approx(0.5, abs=0.01), "d": pytest.approx(0.5, abs=0.01)}
    assert spells(Qlog("t", BEGAN_S, ()), BEGAN_S, BEGAN_S + 1) == []


def test_what_a_connection_carried_is_counted_from_the_navigation_on() -> None:
    log = log_of((0, "a"), delivered=((100, 1_000.0), (900, 1_500.0), (5_000, 9_000.0)))
    assert delivered_bytes(log) == 9_000
    assert delivered_bytes(log, BEGAN_S + 0.5, BEGAN_S + 2) == 500
    assert delivered_bytes(log, BEGAN_S + 6) == 0


@pytest.mark.parametrize(
    ("name", "closed", "control", "reason"),
    [
        ("quic", True, "cubic", ""),
        ("quic", False, "cubic", "t: the log was cut short"),
        ("tcp+", False, "cubic", ""),
        ("quic", True, "bbr", "t: bbr instead of cubic"),
    ],
)
def test_a_log_is_whole_and_of_the_congestion_control_under_test(
    name: str, closed: bool, control: str, reason: str
) -> None:
    events = (Event(0, PARAMETERS, {"congestion_control": control}), Event(0, METRICS, {"congestion_window": 1}))
    log = Qlog("t", BEGAN_S, (*events, Event(1, CLOSED, {})) if closed else events)
    assert log_fault(protocols.load()[name], [log]) == reason


def test_shares_weigh_connections_by_their_time_and_transitions_are_counted_within_each() -> None:
    long, short = [Spell("a", 0, 6), Spell("b", 6, 8), Spell("a", 8, 9)], [Spell("b", 0, 1)]
    assert shares([long, short]) == {"a": pytest.approx(0.7), "b": pytest.approx(0.3)}
    assert shares([]) == {}
    counts = transitions([long, short, [Spell("a", 0, 1), Spell("c", 1, 2)]])
    assert counts == {("a", "b"): 1, ("b", "a"): 1, ("a", "c"): 1}
    assert probabilities(counts) == {("a", "b"): 0.5, ("a", "c"): 0.5, ("b", "a"): 1.0}


def of_run(*seconds: tuple[str, float]) -> list[list[Spell]]:
    """A run of one connection that spends this many seconds in each state, one after the other."""
    ends = [sum(spent for _, spent in seconds[: n + 1]) for n in range(len(seconds))]
    return [[Spell(state, end - spent, end) for (state, spent), end in zip(seconds, ends, strict=True)]]


def test_shares_are_means_over_runs_with_the_interval_that_runs_give() -> None:
    # Shares of 0.2, 0.4 and 0.6: mean 0.4, error 0.2 / sqrt(3), and Student's quantile for 2 degrees of freedom, 4.303.
    # The last run is a hundred times longer, but does not count more.
    runs = [of_run(("a", 2), ("b", 8)), of_run(("a", 4), ("b", 6)), of_run(("a", 600), ("b", 400))]
    estimates = share_estimates(runs, 0.95)
    assert list(estimates) == ["b", "a"]
    assert (estimates["a"].mean, estimates["a"].runs) == pytest.approx((0.4, 3))
    # 4.303 times 0.1155 is 0.497, which would reach below 0.
    assert (estimates["a"].low, estimates["a"].high) == pytest.approx((0, 0.8968), abs=1e-4)
    narrow = share_estimates(runs, 0.5)["a"]
    assert (narrow.low, narrow.high) == pytest.approx((0.4 - 0.8165 * 0.11547, 0.4 + 0.8165 * 0.11547), abs=1e-4)
    # A run without a state has a share of 0 in it; a run without any time does not count.
    more = share_estimates([*runs, of_run(("c", 1)), []], 0.95)
    assert (more["a"].mean, more["a"].runs, more["c"].mean) == pytest.approx((0.3, 4, 0.25))


def test_probabilities_are_means_over_the_runs_that_left_the_state() -> None:
    turn = [("a", 1), ("b", 1)]
    runs = [of_run(*turn, *turn, *turn, ("a", 1), ("c", 1)), of_run(("a", 1), ("c", 1)), of_run(("b", 1), ("a", 1))]
    estimates = probability_estimates(runs, 0.95)
    # The first run went from a to b three times in four, the second never, and the third did not leave a.
    assert (estimates["a", "b"].mean, estimates["a", "b"].runs) == pytest.approx((0.375, 2))
    assert estimates["a", "b"].mean + estimates["a", "c"].mean == pytest.approx(1)
    assert (estimates["a", "b"].low, estimates["a", "b"].high) == (0, 1)
    assert (estimates["b", "a"].mean, estimates["b", "a"].has_interval) == (1, False)
    assert transition_counts(runs)["a", "b"] == 3


def test_one_run_has_no_interval_and_none_no_mean() -> None:
    assert not over_runs([3.0], 0.95).has_interval
    assert not over_runs([0.1 + 0.2, 0.3], 0.95).has_interval
    assert math.isnan(over_runs([], 0.95).mean)


@pytest.mark.slow
def test_intervals_over_runs_hold_the_true_mean_as_often_as_they_say() -> None:
    random = np.random.default_rng(14)
    shares_of_runs = random.beta(6, 4, (4000, 5))
    estimates = [over_runs(values, 0.95, (0, 1)) for values in shares_of_runs]
    held = sum(estimate.low <= 0.6 <= estimate.high for estimate in estimates) / len(estimates)
    assert 0.94 < held < 0.965


def test_a_series_keeps_what_was_told_last() -> None:
    events = (
        Event(0, METRICS, {"congestion_window": 10, "smoothed_rtt": 50.0}),
        Event(100, METRICS, {"bytes_in_flight": 5}),
        Event(200, METRICS, {"congestion_window": 20, "bytes_delivered": 7, "packets_lost": 1}),
    )
    table = series(Qlog("t", BEGAN_S, events), BEGAN_S - 1)
    assert table["time_s"].tolist() == pytest.approx([1.0, 1.1, 1.2])
    assert table["window"].tolist() == [10, 10, 20]
    assert table["in_flight"].tolist() == [0, 5, 5]
    assert table["smoothed_rtt_ms"].tolist() == [50, 50, 50]
    assert table["delivered"].tolist() == [0, 0, 7]
    assert table["lost"].tolist() == [0, 0, 1]


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign with three runs of each of two protocols on one network, made by hand."""
    settings: dict[str, dict[str, object]] = {
        "sites": {"s": {}},
        "networks": {"lte": {}},
        "protocols": {"tcp+": {}, "quic": {}, "quic+bbr": {}},
    }
    into = tmp_path / "try"
    into.mkdir()
    write_document(
        into,
        CampaignDocument(
            structured({"seed": 1, "runs": 10, **settings}, CampaignSettings, ""), study={"name": "states"}
        ),
    )
    rows = []
    for protocol, slow_s in (("quic", 0.5), ("tcp+", 1.0)):
        for number, plt_ms in ((1, 3000), (10, 1000), (2, 2000)):
            place = f"runs/s/lte/{protocol}/{number}-2"
            rows.append(rejected("states: cut", protocol=protocol, run=number, folder=place.replace("-2", "-1")))
            rows.append(replace(with_metrics(ROW, plt=plt_ms), protocol=protocol, run=number, attempt=2, folder=place))
            folder = into / place
            folder.mkdir(parents=True)
            (folder / "loading.json").write_text(json.dumps({"navigated_s": BEGAN_S, "finished_s": BEGAN_S + 9}))
            events = [
                Event(0, PARAMETERS, {"congestion_control": "cubic"}),
                Event(0, METRICS, {"congestion_window": 46_720, "smoothed_rtt": 74.0, "min_rtt": 74.0}),
                Event(0, STATE, {"new": "slow_start"}),
                Event(slow_s * 1e3, METRICS, {"congestion_window": 90_000, "bytes_in_flight": 80_000}),
                Event(slow_s * 1e3, STATE, {"old": "slow_start", "new": "recovery"}),
                Event(2_000, METRICS, {"bytes_delivered": 1_000_000, "packets_lost": 4, "smoothed_rtt": 90.0}),
            ]
            write_qlog(folder / "busy.sqlog", Qlog("busy", BEGAN_S, tuple(events)), "Linux", ["TCP"])
            idle = log_of((0, "application_limited"), delivered=((500, 100.0),))
            write_qlog(folder / "idle.sqlog", idle, "Linux", ["TCP"])
    (into / "runs.csv").write_text(header() + lines(rows))
    return into


def test_settings_have_their_counting_runs_and_a_typical_one(campaign: Path) -> None:
    tcp, quic = read_settings(campaign)
    assert (tcp.protocol, quic.protocol) == ("tcp+", "quic")
    assert [load.number for load in tcp.loads] == [1, 2, 10]
    assert tcp.typical.number == 2
    assert tcp.typical.busiest.path.name == "busy.sqlog"
    assert {state: estimate.mean for state, estimate in share_estimates(tcp.runs, 0.95).items()} == {
        "slow_start": pytest.approx(0.4),
        "recovery": pytest.approx(0.4),
        "application_limited": pytest.approx(0.2),
    }


@pytest.mark.slow
def test_the_section_has_its_figures_and_tables_and_is_none_without_runs(campaign: Path, tmp_path: Path) -> None:
    assert section(tmp_path) is None
    report = section(campaign)
    assert report is not None
    folder = tmp_path / "figures"
    folder.mkdir()
    for figure in report.figures:
        figure.write(folder)
        assert smallest_type(figure.draw(*figure.arguments)) >= SMALL
    names = [figure.name for figure in report.figures]
    typical = campaign / "runs/s/lte/quic/2-2/busy.sqlog"
    assert report.figures[0].run_files["QUIC run 2: busy.sqlog"] == typical
    assert names == ["states_windows_s_lte", "states_graph_s_lte"]
    assert all((folder / f"{name}.{kind}").stat().st_size > 5_000 for name in names for kind in ("pdf", "png"))
    assert [table.name for table in report.tables] == ["states_shares", "states_transitions", "states_totals"]
    table = report.tables[0].texts.set_index(["protocol", "state"])
    # Runs that are all equal say nothing about the scatter.
    assert table.loc[("TCP+", "slow start"), ["share of time", "95 % interval"]].tolist() == ["40.0 %", "-"]
    assert table.loc[("QUIC", "recovery"), "share of time"] == "60.0 %"
    assert report.tables[0].texts["state"].drop_duplicates().tolist() == [
        "application limited",
        "slow start",
        "recovery",
    ]
    transition = report.tables[1].texts.set_index("protocol").loc["QUIC"]
    assert transition[["from", "to", "runs", "transitions", "probability"]].tolist() == [
        "slow start", "recovery", "3", "3", "1.00",
    ]  # fmt: skip
    totals = report.tables[2].data.set_index("protocol")
    assert totals.loc["tcp+", "seconds"] == pytest.approx(7.5)
    assert totals.loc["quic", "lost_packets"] == 4
    assert totals.loc["quic", "largest_window_kb"] == 90


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, campaign: Path) -> None:
    assert accessible_report(browser, campaign) == []


def test_intervals_hold_as_surely_as_the_campaign_declared(campaign: Path) -> None:
    declare(campaign, confidence=0.8)
    report = section(campaign)
    assert report is not None
    assert all("80 % interval" in table.texts for table in report.tables[:2])
    texts = [*report.paragraphs, *(figure.caption for figure in report.figures)]
    assert sum("80 % interval" in text for text in texts) == 2 and "95 %" not in "".join(texts)


def test_a_run_that_is_not_whole_any_more_is_named(campaign: Path) -> None:
    folder = campaign / "runs" / "s" / "lte" / "quic" / "2-2"
    for log in folder.glob("*.sqlog"):
        log.unlink()
    with pytest.raises(EyelevelError, match=r"quic/2-2 has no log of a connection"):
        section(campaign)
    (folder / "loading.json").write_text("{}")
    with pytest.raises(EyelevelError, match=r"quic/2-2/loading.json is broken: the key 'navigated_s' is missing"):
        section(campaign)


@pytest.mark.slow
def test_states_that_nobody_knows_yet_are_drawn_all_the_same(tmp_path: Path) -> None:
    new_states = [Spell("refill", 0, 1), Spell("probe_bw", 1, 2)]
    counts = transitions([new_states])
    runs = [[new_states]]
    graph = states_graph.Graph("new", share_estimates(runs, 0.95), probability_estimates(runs, 0.95), counts)
    save(states_graph.draw([graph]), tmp_path, "graph")
    log = Qlog("t", BEGAN_S, (Event(0, METRICS, {"congestion_window": 1}),))
    connection = windows_figure.ConnectionSeries("quic", series(log, BEGAN_S), new_states)
    save(windows_figure.draw([connection]), tmp_path, "windows")
    assert len(list(tmp_path.iterdir())) == 4
