"""A probe of a path: conclusions from arrivals in a direction, answers to strangers, and the profile of an emulated
network."""

import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from base.errors import EyelevelError
from eyelevel.commands.probe_network import main
from measure.probe.conversation import (
    FAULT_LETTERS,
    GREETING_BYTES,
    Message,
    answer,
    make_secret,
    read_secret,
    understood,
)
from measure.probe.datagrams import TOKEN_BYTES, End, Numbers, Times
from measure.probe.flows import LARGE_BYTES, Flow
from measure.probe.path import LEAST_GROUP, Effort, conversation_with, flood, measure_path
from measure.probe.serving import GREETING_S, MOST_STRANGERS, Arrived, Command, Sent, Server

# The rate and the queue of the link in the simulated arrivals below.
MBPS, QUEUE_PACKETS = 8.0, 20
PACKET_NS = LARGE_BYTES * 8e3 / MBPS


def arrivals(
    packets: int, offered_mbps: float, *, loss: float = 0.0, managed: bool = False, later_mbps: float = MBPS
) -> Times:
    """Simulated arrivals of packets that have passed a queue and a link.

    The queue drops packets when it is full; if it is `managed`, it drops more packets the more are waiting. The link
    loses some packets at random, and its rate changes to `later_mbps` in the middle.
    """
    draws = random.Random(1)
    sent_ns, free_ns = 0.0, 0.0
    arrived = {}
    for number in range(packets):
        sent_ns += LARGE_BYTES * 8e3 / offered_mbps
        packet_ns = PACKET_NS if number < packets / 2 else LARGE_BYTES * 8e3 / later_mbps
        waiting = max(0.0, free_ns - sent_ns) / packet_ns
        if waiting > QUEUE_PACKETS - 1 or (managed and draws.random() < waiting / QUEUE_PACKETS):
            continue
        free_ns = max(free_ns, sent_ns) + packet_ns
        if draws.random() < loss:
            continue
        arrived[number] = (int(sent_ns), int(free_ns + 10e6))
    return arrived


def test_a_full_link_shows_its_rate_and_its_queue() -> None:
    seen = flood(LARGE_BYTES, 12.0, Numbers(0, 2000), arrivals(2000, 12.0), 0.0)
    assert seen.mbps == pytest.approx(MBPS, rel=0.001)
    assert (seen.low_mbps, seen.high_mbps) == pytest.approx((MBPS, MBPS), rel=0.001)
    assert seen.wait_ms == pytest.approx(QUEUE_PACKETS * PACKET_NS / 1e6, rel=0.05)
    assert seen.low_wait_ms <= seen.wait_ms <= seen.high_wait_ms
    assert seen.high_wait_ms - seen.low_wait_ms < 2 * PACKET_NS / 1e6
    assert seen.fills and not seen.is_managed


def test_a_queue_that_drops_before_it_is_full_is_managed() -> None:
    assert flood(LARGE_BYTES, 12.0, Numbers(0, 3000), arrivals(3000, 12.0, managed=True), 0.0).is_managed
    # Losses that also occur without load are not caused by a queue.
    assert not flood(LARGE_BYTES, 12.0, Numbers(0, 3000), arrivals(3000, 12.0, loss=0.02), 0.02).is_managed


def test_a_queue_that_is_longer_than_the_flow_does_not_fill() -> None:
    assert not flood(LARGE_BYTES, 12.0, Numbers(0, 45), arrivals(45, 12.0), 0.0).fills


def test_the_fewest_packets_that_are_enough_have_a_range() -> None:
    few = 2 * LEAST_GROUP + 1
    seen = flood(LARGE_BYTES, 9.0, Numbers(0, few), arrivals(few, 9.0), 0.0)
    assert seen.low_mbps <= seen.mbps <= seen.high_mbps


def test_a_rate_that_changes_is_seen_to() -> None:
    seen = flood(LARGE_BYTES, 12.0, Numbers(0, 2000), arrivals(2000, 12.0, later_mbps=4.0), 0.0)
    assert (seen.low_mbps, seen.high_mbps) == pytest.approx((4.0, 8.0), rel=0.02)


