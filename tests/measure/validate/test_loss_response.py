"""The answer to one loss: a correct one passes, and each check fails for a sender that answers differently."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from base.errors import EyelevelError
from dataset.checks import UNCHECKED, Check
from measure.captures.reading import HTTPS_PORT
from measure.validate.protocol.cubic import CubicCurve, Numbers
from measure.validate.protocol.flight import Fields, Flight, quic_flight, tcp_flight
from measure.validate.protocol.loss_response import KEPT, REGROWTH, expected_curve, judge_loss_response, loss_response
from measure.validate.protocol.server_account import ServerWindow
from servers.registry import server_of
from tuning import protocols
from tuning.protocols import Protocol

PROTOCOLS = protocols.load()
BEFORE, RTT_S = 200.0, 0.25
# When the loss is detected, when the recovery ends, and when the transfer ends.
DETECTED_S, RECOVERED_S, END_S = 10.0, 10.0 + RTT_S, 15.0

# The window as a function of the time since the recovery.
Growth = Callable[[Numbers], Numbers]


def cubic(connections: int, c: float = 0.4, kept: float | None = None) -> Growth:
    """The window of Cubic emulating this many connections, with another constant C, or with another share kept."""
    share = (connections - 0.3) / connections if kept is None else kept
    k_s = np.cbrt(BEFORE * (1 - share) / c)
    return lambda at_s: c * (at_s - k_s) ** 3 + BEFORE


def reno(kept: float) -> Growth:
    """One segment more in each round trip."""
    return lambda at_s: kept * BEFORE + at_s / RTT_S


def flight(protocol: Protocol, growth: Growth, *, lost: int = 1, end_s: float = END_S) -> Flight:
    """The data in flight of a sender with this growth, give or take a packet; its window was steady before."""
    segment_bytes = server_of(protocol).window_segment_bytes(protocol)
    at_s = np.arange(5, end_s, 0.002)
    recovering = BEFORE + (growth(np.zeros(1))[0] - BEFORE) * (at_s - DETECTED_S) / RTT_S
    window = np.select([at_s < DETECTED_S, at_s < RECOVERED_S], [BEFORE, recovering], growth(at_s - RECOVERED_S))
    return Flight(at_s, (window - np.arange(len(at_s)) % 2) * segment_bytes, lost, DETECTED_S, RECOVERED_S, end_s)


def judged(applied: str, growth: Growth, claimed: str = "") -> set[str]:
    """The names of the checks that fail when `applied`, claimed to be `claimed`, answers with `growth`."""
    seen = loss_response(PROTOCOLS[claimed or applied], flight(PROTOCOLS[applied], growth), ())
    return failed(judge_loss_response(PROTOCOLS[claimed or applied], seen))


def failed(checks: list[Check]) -> set[str]:
    assert all(check.checked for check in checks)
    return {check.name for check in checks if not check.passed}


@pytest.mark.parametrize(
    ("name", "growth"),
    [
        ("tcp", cubic(1)),
        ("tcp+lowat", cubic(1)),
        ("quic", cubic(2)),
        ("quic+1con", cubic(1)),
        ("tcp+bbr", lambda at_s: BEFORE + 0 * at_s),
        ("quic+bbr2", lambda at_s: BEFORE * (1 + 0.1 * np.sin(at_s))),
    ],
)
def test_a_sender_that_answers_as_it_should_passes(name: str, growth: Growth) -> None:
    assert judged(name, growth) == set()


@pytest.mark.parametrize(
    ("applied", "growth", "claimed", "wrong"),
    [
        pytest.param("quic", cubic(2), "quic+1con", {KEPT, REGROWTH}, id="two connections said to be one"),
        pytest.param("quic+1con", cubic(1), "quic", {KEPT, REGROWTH}, id="one connection said to be two"),
        pytest.param("tcp+bbr", lambda at_s: BEFORE + 0 * at_s, "tcp+", {KEPT, REGROWTH}, id="BBR said to be Cubic"),
        pytest.param("tcp+", cubic(1), "tcp+bbr", {KEPT}, id="Cubic said to be BBR"),
        pytest.param("quic+1con", cubic(1), "quic+bbr2", {KEPT}, id="one connection's Cubic said to be BBRv2"),
        pytest.param("tcp+", cubic(1, kept=0.67), "tcp+", {KEPT}, id="a little too little"),
        pytest.param("tcp+", cubic(1, kept=0.73), "tcp+", {KEPT}, id="a little too much"),
        pytest.param("tcp+", reno(0.7), "tcp+", {REGROWTH}, id="grows as Reno does"),
        pytest.param("quic", reno(0.85), "quic", {REGROWTH}, id="two connections that grow as Reno does"),
        pytest.param("tcp+", cubic(1, c=0.2), "tcp+", {REGROWTH}, id="half of C"),
        pytest.param("tcp+", cubic(1, c=4), "tcp+", {REGROWTH}, id="ten times C"),
        pytest.param("tcp+", lambda at_s: 0.7 * BEFORE + 0 * at_s, "tcp+", {REGROWTH}, id="does not grow"),
    ],
)
def test_each_check_fails_for_a_sender_that_answers_otherwise(
    applied: str, growth: Growth, claimed: str, wrong: set[str]
) -> None:
    assert judged(applied, growth, claimed) == wrong


def test_moments_without_the_processor_change_nothing() -> None:
    seen = flight(PROTOCOLS["quic"], cubic(2))
    # Pauses of 100 ms, during which acknowledgements arrive and nothing is sent.
    waits = (seen.at_s > RECOVERED_S + 0.1) & (seen.at_s % 0.5 < 0.1)
    held_up = replace(seen, in_flight_bytes=np.where(waits, 0.6 * seen.in_flight_bytes, seen.in_flight_bytes))
    response = loss_response(PROTOCOLS["quic"], held_up, ())
    assert response.window.min() < 0.6 * BEFORE
    assert failed(judge_loss_response(PROTOCOLS["quic"], response)) == set()


def test_a_control_that_is_not_known_is_told_to_be_unchecked() -> None:
    protocol = replace(PROTOCOLS["tcp+"], congestion_control="vegas")
    seen = loss_response(protocol, flight(protocol, cubic(1)), ())
    (check,) = judge_loss_response(protocol, seen)
    assert not check.checked
    why = "70% (measured, not judged: how vegas answers to losses is not modelled)"
    assert check.measured == f"{UNCHECKED}: {why}"
    assert expected_curve(protocol, seen) is None


def test_a_program_without_an_account_is_not_judged_for_what_its_pacing_may_have_held_back() -> None:
    protocol = replace(PROTOCOLS["quic"], program=("/mine",), server="mine")
    seen = loss_response(protocol, flight(protocol, cubic(1)), ())
    checks = judge_loss_response(protocol, seen)
    assert [check.name for check in checks] == [KEPT, REGROWTH]
    assert all(not check.checked and "there is no account" in check.measured for check in checks)


def without_the_start(whole: Flight) -> Flight:
    """The flight `whole`, with a window that doubles in each round trip until the loss."""
    start = np.minimum(1, 2 ** ((whole.at_s - DETECTED_S) / RTT_S))
    return replace(whole, in_flight_bytes=whole.in_flight_bytes * start)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: replace(whole, lost_packets=2), "2 packets were lost or sent again, but only one was dropped"),
        (without_the_start, "still growing when the packet was lost: 99 segments, then 200"),
    ],
    ids=["two losses", "slow start"],
)
def test_what_is_no_single_loss_of_a_steady_window_is_no_measurement(
    change: Callable[[Flight], Flight], message: str
) -> None:
    with pytest.raises(EyelevelError, match=message):
        loss_response(PROTOCOLS["quic"], change(flight(PROTOCOLS["quic"], cubic(2))), ())


def test_a_window_that_was_not_in_use_is_no_measurement() -> None:
    protocol = PROTOCOLS["quic+1con"]
    segment_bytes = server_of(protocol).window_segment_bytes(protocol)
    account = [
        ServerWindow(0, BEFORE * segment_bytes, None),
        ServerWindow(DETECTED_S, 0.7 * BEFORE * segment_bytes, 0.7 * BEFORE * segment_bytes),
    ]
    assert loss_response(protocol, flight(protocol, cubic(1)), account).kept_share == pytest.approx(0.7, abs=0.01)
    with pytest.raises(EyelevelError, match="were in flight after the recovery, while 204400 could"):
        loss_response(protocol, flight(protocol, cubic(1, kept=0.6)), account)
    account[0] = replace(account[0], window_bytes=1.1 * BEFORE * segment_bytes)
    account[1] = replace(account[1], at_s=DETECTED_S + 0.001)
    with pytest.raises(EyelevelError, match="292000 bytes were in flight when the packet was lost, while 321200 could"):
        loss_response(protocol, flight(protocol, cubic(1)), account)


def test_what_a_server_kept_whose_pacing_leaves_less_in_flight_is_in_its_log() -> None:
    protocol = PROTOCOLS["quinn-h3"]
    segment_bytes = server_of(protocol).window_segment_bytes(protocol)
    kept = ServerWindow(DETECTED_S, 0.7 * BEFORE * segment_bytes, 0.7 * BEFORE * segment_bytes)
    account = [ServerWindow(0, BEFORE * segment_bytes, None), kept]
    assert loss_response(protocol, flight(protocol, cubic(1, kept=0.6)), account).kept_share == pytest.approx(0.7)
    with pytest.raises(EyelevelError, match="in flight after the recovery, while the server's log has a window of"):
        loss_response(protocol, flight(protocol, cubic(1, kept=0.8)), account)
    with pytest.raises(EyelevelError, match="the server's log has a window of 0"):
        loss_response(protocol, flight(protocol, cubic(1)), [ServerWindow(0, BEFORE * segment_bytes, None)])


def test_a_transfer_that_ends_too_early_is_no_measurement() -> None:
    seen = loss_response(PROTOCOLS["tcp+"], flight(PROTOCOLS["tcp+"], cubic(1), end_s=RECOVERED_S + 3), ())
    with pytest.raises(EyelevelError, match=r"ended before the window could grow back, in 5\.3 s"):
        judge_loss_response(PROTOCOLS["tcp+"], seen)


def test_the_curve_is_that_of_the_standard() -> None:
    one, two = CubicCurve(200, 1, 0.25), CubicCurve(200, 2, 0.25)
    assert (one.beta, two.beta) == (0.7, 0.85)
    assert one.k_s == pytest.approx((200 * 0.3 / 0.4) ** (1 / 3))
    for curve in (one, two):
        assert curve.window(np.array([0, curve.k_s])) == pytest.approx([curve.beta * 200, 200])
    # RFC 9438, section 4.3: while Reno would have grown more, Cubic grows like Reno: 0.53 segments a round trip.
    assert CubicCurve(200, 1, 0.005).window(np.array([0.1])) == pytest.approx([140 + 20 * 3 * 0.3 / 1.7])


def test_the_document_has_the_curve_beside_what_was_seen() -> None:
    protocol = PROTOCOLS["tcp+"]
    seen = loss_response(protocol, flight(protocol, cubic(1)), [ServerWindow(9.8, 200 * 1448, None)])
    document = seen.document(expected_curve(protocol, seen))
    series = document["series"]
    assert (document["before"], document["segment_bytes"]) == (pytest.approx(200, abs=1), 1448)
    assert len({len(column) for column in series.values()}) == 1
    since = series["at_s"].index(0)
    assert series["server"][0] is None
    assert series["server"][since] == 200
    assert series["expected"][:since] == [None] * since
    assert series["expected"][since + 2 :] == pytest.approx(series["in_flight"][since + 2 :], abs=2)
    assert set(seen.document(None)["series"]["expected"]) == {None}


def tcp_packets() -> Iterator[Fields]:
    """Ten segments of 1000 bytes, sent a tenth of a second apart; the fourth is lost, and retransmitted after three
    later ones arrived."""

    def packet(at_s: float, port: str, begin: int, length: int, acknowledged: int, *sacked: int) -> Fields:
        fields = {"frame.time_epoch": at_s, "tcp.srcport": port, "tcp.seq": begin, "tcp.len": length}
        blocks = {"tcp.options.sack_le": sacked[::2], "tcp.options.sack_re": sacked[1::2]}
        texts = {name: [str(value)] for name, value in {**fields, "tcp.ack": acknowledged}.items()}
        return {**texts, **{name: [str(value) for value in values] for name, values in blocks.items()}}

    for number in range(7):
        yield packet(number / 10, HTTPS_PORT, 1 + 1000 * number, 1000, 1)
    yield packet(1.0, "5000", 1, 0, 3001)
    yield packet(1.1, "5000", 1, 0, 3001, 4001, 7001)
    yield packet(1.2, HTTPS_PORT, 3001, 1000, 1)
    for number in range(7, 10):
        yield packet(number / 10 + 0.6, HTTPS_PORT, 1 + 1000 * number, 1000, 1)
    yield packet(2.2, "5000", 1, 0, 7001)
    yield packet(2.3, "5000", 1, 0, 10001)


def test_what_tcp_has_in_flight_is_what_is_not_acknowledged() -> None:
    seen = tcp_flight(tcp_packets())
    assert seen
    bytes_in_flight = dict(zip(seen.at_s.round(1), seen.in_flight_bytes, strict=True))
    assert [bytes_in_flight[at_s] for at_s in (1.0, 1.1, 1.2, 1.5, 2.2, 2.3)] == [4000, 1000, 1000, 4000, 3000, 0]
    assert (seen.lost_packets, seen.detected_at_s, seen.recovered_at_s, seen.last_sent_at_s) == (1, 1.2, 2.2, 1.5)
    assert (seen.most_bytes(0.95, 1.15), seen.most_bytes(3, 4)) == (4000, 0)


def quic_packets(lost: int | None = 4) -> Iterator[Fields]:
    """Packets 1 to 10 of 1000 bytes, one of which may be lost."""

    def sent(at_s: float, number: int) -> Fields:
        fields = {"frame.time_epoch": at_s, "udp.srcport": HTTPS_PORT, "udp.length": 1008, "quic.header_form": 0}
        return {name: [str(value)] for name, value in {**fields, "quic.packet_number": number}.items()}

    def acknowledgement(at_s: float, largest: int) -> Fields:
        gap = lost is not None and largest > lost
        first = largest - lost - 1 if gap and lost else largest - 1
        fields = {"frame.time_epoch": at_s, "udp.srcport": "5000", "udp.length": 50, "quic.header_form": 0}
        ranges = {"quic.ack.gap": ["0"] if gap else [], "quic.ack.ack_range": [str(lost - 2)] if gap and lost else []}
        ends = {"quic.ack.largest_acknowledged": largest, "quic.ack.first_ack_range": first}
        return {**{name: [str(value)] for name, value in {**fields, **ends}.items()}, **ranges}

    yield {"frame.time_epoch": ["0"], "quic.header_form": ["1", "0"], "udp.srcport": [HTTPS_PORT]}
    for number in range(1, 8):
        yield sent(number / 10, number)
    yield acknowledgement(1.0, 3)
    yield acknowledgement(1.1, 6)
    yield acknowledgement(1.2, 7)
    for number in range(8, 11):
        yield sent(number / 10 + 0.6, number)
    yield acknowledgement(2.2, 8)
    yield acknowledgement(2.3, 10)


def test_what_quic_has_in_flight_is_neither_acknowledged_nor_lost() -> None:
    seen = quic_flight(quic_packets())
    assert seen
    bytes_in_flight = dict(zip(seen.at_s.round(1), seen.in_flight_bytes, strict=True))
    assert [bytes_in_flight[at_s] for at_s in (0.7, 1.0, 1.1, 1.2, 1.6, 2.2, 2.3)] == [
        7000,
        4000,
        2000,
        0,
        3000,
        2000,
        0,
    ]
    assert (seen.lost_packets, seen.detected_at_s, seen.recovered_at_s, seen.last_sent_at_s) == (1, 1.2, 2.2, 1.6)


def test_where_nothing_was_lost_there_is_no_answer_to_it() -> None:
    assert quic_flight(quic_packets(lost=None)) is None
    assert tcp_flight(packet for packet in tcp_packets() if float(packet["frame.time_epoch"][0]) < 1) is None
