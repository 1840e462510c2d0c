"""quinn_server: the matching rule, its command line, its logs, and hostile clients."""

import asyncio
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from aioquic.buffer import encode_uint_var
from support.hostile_http3 import EXCESSIVE_LOAD, HEADERS_FRAME, connected
from support.http3_order import arrivals_of
from support.own_servers import (
    MATCHING_CASES,
    Certificate,
    endpoints_file,
    exchange,
    make_certificate,
    ok,
    require_rule,
    stored,
)

from base.errors import EyelevelError
from base.places import tool
from base.qlog import CLOSED, METRICS, STATE, read_qlog
from servers.registry import all_servers, require_served
from tuning import protocols
from tuning.protocols import Protocol

BODY_BYTES = 500_000
ADDRESSES = 40
ANSWER_TIMEOUT_S = 60.0
# The memory that a hostile client may occupy: the header fields of 100 simultaneous requests, and the allocator's
# overhead.
MOST_GROWTH_BYTES = 40 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def arguments(tmp_path: Path, certificate: Certificate) -> list[str | Path]:
    """A command line that serves a small page and a long one on a free port."""
    page = exchange("GET", "https://a.example/", ok(b"hello"))
    folder = stored(tmp_path, page, exchange("GET", "https://a.example/long", ok(bytes(BODY_BYTES))))
    endpoints = endpoints_file(tmp_path, ["127.0.0.1", "0", certificate.chain, certificate.key])
    return ["--responses", folder, "--endpoints", endpoints]