@pytest.mark.parametrize(
    ("flow", "first", "most_bytes"),
    [
        (Flow(10, 5000, 1), 0, 10**6),
        (Flow(10, 20, 1), 0, 10**6),
        (Flow(10, 1000, 0), 0, 10**6),
        (Flow(10, 1000, float("nan")), 0, 10**6),
        (Flow(10, 1000, 1e6), 0, 10**6),
        (Flow(10, 1000, 1), -1, 10**6),
        (Flow(0, 1000, 1), 0, 10**6),
        (Flow(1001, 1000, 1), 0, 10**6),
        (Flow(1000, 1000, 0.01), 0, 10**6),
        (Flow(10, 1000, 1, managed=True), 0, 10**6),
    ],
)
def test_only_flows_of_a_probe_are_sent(flow: Flow, first: int, most_bytes: int) -> None:
    end = End(socket.AF_INET, ("127.0.0.1", 0), echo=False)
    with pytest.raises(EyelevelError, match=r"not a flow of a probe|more than was agreed on"):
        end.check(flow, Numbers(first, flow.packets), most_bytes, LARGE_BYTES)
    end.check(Flow(10, 1000, 1), Numbers(0, 10), most_bytes, LARGE_BYTES)


def test_nothing_reads_an_end_that_is_closed() -> None:
    before = {*threading.enumerate()}
    for _ in range(100):
        End(socket.AF_INET, ("127.0.0.1", 0), echo=False).close()
    # Threads of earlier tests may end in the meantime.
    assert {*threading.enumerate()} <= before


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    make_secret(tmp_path / "secret")
    return tmp_path / "secret"


def serve(secret: Path, greeting_s: float = GREETING_S) -> int:
    """Start serving at a loopback address, and allow 1 MB to be sent; returns the port."""
    for attempt in range(10):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            number: int = free.getsockname()[1]
        try:
            server = Server("127.0.0.1", number, secret, 10**6, lambda line: None, greeting_s)
        except EyelevelError:  # another process has taken the port in the meantime
            if attempt == 9:
                raise
        else:
            break
    threading.Thread(target=server.serve, daemon=True).start()
    return number


@pytest.fixture
def port(secret: Path) -> int:
    """The port of a server."""
    return serve(secret)


def test_a_stranger_hears_nothing(port: int, secret: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(0.2)
        stranger.sendto(b"e" + bytes(30), ("127.0.0.1", port))
        with conversation_with("127.0.0.1", port, read_secret(secret)) as (conversation, _, _):
            conversation.hear()
            # The same while a probe from the stranger's own address is running.
            stranger.sendto(b"e" + bytes(30), ("127.0.0.1", port))
            with pytest.raises(TimeoutError):
                stranger.recv(100)
    make_secret(tmp_path / "other")
    with pytest.raises(EyelevelError, match="different secrets"):
        measure_path("127.0.0.1", port, read_secret(tmp_path / "other"), Effort.quick(10**6), lambda line: None)


@pytest.mark.parametrize(
    ("flow", "echoes", "fault"),
    [(Flow(10, 1000, 1), False, "none of your datagrams"), (Flow(2000, 1000, 100), True, "more than was")],
    ids=["another's address", "too much"],
)
def test_who_has_the_secret_gets_no_more_than_its_owner_allows(
    flow: Flow, echoes: bool, fault: str, port: int, secret: Path
) -> None:
    with conversation_with("127.0.0.1", port, read_secret(secret)) as (conversation, end, connection):
        agreed = conversation.hear()
        assert agreed["most_bytes"] == 10**6
        end.begin(bytes.fromhex(agreed["token"]), "127.0.0.1")
        if echoes:
            end.send_echo(0, connection.getpeername())
            assert end.arrived(Numbers(0, 1), 5)
        with pytest.raises(EyelevelError, match=f"the other end says: .*{fault}"):
            conversation.ask({**vars(Command(flow, 0, True)), "flow": vars(flow)})


def test_one_probe_is_served_at_a_time(port: int, secret: Path) -> None:
    with conversation_with("127.0.0.1", port, read_secret(secret)) as (first, _, _):
        first.hear()
        with (
            conversation_with("127.0.0.1", port, read_secret(secret)) as (second, _, _),
            pytest.raises(EyelevelError, match="it serves another probe"),
        ):
            second.hear()


def test_a_path_that_is_faster_than_what_is_allowed_is_not_measured(port: int, secret: Path) -> None:
    with pytest.raises(EyelevelError, match=r"MB, and 1 are allowed|more than the 1 MB that are allowed"):
        measure_path("127.0.0.1", port, read_secret(secret), Effort.quick(10**8), lambda line: None)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"token": "00" * TOKEN_BYTES}, "the key 'most_bytes' is missing"),
        ({"token": "00" * TOKEN_BYTES, "most_bytes": 10**400}, "no agreement of a probe"),
        ({"token": "", "most_bytes": 1}, "no agreement of a probe"),
        ({"token": "x" * 10**6, "most_bytes": 1}, "non-hexadecimal"),
        ({"token": ["x" * 10**6], "most_bytes": 1}, "must be text"),
    ],
)
def test_a_far_end_that_agrees_to_nonsense_is_refused_in_a_line(said: Message, fault: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def agree() -> None:
            with answer(listener.accept()[0], bytes(32)) as conversation:
                conversation.say(said)

        thread = threading.Thread(target=agree)
        thread.start()
        with pytest.raises(EyelevelError, match=f"^what the other end says: .*{fault}") as refused:
            measure_path("127.0.0.1", listener.getsockname()[1], bytes(32), Effort.quick(10**6), lambda line: None)
        thread.join()
    assert len(str(refused.value)) <= FAULT_LETTERS


@pytest.mark.parametrize("arrived", [[[9, 1, 1]], [[20, 1, 1]], [[10, -1, 1]], [[10, 1, 10**400]]])
def test_what_was_not_sent_did_not_arrive(arrived: list[list[int]]) -> None:
    numbers = Numbers(10, 10)
    assert understood({"arrived": [[10, 1, 2], [19, 3, 4]]}, Arrived).of(numbers) == {10: (1, 2), 19: (3, 4)}
    with pytest.raises(EyelevelError, match="something arrived which was not sent"):
        understood({"arrived": arrived}, Arrived).of(numbers)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"arrived": [[1, 2]]}, Arrived),
        ({"arrived": [[1, 2, 3.5]]}, Arrived),
        ({"arrived": {"1": [2, 3]}}, Arrived),
        ({"mbps": 0}, Sent),
        ({"mbps": float("nan")}, Sent),
        ({"mbps": 10**400}, Sent),
    ],
)
def test_an_answer_that_is_none_is_refused(said: Message, kind: type) -> None:
    with pytest.raises(EyelevelError, match=r"^what the other end says: "):
        understood(said, kind)


