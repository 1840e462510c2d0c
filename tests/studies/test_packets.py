"""Packets: captures of real loads are complete, decrypted, accounted for to the last byte, and agree with RFCs."""

import io
import json
import math
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from support.browser import Browser
from support.figures import smallest_type
from support.material import REFERENCE as PUBLISHED
from support.reports import accessible_report
from support.scripted import ScriptedSlot

from analysis.figures.style import SMALL
from base.errors import EyelevelError
from base.places import PROJECT, tool
from browsers.chromium_browser import BROWSER
from dataset.table import Row, Run, require_document, valid_rows
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.place import measure_here
from measure.campaign.progress import ProgressDisplay
from measure.run.evidence import Evidence, read_evidence
from measure.run.setting import Loading
from record.generated import generated_exchange
from record.site import Recording, Site, write_site
from replay.content import make_content
from studies.packets import bytes_figure, durations_figure, section, university
from studies.packets.bytes import (
    AGAIN,
    CONTROL,
    FRAMING,
    HTTP_HEADERS,
    KINDS,
    PADDING,
    PAYLOAD,
    UNREAD,
    Piece,
    Stream,
)
from studies.packets.delays import delays_in_ms, with_added_rtt
from studies.packets.dissection import frame_bytes, read_capture
from studies.packets.files import CLIENT, KEYS, PING, SERVERS, STUDY
from studies.packets.layers import Assembly, append_http2, append_http3
from studies.packets.measure import PacketsMethod
from studies.packets.ping import PingTimes, expected_ms, fault
from studies.packets.runs import ENDS, CapturedRun, read_run
from studies.packets.sequence import Step, average
from studies.packets.sequence_drawing import draw
from tuning import protocols
from tuning.networks import Network

# The round trip is so long that the delays of a busy machine matter little.
NETWORK = Network("far", min_rtt_ms=400)
PROTOCOLS = ("tcp+", "quic")
PICTURE_BYTES = 30_000
IP_AND_UDP_BYTES = 28
PAGE = b'<!doctype html><title>packets</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style">'
STYLE = b"/*" + bytes(65 + place % 26 for place in range(PICTURE_BYTES)) + b"*/"


def site_in(folder: Path) -> Site:
    """A page and its style sheet, from one server."""
    exchanges = (
        generated_exchange("https://packets.example/", "text/html", PAGE, "192.0.2.1"),
        generated_exchange("https://packets.example/style", "text/css", STYLE, "192.0.2.1"),
    )
    return write_site(Recording("https://packets.example/", exchanges, {"name": "eyelevel test"}), folder / "packets")


def campaign_in(folder: Path) -> Campaign:
    known = protocols.load()
    sites = {site.name: site for site in [site_in(folder)]}
    return Campaign(
        folder=folder / "results",
        sites=sites,
        networks={NETWORK.name: NETWORK},
        protocols={name: known[name] for name in PROTOCOLS},
        runs=1,
        seed=1,
        loading=Loading(filmed=False),
        method=PacketsMethod(),
        study={"name": STUDY},
    )


def run_over(protocol: str) -> Run:
    return Run("packets", NETWORK.name, protocol, 1)


def evidence_of(folder: Path) -> Evidence:
    return read_evidence(folder, filmed=False)


def row_of(campaign: Campaign, protocol: str) -> Row:
    return next(row for row in valid_rows(campaign.folder, STUDY) if row.protocol == protocol)