@contextmanager
def started(*arguments: str | Path) -> Iterator["subprocess.Popen[str]"]:
    command = [tool("quinn_server"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server
        finally:
            server.terminate()


def port_of(server: "subprocess.Popen[str]") -> int:
    """The port of the next address on which the server says that it listens."""
    assert server.stdout is not None
    listening = re.fullmatch(r"listening on [0-9.]+:(\d+)\n", server.stdout.readline())
    assert listening
    return int(listening[1])


def refusal(*arguments: str | Path) -> str:
    """The one line of a server that does not start."""
    ended = subprocess.run(
        [tool("quinn_server"), *arguments], capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(r"quinn_server: .+\n", ended.stderr), ended.stderr
    return ended.stderr


@pytest.mark.needs_quinn
@pytest.mark.parametrize("case", MATCHING_CASES, ids=[case["name"] for case in MATCHING_CASES])
def test_quinn_server_follows_the_matching_rule(case: dict[str, Any], tmp_path: Path) -> None:
    require_rule("quinn_server", case, tmp_path)


@pytest.mark.needs_quinn
def test_what_it_cannot_serve_is_one_line(
    arguments: list[str | Path], certificate: Certificate, tmp_path: Path
) -> None:
    other, broken = make_certificate_in(tmp_path / "other"), tmp_path / "broken.pem"
    broken.write_text("nothing")
    sound: list[str | Path] = ["127.0.0.1", "0", certificate.chain, certificate.key]
    for field, path, reason in [
        (2, tmp_path / "none.pem", "cannot read the certificate"),
        (2, broken, "no usable PEM certificate"),
        (3, broken, "no usable PEM private key"),
        (3, other.key, "cannot be used"),
    ]:
        endpoints_file(tmp_path, sound, [*sound[:field], path, *sound[field + 1 :]])
        assert reason in (line := refusal(*arguments)) and str(path) in line
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other_socket:
        other_socket.bind(("127.0.0.1", 0))
        port = other_socket.getsockname()[1]
        endpoints_file(tmp_path, [sound[0], str(port), *sound[2:]])
        assert refusal(*arguments).startswith(
            f"quinn_server: cannot listen on 127.0.0.1:{port}: Address already in use"
        )
    endpoints_file(tmp_path, sound)
    assert "cannot write qlogs to /nowhere" in refusal(*arguments, "--qlog", "/nowhere")
    assert "cannot write the request log /nowhere/log" in refusal(*arguments, "--request-log", "/nowhere/log")


def make_certificate_in(folder: Path) -> Certificate:
    folder.mkdir()
    return make_certificate(folder)


@pytest.mark.needs_quinn
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_its_log_is_whole(
    number: signal.Signals, arguments: list[str | Path], tmp_path: Path
) -> None:
    log, qlogs = tmp_path / "requests.log", tmp_path / "qlog"
    qlogs.mkdir()
    options: list[str | Path] = ["--request-log", log, "--qlog", qlogs, "--initial-window", "14600"]
    with started(*arguments, *options) as server:
        # The client leaves the connection open.
        arrivals = arrivals_of(port_of(server), "a.example", [("/", "u=3"), ("/long", "u=3")])
        assert sum(length for _, length in arrivals) == BODY_BYTES + len(b"hello")
        server.send_signal(number)
        assert server.wait(timeout=ANSWER_TIMEOUT_S) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""
    assert sorted(line.split("\t")[2] for line in log.read_text().splitlines()) == [
        "https://a.example/",
        "https://a.example/long",
    ]
    (path,) = qlogs.glob("quic-127.0.0.1-*.sqlog")
    qlog = read_qlog(path)
    parameters = {"congestion_control": "cubic", "initial_congestion_window": 14_600, "max_datagram_size": 1250}
    assert parameters.items() <= qlog.parameters.items()
    assert qlog.named(CLOSED)
    values = {name: value for event in qlog.named(METRICS) for name, value in event.data.items()}
    # When the server ends, the acknowledgements of the last packets may not have arrived.
    assert 0.9 * BODY_BYTES < values["bytes_delivered"] < 1.1 * BODY_BYTES
    assert max(event.data.get("congestion_window", 0) for event in qlog.named(METRICS)) > 14_600
    assert qlog.named(STATE)[0].data["new"] == "slow_start"


@pytest.mark.needs_quinn
@pytest.mark.parametrize("control", ["cubic", "reno"])
def test_the_log_says_which_controller_the_connection_has(
    control: str, arguments: list[str | Path], tmp_path: Path
) -> None:
    with started(*arguments, "--qlog", tmp_path, "--congestion-control", control) as server:
        arrivals_of(port_of(server), "a.example", [("/long", "u=3")])
        server.terminate()
        server.wait(timeout=ANSWER_TIMEOUT_S)
    (path,) = tmp_path.glob("*.sqlog")
    states = {event.data["new"] for event in read_qlog(path).named(STATE)}
    assert read_qlog(path).parameters["congestion_control"] == control
    assert "unknown" not in states


@pytest.mark.needs_quinn
def test_one_process_serves_many_addresses_and_leaves_none_when_it_is_killed(
    arguments: list[str | Path], certificate: Certificate, tmp_path: Path
) -> None:
    addresses = [f"127.0.0.{number}" for number in range(1, ADDRESSES + 1)]
    endpoints: list[list[str | Path]] = [[address, "0", certificate.chain, certificate.key] for address in addresses]
    endpoints_file(tmp_path, *endpoints)
    with started(*arguments) as server:
        ports = [port_of(server) for _ in addresses]
        assert psutil.Process(server.pid).children() == []
        arrivals = arrivals_of(ports[-1], "a.example", [("/", "u=3")], address=addresses[-1])
        assert sum(length for _, length in arrivals) == len(b"hello")
        server.kill()
        server.wait()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((addresses[-1], ports[-1]))


@pytest.mark.needs_quinn
def test_responses_take_turns_whatever_their_priorities(arguments: list[str | Path]) -> None:
    with started(*arguments) as server:
        requests = [(f"/long?{number}", f"u={number}") for number in range(3)]
        arrivals = arrivals_of(port_of(server), "a.example", requests)
    first_end = min(max(n for n, (name, _) in enumerate(arrivals) if name == path) for path, _ in requests)
    begins = [min(n for n, (name, _) in enumerate(arrivals) if name == path) for path, _ in requests]
    assert max(begins) < first_end


# Refusals.


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"transport": "tcp"}, "quinn serves over quic, not over tcp"),
        ({"congestion_control": "bbr"}, "congestion_control must be one of cubic, reno for quinn, not 'bbr'"),
        ({"scheduler": "urgency"}, "scheduler is not for quinn"),
        ({"emulated_connections": 2}, "emulated_connections must be one of 1 for quinn, not 2"),
        (
            {"emulated_connections": 1, "congestion_control": "reno"},
            "emulated_connections is for congestion_control cubic: reno has no such number",
        ),
        ({"pacing": False}, "pacing of quic is true: quinn always paces"),
        ({"initial_window_packets": 1}, "the initial window of quinn is at least 2 packets"),
        ({"connection_options": ("1RTT",)}, "connection_options have 1RTT, which quinn ignores"),
    ],
)
def test_what_quinn_cannot_do_is_refused(changes: dict[str, Any], reason: str) -> None:
    settings: dict[str, Any] = {"transport": "quic", "congestion_control": "cubic", "initial_window_packets": 32}
    protocol = Protocol("mine", **(settings | {"pacing": True, "server": "quinn"} | changes))
    with pytest.raises(EyelevelError, match=f"mine: {re.escape(reason)}"):
        require_served([protocol])