def test_strangers_who_say_nothing_keep_nobody_away(secret: Path) -> None:
    port = serve(secret, greeting_s=0.2)
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_STRANGERS + 1)]
    try:
        assert all(map(is_hung_up, strangers))
    finally:
        for connection in strangers:
            connection.close()
    # The last connection may still be counted after it has been closed.
    assert any(answers(port, secret) for _ in range(1000))


def is_hung_up(connection: socket.socket) -> bool:
    """Whether the server hangs up on a client that sends single letters slowly, before the greeting is too long."""
    connection.settimeout(0.05)
    for _ in range(GREETING_BYTES - 1):
        try:
            connection.sendall(b"[")
            return connection.recv(1) == b""
        except TimeoutError:
            pass
        except ConnectionError:
            return True
    return False


def answers(port: int, secret: Path) -> bool:
    """Whether the server answers a client."""
    try:
        with conversation_with("127.0.0.1", port, read_secret(secret)) as (conversation, _, _):
            return "token" in conversation.hear()
    except EyelevelError:
        return False


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "give --to HOST to measure, or --serve ADDRESS"),
        (["--to", "a", "--serve", "b"], "give --to HOST to measure, or --serve ADDRESS"),
        (["--to", "127.0.0.1", "--name", "lte"], "there is already a network 'lte'"),
        (["--to", "127.0.0.1", "--name", "a b"], "'a b' is not a name of a profile"),
        (["--to", "127.0.0.1", "--into", "x.toml"], "must be called networks.toml"),
        (["--to", "127.0.0.1", "--port", "9"], "no answer from 127.0.0.1, port 9 (Connection refused)"),
        (["--quick", "--to", "127.0.0.1", "--port", "9"], "no answer from 127.0.0.1"),
        (["--serve", "192.0.2.1"], "192.0.2.1, port 8617, is not available"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: list[str], fault: str, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [*arguments, "--secret", str(secret)])
    assert isinstance(done.exception, EyelevelError) and fault in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "profiles").exists()


def test_an_example_is_in_the_help() -> None:
    done = subprocess.run([sys.executable, "-m", "eyelevel", "probe-network", "--help"], capture_output=True, text=True)
    assert "eyelevel probe-network --serve 192.0.2.7" in " ".join(done.stdout.split())