def go(campaign: Campaign) -> str:
    """Measure `campaign`; return the output."""
    printed = io.StringIO()
    display = partial(ProgressDisplay, Console(file=printed, width=200))
    measure(campaign, display, partial(measure_here, slot=ScriptedSlot()))
    return printed.getvalue()


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One load over each protocol."""
    campaign = campaign_in(tmp_path_factory.mktemp("packets"))
    printed = go(campaign)
    assert len(valid_rows(campaign.folder, STUDY)) == len(PROTOCOLS), printed
    return campaign


@pytest.fixture(scope="module")
def runs(captured: Campaign) -> Mapping[str, CapturedRun]:
    document = require_document(captured.folder)
    rows = valid_rows(captured.folder, STUDY)
    return {row.protocol: read_run(captured.folder, document, row) for row in rows}


def packet_bytes(capture_file: Path) -> Iterator[int]:
    """The length of every packet in a pcapng file, by its enhanced packet blocks (draft-ietf-opsawg-pcapng 4.3)."""
    data, at = capture_file.read_bytes(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            yield struct.unpack_from("<I", data, at + 24)[0]
        at += length


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_clients_first_quic_datagram_has_at_least_1200_bytes(runs: Mapping[str, CapturedRun]) -> None:
    """RFC 9000 section 14.1."""
    assert runs["quic"].connections
    for connection in runs["quic"].connections:
        assert connection["first_packet_udp_bytes"] >= 1200


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize(("protocol", "round_trips"), [("tcp+", 2), ("quic", 1)])
def test_a_request_leaves_after_two_round_trips_over_tcp_and_one_over_quic(
    protocol: str, round_trips: int, runs: Mapping[str, CapturedRun]
) -> None:
    """TCP's handshake and TLS 1.3's (RFC 8446 section 2), or both in one (RFC 9001 section 4), as seen by the
    client."""
    [connection] = [connection for connection in runs[protocol].connections if connection["first"]]
    for name in ("handshake_ms", "request_ms"):
        assert round_trips <= connection[name] / NETWORK.min_rtt_ms < round_trips + 1
    assert connection["handshake_ms"] <= connection["request_ms"] < connection["first_byte_ms"]
    assert connection["first_byte_ms"] / NETWORK.min_rtt_ms >= round_trips + 1


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_bytes_of_the_table_add_up_to_those_in_the_files(
    protocol: str, captured: Campaign, runs: Mapping[str, CapturedRun], tmp_path: Path
) -> None:
    [site] = captured.sites.values()
    make_content(site, tmp_path, repeatable=True)
    responses = [file.read_bytes() for file in tmp_path.glob("packets.example/*")]
    bodies_bytes = sum(len(response.partition(b"\r\n\r\n")[2]) for response in responses)
    assert bodies_bytes > len(PAGE) + len(STYLE)
    folder = captured.folder / row_of(captured, protocol).folder
    for end, file in ENDS.items():
        rows = {row["direction"]: row for row in runs[protocol].captures if row["end"] == end}
        sizes = list(packet_bytes(folder / file))
        assert (rows["all"]["packets"], rows["all"]["bytes"]) == (len(sizes), sum(sizes))
        for direction in rows.values():
            assert sum(direction[kind] for kind in KINDS) == direction["bytes"]
        assert sum(rows[way]["bytes"] for way in ("up", "down", "pings")) == rows["all"]["bytes"]
        assert rows["down"][PAYLOAD] == bodies_bytes
        assert rows["up"][PAYLOAD] == 0
        assert max(sizes) <= 1500
    for connection in runs[protocol].connections:
        assert sum(connection[kind] for kind in KINDS) == connection["bytes"]
        assert sum(connection[f"handshake_{kind}"] for kind in KINDS) == connection["handshake_bytes"]


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_where_nothing_is_lost_data_waits_for_nothing_but_its_record(
    protocol: str, runs: Mapping[str, CapturedRun]
) -> None:
    waits = runs[protocol].waits
    assert waits["content_bytes"] > len(PAGE) + len(STYLE)
    assert [waits[name] for name in ("gaps", "incomplete_bytes", "stream_ms", "others_ms", "front_ms")] == [0] * 5
    # Each of the style sheet's records consists of several segments.
    assert (waits["record_bytes"] > 0) == (protocol == "tcp+")
    for name in ("content_bytes", "record_bytes"):
        assert sum(connection[name] for connection in runs[protocol].connections) == waits[name]


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize(("protocol", "http"), [("tcp+", "http2"), ("quic", "http3")])
def test_a_run_holds_all_of_itself_and_its_captures_their_own_keys(
    protocol: str, http: str, captured: Campaign
) -> None:
    folder = captured.folder / row_of(captured, protocol).folder
    assert json.loads((folder / PING).read_text())["mean_ms"] == pytest.approx(NETWORK.min_rtt_ms, rel=0.01)
    assert "CLIENT_TRAFFIC_SECRET" in (folder / KEYS).read_text()
    for file in (CLIENT, SERVERS):
        command: list[str | Path] = [tool("tshark"), "-r", folder / file, "-Y", http]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_ends_saw_the_packets_of_the_handshake_half_a_round_trip_apart(
    protocol: str, runs: Mapping[str, CapturedRun]
) -> None:
    steps = runs[protocol].steps
    assert steps[0].lines == (("SYN",) if protocol == "tcp+" else ("Initial: ClientHello",))
    assert "HEADERS" in next(step for step in reversed(steps) if step.from_server).lines[-1]
    for step in steps:
        assert NETWORK.delay_ms <= step.received_ms - step.sent_ms < NETWORK.min_rtt_ms


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_captures_go_on_until_connections_are_closed(protocol: str, runs: Mapping[str, CapturedRun]) -> None:
    """Nothing is lost on the way, so if only one end has a packet, the other's capture must be incomplete."""
    rows = {(row["end"], row["direction"]): row for row in runs[protocol].captures}
    for way in ("up", "down"):
        assert rows["client", way]["packets"] == rows["servers", way]["packets"]
        assert rows["client", way]["bytes"] == rows["servers", way]["bytes"]
    [first] = [connection for connection in runs[protocol].connections if connection["first"]]
    # The server's FIN is an answer (RFC 9293 section 3.6); when QUIC closes a connection, there is none (RFC 9000
    # section 10.2).
    assert first["closing_ms"] >= (NETWORK.min_rtt_ms if protocol == "tcp+" else 0)


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_what_was_captured_is_not_captured_again(captured: Campaign) -> None:
    assert go(captured).startswith("nothing is measured")
    with pytest.raises(EyelevelError, match="begun with other settings"):
        go(replace(captured, seed=2))


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_run_after_wrong_pings_does_not_count(captured: Campaign) -> None:
    setting = captured.setting(run_over("tcp+"))
    nearer = replace(setting, network=replace(NETWORK, min_rtt_ms=390))
    folder = captured.folder / row_of(captured, "tcp+").folder
    reason = PacketsMethod().reason_against(nearer, folder, evidence_of(folder))
    assert reason and reason.gate == "ping" and reason.text.startswith("pings took 4")


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_load_may_be_judged_again_and_does_not_count_without_a_capture(captured: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(captured.folder / row_of(captured, "quic").folder, folder)
    assert PacketsMethod().reason_against(captured.setting(run_over("quic")), folder, evidence_of(folder)) is None
    (folder / SERVERS).unlink()
    setting = captured.setting(run_over("quic"))
    reason = PacketsMethod().reason_against(setting, folder, evidence_of(folder))
    assert reason and reason.gate == "capture"


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_section_tells_every_setting(
    captured: Campaign, runs: Mapping[str, CapturedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(section, "read_runs", lambda _: list(runs.values()))
    report = section.section(captured.folder)
    assert report
    assert len(report.drawings) == 1
    assert [figure.draw(*figure.arguments) for figure in report.figures]
    for table in report.tables[:2]:
        assert list(table.data["protocol"]) == list(PROTOCOLS)


@pytest.mark.needs_namespaces
@pytest.mark.needs_axe
@pytest.mark.loads  # otherwise each worker would repeat its loads
def test_everybody_can_read_the_section(captured: Campaign, browser: Browser) -> None:
    assert accessible_report(browser, captured.folder) == []


def test_a_campaign_without_captures_has_no_section(tmp_path: Path) -> None:
    assert section.section(tmp_path) is None


def test_no_type_of_the_bytes_is_smaller_than_seven_points() -> None:
    names = {"site": "packets", "network": "lte", "protocol": "quic"}
    assert smallest_type(bytes_figure.draw(pd.DataFrame([names | dict.fromkeys(KINDS, 1e5)]))) >= SMALL


def test_a_capture_that_breaks_off_is_named(tmp_path: Path) -> None:
    (tmp_path / CLIENT).write_bytes(b"no capture")
    (tmp_path / KEYS).touch()
    with pytest.raises(EyelevelError, match=f"tshark cannot read {tmp_path / CLIENT}"):
        read_capture(tmp_path / CLIENT, tmp_path / KEYS)


CAPTURING = """
import socket, sys
from pathlib import Path
from measure.captures.recording import capturing
from replay.world import outward_device
with capturing(outward_device(), Path(sys.argv[1])), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(int(sys.argv[2])):
        sender.sendto(b"to the end", (sys.argv[3], 9))
"""


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_capture_has_what_was_sent_just_before_its_end(tmp_path: Path) -> None:
    shell: list[str | Path] = [tool("mm-delay"), "1", "--", sys.executable, "-c", CAPTURING]
    subprocess.run([*shell, tmp_path / CLIENT, "50", "192.0.2.9"], cwd=PROJECT, check=True)
    assert list(packet_bytes(tmp_path / CLIENT)).count(IP_AND_UDP_BYTES + len("to the end")) == 50


# Nobody reads the packets sent to the device, as when the machine delays the emulated network.
UNFETCHED = """
import fcntl, os, socket, struct, subprocess, sys
from pathlib import Path
from base.places import tool
from measure.captures.recording import capturing
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
device = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"unfetched", IFF_TUN | IFF_NO_PI))
subprocess.run([tool("ip"), "address", "add", "198.51.100.1/24", "dev", "unfetched"], check=True)
subprocess.run([tool("ip"), "link", "set", "unfetched", "up"], check=True)
with capturing("unfetched", Path(sys.argv[1])), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(50):
        sender.sendto(b"to the end", ("198.51.100.9", 9))
"""


@pytest.mark.needs_namespaces
def test_a_capture_has_what_the_emulated_network_has_not_fetched(tmp_path: Path) -> None:
    shell: list[str | Path] = [tool("mm-delay"), "1", "--", sys.executable, "-c", UNFETCHED]
    subprocess.run([*shell, tmp_path / CLIENT], cwd=PROJECT, check=True)
    assert list(packet_bytes(tmp_path / CLIENT)).count(IP_AND_UDP_BYTES + len("to the end")) == 50


def test_networks_with_added_round_trips_have_names_and_keep_the_rest() -> None:
    network = Network("lte", min_rtt_ms=74, up_mbps=2.8, down_mbps=10.5, queue_ms=200)
    variants = with_added_rtt(network, delays_in_ms("0, 10,50"))
    assert list(variants) == ["lte", "lte+10ms", "lte+50ms"]
    assert variants["lte+50ms"] == replace(network, name="lte+50ms", min_rtt_ms=124)
    for wrong in ("", "x", "-1", "inf"):
        with pytest.raises(EyelevelError, match="delays are numbers"):
            delays_in_ms(wrong)


def test_pings_are_held_to_the_network_and_what_serialising_takes() -> None:
    slow = Network("slow", min_rtt_ms=100, up_mbps=0.468, down_mbps=0.468, queue_ms=200)
    least_ms, most_ms = expected_ms(slow)
    assert (least_ms + most_ms) / 2 == pytest.approx(100 + 2 * 84 * 8 / 468)
    assert most_ms - least_ms == pytest.approx(2 * 1.0287, abs=0.001)
    assert fault(PingTimes(20, 20, 102, 102.9, 104, 0.3), slow) is None
    assert fault(PingTimes(20, 20, 102, 105, 110, 0.3), slow)
    assert fault(PingTimes(20, 0, math.nan, math.nan, math.nan, math.nan), slow)


def test_pings_that_scatter_more_than_the_network_makes_them_do_not_count() -> None:
    steady = Network("steady", min_rtt_ms=100)
    assert fault(PingTimes(20, 20, 99, 100, 108, 1.9), steady) is None
    text = "pings deviated by 2.10 ms (standard deviation), more than 2.00 ms"
    assert fault(PingTimes(20, 20, 99, 100, 108, 2.1), steady) == text
    assert fault(PingTimes(20, 20, 91, 100, 108, 2.1), replace(steady, jitter_ms=10)) is None


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_our_bytes_stand_beside_the_university_s(runs: Mapping[str, CapturedRun]) -> None:
    connections = university.with_added_delay(pd.DataFrame([row for run in runs.values() for row in run.connections]))
    headers = pd.DataFrame([row for run in runs.values() for row in run.headers])
    beside = university.beside(connections, headers, {"tcp+": "tcp", "quic": "quic"})
    table = beside[beside["unit"] == "bytes"].set_index(["protocol", "quantity"])
    assert table.loc[("tcp+", "handshake"), "theirs"] == 2068
    first = connections[connections["first"]].set_index("protocol").loc["tcp+"]
    assert table.loc[("tcp+", "handshake"), "ours"] == first["handshake_bytes"]
    assert table.loc[("tcp+", "established"), "ours"] == first["bytes"] - first["handshake_bytes"]
    # Without an added delay, there are their four times without one.
    times = beside[beside["unit"] == "ms"].set_index(["protocol", "quantity"])
    assert set(times["added_ms"]) == {0} and len(times) == 8
    assert times.loc[("tcp+", "first byte"), "ours"] == pytest.approx(first["first_byte_ms"] - first["handshake_ms"])
    # Here, a SYN has 20 bytes of options. Other segments have time stamps, 12 bytes (RFC 7323), except RSTs, which have
    # none.
    least, most = table.loc[("tcp+", "TCP header"), ["least", "most"]]
    assert least in (20, 32) and most == 40
    assert tuple(table.loc[("quic", "UDP header"), ["least", "most"]]) == (8, 8)
    # Flags, a packet number of 1 to 4 bytes and, to the server, its connection ID (RFC 9000, section 17.3).
    least, most = table.loc[("quic", "short header"), ["least", "most"]]
    assert least == 2 and 10 <= most <= 13
    # A long header also has at least the version, the lengths of both IDs, its own length, and another ID (section
    # 17.2).
    assert 15 <= table.loc[("quic", "long header"), "least"] <= table.loc[("quic", "long header"), "most"] <= 120
    assert table.loc[("quic", "padding of the first packet"), "ours"] > 100


def test_the_university_s_times_stand_beside_ours_at_the_same_added_delay() -> None:
    quantities = {f"{name}_ms": 100.0 for name in ("handshake", "first_byte", "content", "closing")}
    sizes = dict.fromkeys(("handshake_bytes", "bytes", PAYLOAD, "first_packet_padding", "packets"), 1)
    setting = {"site": "s", "protocol": "quic", "first": True, **quantities, **sizes}
    delays = {"dsl": 24, "dsl+10ms": 34, "dsl+30ms": 54}
    rows = [{**setting, "network": name, "rtt_ms": rtt_ms, "handshake_ms": rtt_ms} for name, rtt_ms in delays.items()]
    connections = university.with_added_delay(pd.DataFrame(rows))
    headers = pd.DataFrame(columns=["site", "protocol", "header", "mean_bytes", "least_bytes", "most_bytes"])
    beside = university.beside(connections, headers, {"quic": "quic"})
    handshakes = beside[(beside["quantity"] == "handshake") & (beside["unit"] == "ms")]
    assert handshakes[["network", "added_ms", "theirs", "theirs_sd", "ours"]].to_numpy().tolist() == [
        ["dsl", 0, 20.6, 9.1, 24], ["dsl", 10, 33.6, 11.4, 34],
    ]  # fmt: skip


@pytest.mark.needs_reference
def test_the_university_study_is_transcribed_without_a_slip() -> None:
    names = {"handshake": "handshake", "time to first byte": "first byte", "content transfer": "content"}
    names["close socket"] = "closing"
    published = pd.read_csv(PUBLISHED / "university.csv", dtype=str)
    published = published[published["source_location"].str.startswith("Evaluation, duration table")]
    ours = pd.read_csv(university.THEIRS, comment="#")
    times = ours[ours["unit"] == "ms"].set_index(["quantity", "transport", "added_ms"])
    for row in published.to_dict("records"):
        key = names[row["quantity"]], {"QUIC": "quic"}.get(row["protocol"], "tcp"), float(row["extra_delay_ms"])
        assert times.loc[key, "theirs" if row["statistic"] == "mean" else "theirs_sd"] == float(row["value"])
    assert len(published) == 2 * len(times) == 64


@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_browser_s_log_has_the_bytes_that_were_captured(
    protocol: str, captured: Campaign, runs: Mapping[str, CapturedRun]
) -> None:
    transfer = BROWSER.read_transfer(captured.folder / row_of(captured, protocol).folder, 0, math.inf)
    rows = {row["direction"]: row for row in runs[protocol].captures if row["end"] == "client"}
    assert transfer and transfer.content_bytes == rows["down"][PAYLOAD]
    if protocol == "quic":
        # The browser closes the connections last, which its log may or may not contain.
        assert 0 <= rows["up"]["bytes"] - transfer.sent_bytes < 100 * len(runs[protocol].connections)
        assert transfer.received_bytes == rows["down"]["bytes"]
    else:
        assert transfer.sent_bytes is None
        # Nothing is lost; the difference is segments without data.
        assert 0 <= rows["down"]["bytes"] - transfer.received_bytes < 0.1 * rows["down"]["bytes"]


def test_durations_are_drawn_over_the_added_delay() -> None:
    rows = [
        {
            "protocol": protocol,
            "added_ms": added_ms,
            "handshake_ms": rtts * (24 + added_ms) + run,
            "closing_ms": math.nan,
        }
        for protocol, rtts in (("tcp+", 2), ("quic", 1))
        for added_ms in (0, 20, 50)
        for run in range(3)
    ]
    times = {"handshake_ms": "handshake", "closing_ms": "closing"}
    figure = durations_figure.draw(pd.DataFrame(rows), times, PROTOCOLS, 0.95)
    means = [np.asarray(lines[0].get_ydata()).tolist() for lines in figure.axes[0].containers]
    assert means == [[49, 89, 149], [25, 45, 75]]
    assert smallest_type(figure) >= SMALL


def test_bytes_of_a_stream_are_told_once_and_then_as_sent_again() -> None:
    stream = Stream()
    stream.append(5, FRAMING)
    stream.append(10, PAYLOAD, "DATA")
    assert stream.take(0, 8) == [Piece(FRAMING, 5), Piece(PAYLOAD, 3, "DATA")]
    assert stream.take(6, 12) == [Piece(AGAIN, 2, "DATA"), Piece(PAYLOAD, 4, "DATA")]
    assert stream.take(12, 18) == [Piece(PAYLOAD, 3, "DATA"), Piece(UNREAD, 3)]
    assert {piece.kind for piece in stream.take(0, 18)} == {AGAIN}


def test_frames_of_http_are_told_apart() -> None:
    http2 = Stream()
    append_http2(http2, 100, 0, 11)
    append_http2(http2, 0, 4, 0)
    assert http2.take(0, 118) == [
        Piece(FRAMING, 9, "DATA"),
        Piece(PAYLOAD, 89, "DATA"),
        Piece(PADDING, 11),
        Piece(FRAMING, 9, "SETTINGS"),
    ]
    # A response of HEADERS and DATA whose length takes two bytes, arriving in parts and out of order.
    response = bytes([1, 3, *b"abc", 0, 0x40, 100]) + bytes(100)
    assembly = Assembly(partial(append_http3, stream_id=0))
    for start, end in ((6, 108), (0, 7)):
        assembly.add(start, response[start:end])
    assert assembly.stream.take(0, 108) == [
        Piece(FRAMING, 2, "HEADERS"),
        Piece(HTTP_HEADERS, 3, "HEADERS"),
        Piece(FRAMING, 3, "DATA"),
        Piece(PAYLOAD, 100, "DATA"),
    ]
    control = Stream()
    append_http3(control, bytes([0, 4, 2, 1, 1]), 2)
    assert control.take(0, 5) == [Piece(FRAMING, 1), Piece(FRAMING, 2, "SETTINGS"), Piece(CONTROL, 2, "SETTINGS")]


def step(name: str, sent_ms: float, received_ms: float, *, from_server: bool = False, size: int = 60) -> Step:
    return Step(from_server, (name,), (size, size), sent_ms, received_ms)


def exchanged(late_ms: float, *, lost: bool = False, more: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    received_ms = math.nan if lost else 10 + late_ms
    return (
        step("SYN", 0, received_ms),
        step("SYN, ACK", 11 + late_ms, 21 + late_ms, from_server=True, size=60 + int(late_ms)),
        *more,
    )


def test_times_are_means_of_the_runs_that_had_the_same_packets() -> None:
    more = (step("ACK", 30, 40),)
    runs = [exchanged(0), exchanged(4), exchanged(500, more=more), exchanged(900, lost=True)]
    mean = average(runs)
    assert mean
    assert (mean.runs, mean.all_runs, mean.others) == (2, 4, 2)
    assert [(s.sent_ms, s.received_ms, s.bytes) for s in mean.steps] == [(0, 12, (60, 60)), (13, 23, (60, 64))]


def test_packets_that_cross_may_leave_in_either_order() -> None:
    up, down = step("ACK", 20, 30), step("SETTINGS", 21, 31, from_server=True)
    sooner = replace(down, sent_ms=19, received_ms=29)
    mean = average([(up, down), (sooner, up)])
    assert mean
    assert (mean.runs, mean.others) == (2, 0)
    # The order matters within one direction.
    other = step("FIN", 22, 32)
    mean = average([(up, other), (other, up)])
    assert mean
    assert (mean.runs, mean.others) == (1, 1)


def test_the_diagram_shows_every_packet_with_its_times_and_loss() -> None:
    exchange = average([exchanged(0, more=(step("ACK <1>", 22, math.nan),))])
    assert exchange
    drawn = draw("two", {"tcp+": exchange, "quic": exchange}, rtt_ms=20)
    texts = [
        "".join(text.itertext()) for text in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
    ]
    for label in ("TCP+", "QUIC", "SYN 60 B", "SYN, ACK 60 B", "ACK <1> 60 B", "10.0", "21.0"):
        assert label in texts
    assert texts.count("mean of 1 of 1 runs") == 2
    assert texts.count("1 RTT") == 1
    assert drawn.count("l8 8m0 -8l-8 8") == 2


def test_a_stream_frame_in_which_tshark_gives_up_has_the_length_of_its_fields() -> None:
    fields = "".join(
        f'<field name="quic.{name}" size="{size}"/>'
        for name, size in (("frame_type", 1), ("stream.stream_id", 1), ("stream.offset", 2), ("stream_data", 1228))
    )
    for size in (1, 1232):
        frame = ElementTree.fromstring(f'<field name="quic.frame" size="{size}">{fields}</field>')
        assert frame_bytes(frame) == 1232