def test_the_settings_that_come_with_the_project_are_served() -> None:
    for name in ("quinn-h3", "quinn-reno"):
        (protocol,) = require_served([protocols.load()[name]])
        assert protocol.connection_options == ()
        assert all_servers()["quinn"].cubic_connections(protocol) == 1


# Hostile clients.


def resident_bytes(server: "subprocess.Popen[str]") -> int:
    return int(psutil.Process(server.pid).memory_info().rss)


async def oversized_fields(port: int) -> None:
    async with connected(port) as client:
        # The frame is short enough, but its decompressed fields are too long, which the server reports (RFC 6585,
        # section 5).
        fields = [(b"x%d" % number, b"0" * 40_000) for number in range(4)]
        assert await client.end(client.request("/", *fields)) == 431


async def oversized_frame(port: int) -> None:
    """On each of ten streams, announce header fields of 1 GB, and send 5 MB of them."""
    async with connected(port) as client:
        head = encode_uint_var(HEADERS_FRAME) + encode_uint_var(1 << 30)
        for _ in range(10):
            assert await client.end(client.raw(head + bytes(5_000_000))) == EXCESSIVE_LOAD


async def endless_uploads(port: int) -> None:
    async with connected(port) as client:
        streams = [client.request("/", end=False) for _ in range(5)]
        for stream in streams:
            client.http.send_data(stream, bytes(10_000_000), end_stream=False)
        client.transmit()
        # The last request has a body of 10 MB, too, but is complete: it is answered although the earlier ones are not.
        last = client.request("/", end=False)
        client.http.send_data(last, bytes(10_000_000), end_stream=True)
        assert await client.end(last) == 200
        assert not any(client.ends[stream].done() for stream in streams)


async def many_streams(port: int) -> None:
    async with connected(port) as client:
        for _ in range(100):
            streams = [client.request("/") for _ in range(100)]
            for stream in streams:
                assert await client.end(stream) == 200


@pytest.mark.slow
@pytest.mark.needs_quinn
@pytest.mark.parametrize("attack", [oversized_fields, oversized_frame, endless_uploads, many_streams])
def test_a_hostile_client_neither_ends_it_nor_fills_its_memory(attack: Any, arguments: list[str | Path]) -> None:
    with started(*arguments) as server:
        port = port_of(server)
        arrivals_of(port, "a.example", [("/long", "u=3")])
        before = resident_bytes(server)
        asyncio.run(attack(port))
        assert resident_bytes(server) - before < MOST_GROWTH_BYTES
        assert arrivals_of(port, "a.example", [("/", "u=3")]) == [("/", len(b"hello"))]
        assert server.poll() is None
