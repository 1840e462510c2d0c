"""Head-of-line blocking: known waits in simulated arrivals, exact to the byte."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.figures import smallest_type

from analysis.figures.style import SMALL
from base.errors import EyelevelError
from studies.packets import head_of_line_report as report
from studies.packets.dissection import Capture, PacketRecord
from studies.packets.extents import EVERY_STREAM, Extent, Record
from studies.packets.head_of_line import (
    CAUSES,
    FRONT,
    OTHERS,
    RECORD,
    STREAM,
    Arrival,
    Blocking,
    Delivery,
    blocking,
    by_stream,
    in_one_sequence,
    in_sequence,
    measures,
    union,
)
from studies.packets.head_of_line_figures import waiting_bytes
from studies.packets.runs import CapturedRun, waits_row

CONNECTION = ("192.0.2.1", 5000)
HEADER, TAG = 5, 17


def records(*contents: Sequence[tuple[int, int]]) -> list[Record]:
    """TLS records, each with a header, (stream, bytes) as in `contents`, and a tag."""
    result, at = [], 0
    for content in contents:
        extents = []
        for stream, size in ((None, HEADER), *content, (None, TAG)):
            extents.append(Extent(stream, at, at + size))
            at += size
        result.append(Record(tuple(extents)))
    return result


def segment(at_s: float, start: int, end: int) -> Arrival:
    return Arrival(at_s, Extent(None, start, end))


def frame(at_s: float, stream: int, start: int, end: int) -> Arrival:
    return Arrival(at_s, Extent(stream, start, end))


def waits(one: Blocking, cause: str) -> dict[int, float]:
    """The waits for one cause in byte-seconds, by stream; streams without waits are left out."""
    result: dict[int, float] = {}
    for delivery in one.deliveries:
        start_s, end_s = delivery.wait(cause)
        if start_s < end_s < math.inf:
            result[delivery.stream] = result.get(delivery.stream, 0) + delivery.bytes * (end_s - start_s)
    return result


# Three records of 100 bytes, each for another stream.
THREE = records([(1, 78)], [(3, 78)], [(5, 78)])


def test_nothing_waits_when_records_arrive_whole_and_in_order() -> None:
    one = in_sequence([segment(number, 100 * number, 100 * number + 100) for number in range(3)], THREE)
    assert [delivery.bytes for delivery in one.deliveries] == [78, 78, 78]
    assert not any(waits(one, cause) for cause in (*CAUSES, FRONT))
    assert one.gaps == 0


def test_complete_records_of_others_wait_until_a_gap_is_filled() -> None:
    one = in_sequence([segment(0, 0, 100), segment(1, 200, 300), segment(5, 100, 200)], THREE)
    assert waits(one, OTHERS) == waits(one, FRONT) == {5: 78 * 4}
    assert not waits(one, STREAM) and not waits(one, RECORD)
    assert one.gaps == 1


def test_bytes_of_the_same_stream_wait_for_the_stream() -> None:
    same = records([(1, 78)], [(3, 78)], [(3, 78)])
    one = in_sequence([segment(0, 0, 100), segment(1, 200, 300), segment(5, 100, 200)], same)
    assert waits(one, STREAM) == {3: 78 * 4}
    assert not waits(one, OTHERS) and not waits(one, FRONT)


def test_a_gap_of_several_streams_is_the_streams_until_only_others_are_missing() -> None:
    # The gap contains parts of streams 1 and 3; 3's part is retransmitted first.
    several = records([(1, 78)], [(3, 78)], [(3, 78), (5, 100)])
    one = in_sequence([segment(1, 200, 400), segment(3, 100, 200), segment(7, 0, 100)], several)
    assert waits(one, STREAM) == {3: 78 * 2}
    # The bytes that arrived at 3 s wait for stream 1, too.
    assert waits(one, OTHERS) == {3: 2 * 78 * 4, 5: 100 * 6}
    # The second gap is within the first: nothing beyond the highest byte arrived.
    assert one.gaps == 1


def test_two_gaps_in_front_count_until_the_later_one_is_filled() -> None:
    four = records([(1, 78)], [(3, 78)], [(5, 78)], [(7, 78)], [(9, 78)])
    arrivals = [segment(0, 0, 100), segment(1, 200, 300), segment(2, 400, 500)]
    one = in_sequence([*arrivals, segment(6, 300, 400), segment(9, 100, 200)], four)
    assert waits(one, OTHERS) == {5: 78 * 8, 7: 78 * 3, 9: 78 * 7}
    assert one.gaps == 2


def test_bytes_wait_for_the_rest_of_their_record_without_any_gap() -> None:
    long = records([(1, 200), (3, 100)])
    one = in_sequence([segment(0, 0, 105), segment(1, 105, 322)], long)
    assert waits(one, RECORD) == {1: 100 * 1}
    assert not waits(one, OTHERS) and not waits(one, FRONT) and one.gaps == 0


def test_within_a_record_a_gap_of_another_stream_is_the_records_wait_and_counts_in_the_most() -> None:
    # Bytes 5 to 205 belong to stream 1, 205 to 305 to stream 3; those before the gap only lack the rest of the record.
    long = records([(1, 200), (3, 100)])
    one = in_sequence([segment(0, 0, 105), segment(1, 205, 322), segment(4, 105, 205)], long)
    assert waits(one, RECORD) == {1: 100 * 4, 3: 100 * 3}
    assert waits(one, FRONT) == {3: 100 * 3}
    assert not waits(one, OTHERS) and not waits(one, STREAM)


def test_a_missing_tag_or_frame_of_the_connection_blocks_all_streams_behind() -> None:
    # All of the first record except its tag; then a record without a stream.
    one = in_sequence([segment(0, 0, 83), segment(1, 100, 300), segment(3, 83, 100)], THREE)
    assert waits(one, RECORD) == {1: 78 * 3}
    assert waits(one, OTHERS) == {3: 78 * 2, 5: 78 * 2}
    control = [*records([]), Record((Extent(1, 22, 100),))]
    assert waits(in_sequence([segment(1, 22, 100), segment(3, 0, 22)], control), OTHERS) == {1: 78 * 2}


def test_a_missing_handshake_is_needed_by_every_stream() -> None:
    early = records([(EVERY_STREAM, 78)], [(1, 78)])
    one = in_sequence([segment(1, 100, 200), segment(4, 0, 100)], early)
    assert waits(one, STREAM) == {1: 78 * 3}
    assert not waits(one, OTHERS)


def test_duplicates_and_other_cuts_of_what_is_sent_again_change_nothing() -> None:
    first = [segment(0, 0, 100), segment(1, 200, 300)]
    plain = in_sequence([*first, segment(5, 100, 200)], THREE)
    again = in_sequence([*first, segment(2, 200, 300), segment(5, 50, 250), segment(6, 100, 200)], THREE)
    for cause in (*CAUSES, FRONT):
        assert waits(plain, cause) == waits(again, cause)
    assert plain.gaps == again.gaps == 1
    assert sum(delivery.bytes for delivery in again.deliveries) == 3 * 78


def test_packets_that_overtake_each_other_open_a_gap_like_a_loss() -> None:
    one = in_sequence([segment(0, 100, 200), segment(0.25, 0, 100), segment(1, 200, 300)], THREE)
    assert waits(one, OTHERS) == {3: 78 * 0.25}
    assert one.gaps == 1


def test_a_loss_with_nothing_behind_it_blocks_nothing_however_long_it_takes() -> None:
    one = in_sequence([segment(0, 0, 100), segment(0.1, 100, 200), segment(9, 200, 300)], THREE)
    assert not any(waits(one, cause) for cause in (*CAUSES, FRONT))
    assert one.gaps == 0


def test_what_is_never_complete_is_counted_apart() -> None:
    one = in_sequence([segment(0, 0, 100), segment(1, 200, 300)], THREE)
    result = measures([one])
    assert (result["content_bytes"], result["incomplete_bytes"], result["gaps"]) == (156, 78, 1)
    assert result["others_byte_s"] == 0


def test_streams_of_quic_wait_for_themselves_only() -> None:
    arrivals = [frame(0, 0, 0, 100), frame(1, 0, 200, 300), frame(2, 4, 0, 100), frame(5, 0, 100, 200)]
    one = by_stream([*arrivals, frame(6, 3, 50, 60), frame(7, 8, 10, 30)])
    assert waits(one, STREAM) == {0: 100 * 4}
    assert not any(waits(one, cause) for cause in (RECORD, OTHERS, FRONT))
    # Gaps in a unidirectional stream and in an incomplete stream are counted, but bytes of these streams do not wait.
    assert one.gaps == 3
    assert measures([one])["content_bytes"] == 420
    assert measures([one])["incomplete_bytes"] == 20


def test_quics_packets_in_one_sequence_wait_for_what_was_sent_before_them() -> None:
    sendings = [
        frame(0, 0, 0, 100),
        frame(0, 4, 0, 100),
        frame(0, 0, 100, 200),
        frame(0, 3, 0, 9),
        frame(0, 4, 100, 200),
    ]
    again = frame(2, 0, 0, 100)
    # The first packet was lost: stream 0 waits for itself, and stream 4 for stream 0.
    arrivals = [*(replace(sending, at_s=1) for sending in sendings[1:]), frame(4, 0, 0, 100)]
    one = in_one_sequence(arrivals, [*sendings, again])
    assert waits(one, STREAM) == {0: 100 * 3}
    assert waits(one, OTHERS) == waits(one, FRONT) == {4: 200 * 3}
    assert one.gaps == 1
    assert not waits(by_stream(arrivals), OTHERS)
    # An incomplete stream blocks nothing, and is left out.
    incomplete = in_one_sequence(arrivals[:-1], sendings)
    assert measures([incomplete])["content_bytes"] == 200
    assert measures([incomplete])["incomplete_bytes"] == 0


def delivery(stream: int, size: int, *times_s: float) -> Delivery:
    arrival_s, stream_s, record_s, front_s = times_s
    return Delivery(stream, size, arrival_s, stream_s, record_s, front_s)


def test_the_measures_of_a_load_are_those_of_all_its_connections() -> None:
    one = Blocking((delivery(1, 10, 0, 0, 0, 2), delivery(3, 30, 1, 1, 1, 4)), 2)
    other = Blocking((delivery(1, 60, 6, 6, 6, 7), delivery(1, 100, 8, 9, 9, 9)), 1)
    result = measures([one, other])
    assert (result["content_bytes"], result["gaps"]) == (200, 3)
    assert (result["others_bytes"], result["others_byte_s"]) == (100, 10 * 2 + 30 * 3 + 60)
    # Bytes waited from 0 to 4 s and from 6 to 7 s.
    assert result["others_ms"] == 5000
    assert result["others_longest_ms"] == 3000
    assert result["others_median_ms"] == 1000
    assert result["others_mean_ms"] == 1e3 * 170 / 200
    even = measures([Blocking((delivery(1, 50, 0, 0, 0, 1), delivery(3, 50, 0, 0, 0, 3)), 1)])
    assert even["others_median_ms"] == 1000
    assert (result["stream_ms"], result["record_ms"]) == (1000, 0)
    assert math.isnan(result["record_median_ms"])
    part = measures([one, other], 1.5, 6.5)
    assert part["others_ms"] == 2500 + 500
    assert part["others_byte_s"] == 10 * 0.5 + 30 * 2.5 + 60 * 0.5
    assert part["content_bytes"] == 100


def test_spans_of_time_are_united() -> None:
    assert list(union([(5, 6), (0, 2), (1, 3), (3, 4), (7, 7)])) == [(0, 4), (5, 6)]
    assert list(union([(0, 9), (1, 2), (3, 4)])) == [(0, 9)]
    assert list(union([])) == []


def packet(at_s: float, extent: Extent, content_bytes: int) -> PacketRecord:
    return PacketRecord(at_s, CONNECTION, True, 1000, carries=(extent,), content_bytes=content_bytes)


def test_a_captures_bytes_must_be_those_that_were_dissected() -> None:
    packets = tuple(packet(n, Extent(None, 100 * n, 100 * n + 100), 78) for n in (0, 2, 1))
    capture = Capture(packets, {}, {CONNECTION: tuple(THREE)})
    assert sum(one.bytes for one in blocking(capture)[CONNECTION].deliveries) == 3 * 78
    wrong = replace(capture, packets=(*packets[:2], replace(packets[2], content_bytes=77)))
    with pytest.raises(EyelevelError, match="233 bytes of HTTP's streams were dissected, but 234 have times"):
        blocking(wrong)


def test_the_curve_of_waiting_bytes_rises_and_falls_with_them() -> None:
    deliveries = [delivery(1, 10, 0, 0, 0, 2), delivery(3, 30, 1, 1, 1, 2), delivery(5, 7, 3, 3, 3, 3)]
    times_s, sizes = waiting_bytes(deliveries, OTHERS)
    assert (list(times_s), list(sizes)) == ([0, 1, 2], [10, 40, 0])


def load(protocol: str, number: int, one: Blocking, plt_ms: float, sequence: Blocking | None = None) -> CapturedRun:
    setting = {"site": "s", "network": "mss", "protocol": protocol, "run": number, "rtt_ms": 760.0, "ping_ms": 760.0}
    in_sequence = {CONNECTION: sequence} if sequence else {}
    row = waits_row(setting, {CONNECTION: one}, in_sequence, 100.0, plt_ms)
    return CapturedRun(setting, [], [], (), row, one.deliveries)


# After a gap, 100 bytes of another stream wait for two seconds, beginning 1 s after the start of navigation. Later, 100
# more bytes wait.
BLOCKED = Blocking((delivery(1, 100, 101, 101, 101, 103), delivery(3, 100, 104, 104, 104, 109)), 2)
FREE = Blocking((delivery(0, 200, 101, 102, 102, 102),), 1)


def test_the_share_of_a_load_ends_with_the_load_event() -> None:
    assert load("tcp+", 1, BLOCKED, 4000.0).waits["others_share"] == 0.5
    assert load("tcp+", 1, BLOCKED, 5000.0).waits["others_share"] == pytest.approx(3 / 5)
    assert math.isnan(load("tcp+", 1, BLOCKED, math.nan).waits["others_share"])


def test_the_section_has_means_over_loads_with_their_spread_and_number() -> None:
    runs = [
        load("tcp+", 1, BLOCKED, 4000.0),
        load("tcp+", 2, Blocking(BLOCKED.deliveries[:1], 1), 8000.0),
        load("quic", 1, FREE, 4000.0, BLOCKED),
    ]
    table = report.table(runs)
    assert list(table.texts["others, mean of a byte [ms]"]) == ["2750.0 ± 1060.7", "0.0"]
    assert list(table.texts["own stream, mean of a byte [ms]"]) == ["0.0 ± 0.0", "1000.0"]
    assert list(table.texts["in one sequence, mean of a byte [ms]"])[1] == "3500.0"
    assert list(table.texts["others, share of the load"]) == ["37.5 %", "0.0 %"]
    assert list(report.loads_table(runs).data["others_bytes"]) == [200, 100, 0]
    [paragraph] = report.paragraphs(runs)
    assert "37.5 % to 37.5 % of the load over TCP+ (2 loads" in paragraph
    assert "QUIC" not in paragraph
    means, loads = report.figures(runs)
    assert "1 to 2 loads of each setting" in means.caption
    assert "TCP+: run 1 of 2; QUIC: run 1 of 1" in loads.caption
    for figure in (means, loads):
        assert smallest_type(figure.draw(*figure.arguments)) >= SMALL


def test_loads_without_gaps_have_no_figure_of_their_own_and_no_paragraph() -> None:
    runs = [load("tcp+", 1, Blocking((delivery(1, 100, 101, 101, 102, 101),), 0), 4000.0)]
    assert not list(report.paragraphs(runs))
    assert [figure.name for figure in report.figures(runs)] == ["packets_waits"]
