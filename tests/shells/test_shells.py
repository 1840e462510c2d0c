"""The shells, for real: namespaces, pings, bulk transfers, loss, and leftovers after they end."""

import csv
import itertools
import math
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clients import shells_peer
from support.shells import (
    PATIENCE_S,
    SERVER,
    SERVER_V6,
    Marked,
    all_processes,
    devices,
    namespaces_kept,
    network_namespace,
    network_namespaces,
    run,
    stack,
)

from base.places import tool

pytestmark = [pytest.mark.needs_capabilities, pytest.mark.needs_namespaces, pytest.mark.needs_shells]

LTE = (
    "mm-delay 37 mm-link 2.8M 10.5M "
    "--uplink-queue=droptail --uplink-queue-args=bytes=70000 "
    "--downlink-queue=droptail --downlink-queue-args=bytes=262500 -- "
    "mm-loss uplink 0 -- mm-loss downlink 0 --"
)

LTE_IN_ONE_HOP = "mm-net --delay 37 --up 2.8M --down 10.5M --queue 200ms --"

# TCP carries 1448 bytes of a 1500-byte packet: 20 are the IP header, 20 TCP's, 12 its timestamps. IPv6's header has 40.
GOODPUT = 1448 / 1500
GOODPUT_V6 = 1428 / 1500


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """Run each test in a separate network namespace."""
    with network_namespace():
        yield


def give_ipv6() -> None:
    """Give the server an IPv6 address, too; without one, shells do not use IPv6."""
    subprocess.run(["ip", "address", "add", f"{SERVER_V6[0]}/128", "dev", "lo", "nodad"], check=True)
    # The kernel adds the address's local route some time later, from a work queue.
    local = ["ip", "-6", "route", "show", "table", "local"]
    while SERVER_V6[0] not in subprocess.run(local, stdout=subprocess.PIPE, text=True, check=True).stdout:
        time.sleep(0.01)


def pings(count: int, *options: str) -> list[str]:
    """A command that pings the server this often, each time after the answer, however late that is. (A program that
    sends several pings does not wait for the last answer if that takes more than twice as long as the others.)"""
    return ["sh", "-c", f"for _ in $(seq {count}); do ping -n -c 1 {' '.join(options)} {SERVER[0]} || exit; done"]


def ping_ms(shells: str, count: int = 10, server: tuple[str, int] = SERVER) -> list[float]:
    """Round-trip times of pings from inside the shells to the server's address."""
    result = run(shells, ["ping", "-n", "-i", "0.05", "-c", str(count), server[0]])
    times = [float(time_ms) for time_ms in re.findall(r"time=([\d.]+) ms", result.stdout)]
    assert len(times) == count, result.stdout + result.stderr
    return times


# A 56-byte ping is an 84-byte packet: 0.24 ms at 2.8 Mbit/s, 0.06 ms at 10.5 Mbit/s.
LTE_PING_MS = 74 + 84 * 8 / 2800 + 84 * 8 / 10500


@pytest.mark.timing
def test_ping_takes_the_configured_time() -> None:
    """The shells are tested over IPv4 and IPv6, in parallel, since pings mostly wait."""
    give_ipv6()
    over_ipv4 = [
        ("mm-delay 20", 40),
        ("mm-delay 0.5", 1),
        ("mm-loss uplink 0", 0),
        ("mm-link 672k 672k", 2),
        ("mm-delay 5 mm-delay 10", 30),
        (LTE, LTE_PING_MS),
        (LTE_IN_ONE_HOP, LTE_PING_MS),
        ("mm-delay 5 --delay-down 15.5", 20.5),
        ("mm-net --delay 10 --delay-down 20 --up 1M --down 1M", 30 + 84 * 8 / 500),
        (
            "mm-loss downlink 0 mm-link 10.5M 10.5M -- mm-delay 15 mm-link 1M 1M -- mm-loss uplink 0 mm-delay 5",
            40 + 84 * 8 / 500 + 84 * 8 / 5250,
        ),
    ]
    # A 56-byte ping is a 104-byte packet over IPv6.
    over_ipv6 = [
        ("mm-delay 20", 40),
        ("mm-link 832k 832k", 2),
        (
            "mm-loss downlink 0 mm-link 10.5M 10.5M -- mm-delay 15 mm-link 1M 1M -- mm-loss uplink 0 mm-delay 5",
            40 + 104 * 8 / 500 + 104 * 8 / 5250,
        ),
        ("mm-net --delay 10 --up 1M --down 1M mm-delay 5", 30 + 104 * 8 / 500),
        ("mm-delay 5 mm-net --delay 10 --up 1M --down 1M", 30 + 104 * 8 / 500),
    ]
    cases = [*((SERVER, *case) for case in over_ipv4), *((SERVER_V6, *case) for case in over_ipv6)]
    with ThreadPoolExecutor(len(cases)) as pool:
        times_ms = pool.map(lambda case: min(ping_ms(case[1], server=case[0])), cases)
    for (server, shells, rtt_ms), shown_ms in zip(cases, times_ms, strict=True):
        # ping shows only three digits, so it may show a time that is too short by one unit of the last digit.
        # Otherwise no packet may be early. Packets may be late, since the machine must wake processes.
        shown_to_ms = 10 ** (math.floor(math.log10(shown_ms)) - 2)
        most_ms = rtt_ms + 1 + 0.3 * shells.count("mm-")
        assert rtt_ms - shown_to_ms <= shown_ms <= most_ms, (shells, server)


def test_nothing_passes_but_what_is_sent(tmp_path: Path) -> None:
    give_ipv6()
    # Within this time, the kernel would have searched for routers and group members.
    result = run(f"mm-net --up 1M --down 1M --pcap={tmp_path}/packets mm-delay 0 mm-loss uplink 0", ["sleep", "2.5"])
    assert result.returncode == 0
    head_and_interfaces = 3
    assert len(pcapng_blocks(tmp_path / "packets")) == head_and_interfaces


SHOW_IPV6 = ["sh", "-c", "ip -6 -o address show dev ingress; ip -6 route show default"]


def test_shells_have_no_ipv6_where_there_is_none_outside() -> None:
    assert run("mm-delay 0 mm-loss uplink 0", SHOW_IPV6).stdout == ""


def test_shells_run_where_ipv6_is_switched_off() -> None:
    give_ipv6()
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    assert run("mm-delay 0 mm-loss uplink 0", SHOW_IPV6).stdout == ""
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    assert run("mm-delay 0 mm-loss uplink 0", SHOW_IPV6).stdout == ""
    assert ping_ms("mm-delay 0 mm-loss uplink 0", count=1)


@pytest.mark.parametrize("ipv6", [False, True])
def test_one_route_leads_to_a_shell_and_all_nested_in_it(ipv6: bool) -> None:
    if ipv6:
        give_ipv6()
    shell = subprocess.Popen(
        [*stack("mm-delay 1 mm-delay 1"), "sh", "-c", "ip -4 route show default; read _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert shell.stdout is not None
    assert shell.stdout.readline() == "default via 100.64.32.1 dev ingress proto 109 onlink \n"
    try:
        routes = run("", ["ip", "-4", "route", "show"]).stdout
        assert routes == "100.64.0.0/18 dev delay-0 proto 109 scope link \n"
    finally:
        shell.communicate("\n", timeout=PATIENCE_S)


def test_shells_side_by_side_reach_the_server_and_each_other() -> None:
    first = subprocess.Popen(
        [*stack("mm-delay 1 mm-delay 1"), "sh", "-c", "ip -4 -o address show dev ingress; read _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    address = re.search(r"inet (\S+)/32", first.stdout.readline())
    assert address is not None
    try:
        result = run("mm-delay 2 mm-delay 2", ["ping", "-n", "-c", "1", address[1]])
        assert "1 received" in result.stdout, result.stdout + result.stderr
    finally:
        first.communicate("\n", timeout=PATIENCE_S)


def as_nobody(command: str, tun_mode: str) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user, with a /dev/net/tun of this mode."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shell = shutil.copy(tool("mm-delay"), folder)
        script = f"""
            mount -t tmpfs -o mode=755 none /dev/net
            mknod /dev/net/tun c 10 200 && chmod {tun_mode} /dev/net/tun
            exec setpriv --reuid 65534 --regid 65534 --clear-groups {shell} {command}
        """
        return run("", ["unshare", "--mount", "sh", "-e", "-c", script])


@pytest.mark.needs_root
def test_an_ordinary_user_may_run_shells_where_the_kernel_allows_it() -> None:
    try_namespaces = ["setpriv", "--reuid", "65534", "--clear-groups", "unshare", "--user", "--net", "true"]
    if run("", try_namespaces).returncode != 0:
        pytest.skip("this kernel gives users no namespaces")
    result = as_nobody("5 sh -c 'ping -n -c 1 $MAHIMAHI_BASE; exit 3'", "666")
    assert "1 received" in result.stdout, result.stderr
    assert result.returncode == 3
    closed = as_nobody("5 true", "600")
    assert closed.returncode == 1
    assert "chmod 666 /dev/net/tun" in closed.stderr


@pytest.mark.needs_root
def test_an_error_names_the_setting_that_forbids_namespaces() -> None:
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all"
    shell = " ".join(stack("mm-delay 0"))
    result = run("", ["unshare", "--user", "--map-root-user", "sh", "-c", f"{forbid} {shell} true"])
    assert result.returncode == 1
    assert "user.max_user_namespaces" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_world_is_reached_from_inside_where_there_is_a_way_to_it() -> None:
    world = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; read _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert world.stdout is not None
    assert world.stdout.readline() == "ready\n"
    in_world = f"nsenter --net=/proc/{world.pid}/ns/net"
    script = f"""
        ip link add near type veth peer name far netns {world.pid}
        ip address add 203.0.113.1/24 dev near && ip link set near up
        {in_world} ip address add 203.0.113.2/24 dev far && {in_world} ip link set far up
        ip route add default via 203.0.113.2
        echo 1 > /proc/sys/net/ipv4/ip_forward
        ip address add 2001:db8::1/64 dev near nodad && {in_world} ip address add 2001:db8::2/64 dev far nodad
        ip route add default via 2001:db8::2
        echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
        until ip -6 route show table local | grep -q 2001:db8::1 &&
            {in_world} ip -6 route show table local | grep -q 2001:db8::2; do sleep 0.01; done
    """
    try:
        subprocess.run(["sh", "-e", "-c", script], check=True)
        # The outside world has no route to the shells, so an answer proves that the source address was translated.
        for address in ("203.0.113.2", "2001:db8::2"):
            result = run("mm-delay 1 mm-loss uplink 0", ["ping", "-n", "-c", "1", address])
            assert "1 received" in result.stdout, result.stdout + result.stderr
            # A busy machine may wake a shell late, which the shell reports.
            assert not [line for line in result.stderr.splitlines() if "too busy for exact times" not in line]
    finally:
        # Delete the device before its peer's namespace ends: then the kernel would delete it, too, and this would fail.
        subprocess.run(["ip", "link", "delete", "near"], check=True)
        world.communicate("\n", timeout=PATIENCE_S)


def test_an_oversize_packet_is_an_error_that_names_the_mtu() -> None:
    script = f"ip link set ingress mtu 9000 && exec ping -n -c 1 -w 5 -s 3000 {SERVER[0]}"
    result = run("mm-link 1M 1M --", ["sh", "-c", script])
    assert result.returncode == 1
    assert "MTU of 1500" in result.stderr


@pytest.mark.parametrize("nesting", ["mm-delay 0", "mm-delay 0 mm-loss uplink 0 mm-link 1M 1M --"])
@pytest.mark.parametrize(
    ("command", "status"),
    [("true", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("exec /no/such/command", 127)],
)
def test_the_exit_status_is_passed_on(nesting: str, command: str, status: int) -> None:
    assert run(nesting, ["sh", "-c", command]).returncode == status


def test_a_command_that_does_not_exist_is_named() -> None:
    result = run("mm-delay 0", ["no-such-command"])
    assert result.returncode == 127
    assert "no-such-command" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "shells",
    [
        "mm-delay x",
        "mm-delay",
        "mm-link 1M",
        "mm-link 1M 1M --downlink-queue=droptail",
        "mm-loss sideways 0",
        "mm-loss uplink --packets 0",
        "mm-loss uplink --packets 3,3",
        "mm-loss downlink --at -1",
        "mm-loss both 0 --retransmit 10 --",
        "mm-loss both 1 --retransmit 10 --",
        "mm-loss both 0.1 --retransmit 0 --",
        "mm-loss both 0.1 --retransmit 10 --burst 3 --",
        "mm-net --retransmit 10",
        "mm-net --drop-up-packets 1.5",
    ],
)
def test_wrong_arguments_fail_before_the_command_runs(shells: str) -> None:
    result = run(shells, ["echo", "ran"])
    assert result.returncode != 0
    assert "ran" not in result.stdout
    assert result.stderr


def start_bulk_transfers(shells: str, address: tuple[str, int]) -> Callable[[], tuple[float, float]]:
    """Start sending as much as possible through the shells; the returned function waits for the rates down and up, in
    bit/s."""
    server = socket.create_server(address, family=shells_peer.family_of(address))
    server.settimeout(PATIENCE_S)
    client = subprocess.Popen(
        [*stack(shells), sys.executable, shells_peer.__file__, "tcp", *map(str, address)],
        stdout=subprocess.PIPE,
        text=True,
    )

    def rates() -> tuple[float, float]:
        with server:
            download, _ = server.accept()
            with download:
                shells_peer.send_for(download)
            upload, _ = server.accept()
            with upload:
                upload_bps = shells_peer.transfer_rate(upload)
            output, _ = client.communicate(timeout=PATIENCE_S)
        return float(output), upload_bps

    return rates


@pytest.mark.timing
def test_bulk_tcp_reaches_the_rates_of_lte() -> None:
    """Nested shells and a single one are tested over IPv4 and IPv6, in parallel, since they mostly wait."""
    give_ipv6()
    cases = [
        (LTE, SERVER, GOODPUT),
        (LTE_IN_ONE_HOP, SERVER, GOODPUT),
        (LTE, SERVER_V6, GOODPUT_V6),
        (LTE_IN_ONE_HOP, SERVER_V6, GOODPUT_V6),
    ]
    with ThreadPoolExecutor(len(cases)) as pool:
        transfers = [
            pool.submit(start_bulk_transfers(shells, (address, port + number)))
            for number, (shells, (address, port), _) in enumerate(cases)
        ]
        for (shells, address, goodput), transfer in zip(cases, transfers, strict=True):
            download_bps, upload_bps = transfer.result()
            assert download_bps == pytest.approx(10.5e6 * goodput, rel=0.03), (shells, address)
            assert upload_bps == pytest.approx(2.8e6 * goodput, rel=0.03), (shells, address)


def datagrams_through(
    shells: str, address: tuple[str, int] = SERVER, datagrams: int = shells_peer.FEW
) -> tuple[list[int], list[int]]:
    """Send this many numbered datagrams to the server and back; return the numbers of those that arrived, and of those
    that returned."""
    with socket.socket(shells_peer.family_of(address), socket.SOCK_DGRAM) as server:
        shells_peer.hold_everything(server)
        server.bind(address)
        server.settimeout(PATIENCE_S)
        arrived: list[int] = []

        def echo() -> None:
            while True:
                data, sender = server.recvfrom(100)
                if data == b"stop":
                    return
                if data != shells_peer.END:
                    arrived.append(int(data))
                server.sendto(data, sender)

        echoing = threading.Thread(target=echo)
        echoing.start()
        try:
            result = run(shells, [sys.executable, shells_peer.__file__, "udp", *map(str, (*address, datagrams))])
        finally:
            with socket.socket(server.family, socket.SOCK_DGRAM) as stopping:
                stopping.sendto(b"stop", address)
            echoing.join()
    return arrived, [int(number) for number in result.stdout.split()]


@pytest.mark.needs_large_buffers
def test_loss_is_independent_per_direction_and_within_binomial_bounds() -> None:
    loss_up, loss_down = 0.0166, 0.0305
    arrived, returned = datagrams_through(
        f"mm-loss uplink {loss_up} mm-loss downlink {loss_down}", datagrams=(sent := shells_peer.DATAGRAMS)
    )
    assert_binomial(sent - len(arrived), sent, loss_up)
    assert_binomial(len(arrived) - len(returned), len(arrived), loss_down)


def assert_binomial(count: int, trials: int, probability: float) -> None:
    deviation = math.sqrt(trials * probability * (1 - probability))
    assert abs(count - trials * probability) < 4.5 * deviation


@pytest.mark.needs_large_buffers
def test_a_seed_drops_the_same_packets_in_one_hop_and_in_nested_shells() -> None:
    nested = datagrams_through("mm-delay 1 mm-loss uplink 0.1 --seed 7 -- mm-loss downlink 0.2 --seed 7 --")
    fused = datagrams_through("mm-net --delay 1 --loss-up 0.1 --loss-down 0.2 --seed 7")
    assert fused == nested
    assert len(fused[1]) < len(fused[0]) < shells_peer.FEW


@pytest.mark.needs_large_buffers
def test_a_seed_drops_the_same_packets_over_ipv6() -> None:
    give_ipv6()
    shells = "mm-loss uplink 0.1 --seed 7 -- mm-loss downlink 0.2 --seed 7 --"
    assert datagrams_through(shells, SERVER_V6) == datagrams_through(shells, SERVER)


@pytest.mark.needs_large_buffers
def test_loss_may_come_in_bursts() -> None:
    # With another seed, one of some thousand runs would be outside these bounds.
    arrived, _ = datagrams_through("mm-loss uplink 0.02 --burst 5 --seed 1 --", datagrams=shells_peer.DATAGRAMS)
    lost = sorted(set(range(shells_peer.DATAGRAMS)) - set(arrived))
    bursts = 1 + sum(after - before > 1 for before, after in itertools.pairwise(lost))
    assert 3.5 < len(lost) / bursts < 7


@pytest.mark.needs_large_buffers
def test_round_trip_loss_is_shared_by_the_directions() -> None:
    _, returned = datagrams_through("mm-loss --round-trip 0.06 --", datagrams=shells_peer.DATAGRAMS)
    assert_binomial(shells_peer.DATAGRAMS - len(returned), shells_peer.DATAGRAMS, 0.06)


@pytest.mark.needs_large_buffers
def test_chosen_packets_are_lost_and_no_others_in_one_hop_and_in_nested_shells(tmp_path: Path) -> None:
    # Datagrams are numbered from 0. Among those that return, 1 is the first, and 8 the seventh.
    log, everything = tmp_path / "packets.csv", set(range(shells_peer.FEW))
    lost_up, lost_down = {0, 6, 11}, {1, 8}
    nested = datagrams_through("mm-delay 1 mm-loss uplink --packets 12,1,7 -- mm-loss downlink --packets=1,7 --")
    link = f"--up 1G --down 1G --packet-log={log}"
    fused = datagrams_through(f"mm-net --delay 1 {link} --drop-up-packets 12,1,7 --drop-down-packets 1,7")
    assert fused == nested
    assert set(fused[0]) == everything - lost_up
    assert set(fused[1]) == everything - lost_up - lost_down
    with log.open(newline="") as file:
        lost = [(row["direction"], row["destination"]) for row in csv.DictReader(file) if row["event"] == "lost"]
    assert sorted(lost) == [("down", "100.64.0.2")] * 2 + [("up", SERVER[0])] * 3


@pytest.mark.needs_large_buffers
def test_the_first_packet_after_a_time_is_lost() -> None:
    # The test does not know exactly when the shell starts. So both times are within 1 µs of its start: the first packet
    # comes later, whenever it is sent, and is lost.
    everything = list(range(shells_peer.FEW))
    assert datagrams_through("mm-loss both --at 0,0.001") == (everything[1:], everything[2:])


@pytest.mark.needs_large_buffers
def test_a_link_that_retransmits_delivers_everything_late_and_in_order() -> None:
    everything = list(range(shells_peer.FEW))
    assert datagrams_through("mm-net --delay 1 --loss 0.1 --retransmit 3 --seed 7") == (everything, everything)
    answers = run("mm-loss both 0.5 --retransmit 30 --seed 1 --", pings(8)).stdout
    times_ms = [float(ms) for ms in re.findall(r"time=([\d.]+)", answers)]
    assert len(times_ms) == 8
    assert max(times_ms) > 30


@pytest.mark.timing
def test_an_intermittent_link_loses_what_comes_while_it_is_off() -> None:
    command = ["ping", "-n", "-D", "-i", "0.02", "-c", "75", SERVER[0]]
    result = run("mm-intermittent downlink 0.5 0.5", command)
    times = [float(at) for at in re.findall(r"\[([\d.]+)\] \d+ bytes", result.stdout)]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert 0.4 < max(gaps) < 0.62
    assert len([gap for gap in gaps if gap > 0.2]) == 1


def test_a_random_link_is_on_at_first() -> None:
    assert ping_ms("mm-onoff uplink 1000000 1000000", count=1)


def link_log(path: Path) -> list[list[str]]:
    """The words of each line of a log, without comments."""
    return [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]


def test_logs_have_every_packet_in_mahimahis_format(tmp_path: Path) -> None:
    trace, log = tmp_path / "trace", tmp_path / "up.log"
    trace.write_text("10\n")
    queue = "--uplink-queue=droptail --uplink-queue-args=packets=1"
    assert run(f"mm-link {trace} {trace} {queue} --uplink-log={log} --", pings(3, "-s", "1472")).returncode == 0
    comments = [line for line in log.read_text().splitlines() if line.startswith("#")]
    assert comments[0] == f"# mahimahi mm-link (Uplink) [{trace}] > {log}"
    assert "# queue: droptail [packets=1]" in comments
    assert "# base timestamp: 0" in comments
    events = link_log(log)
    arrivals = [int(event[0]) for event in events if event[1:] == ["+", "1504"]]
    departures = [(int(event[0]), int(event[3])) for event in events if event[1:3] == ["-", "1504"]]
    assert len(arrivals) == 3
    assert [at - delay for at, delay in departures] == arrivals
    opportunities = [int(event[0]) for event in events if event[1:] == ["#", "1504"]]
    assert opportunities == list(range(10, 10 * len(opportunities) + 1, 10))
    assert {at for at, _ in departures} <= set(opportunities)


def test_a_packet_log_has_a_row_for_every_packet(tmp_path: Path) -> None:
    log = tmp_path / "packets.csv"
    queue = "--uplink-queue=fq_codel --uplink-queue-args=target=5"
    assert run(f"mm-link 1M 2M {queue} --packet-log={log} --", pings(3, "-s", "1472")).returncode == 0
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["direction"] for row in rows] == ["up", "down"] * 3
    assert {row["event"] for row in rows} == {"leave"}
    assert {(row["protocol"], row["bytes"]) for row in rows} == {("1", "1500")}
    assert {row["destination"] for row in rows if row["direction"] == "up"} == {SERVER[0]}
    delays_ms = [float(row["delay_ms"]) for row in rows]
    assert delays_ms == [12.0, 6.0] * 3


@pytest.mark.parametrize("queue", ["codel", "fq_codel"])
def test_a_managed_queue_marks_packets_that_allow_it_and_drops_others(queue: str, tmp_path: Path) -> None:
    log, marked = tmp_path / "packets.csv", {}
    arguments = f"--uplink-queue={queue} --uplink-queue-args=target=1,interval=10,ecn=1"
    for name, allows_marks in (("ect", 2), ("not-ect", 0)):
        # The end mark takes the same path as the burst. It is repeated, since the queue may drop it, too.
        burst = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, {allows_marks})
s.connect({SERVER!r})
for _ in range(100):
    s.send(bytes(1000))
s.settimeout(0.1)
while True:
    s.send(b"end")
    try:
        s.recv(1)
        break
    except TimeoutError:
        pass
"""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            shells_peer.hold_everything(server)
            server.bind(SERVER)
            server.settimeout(PATIENCE_S)
            shell = subprocess.Popen(
                [*stack(f"mm-link 5M 5M {arguments} --packet-log={log} --"), sys.executable, "-c", burst]
            )
            codepoints = []
            while (datagram := server.recvmsg(2000, 100))[0] != b"end":
                [(_, _, tos)] = datagram[1]
                codepoints.append(tos[0] & 3)
            server.sendto(b"x", datagram[3])
            assert shell.wait(timeout=PATIENCE_S) == 0
        with log.open(newline="") as file:
            dropped = sum(row["event"] != "leave" and row["bytes"] == "1028" for row in csv.DictReader(file))
        marked[name] = (codepoints.count(3), dropped)
        assert len(codepoints) + dropped == 100
    assert marked["ect"][0] > 1
    assert marked["ect"][1] == 0
    assert marked["not-ect"][0] == 0
    assert marked["not-ect"][1] > 1


def pcapng_blocks(path: Path) -> list[tuple[int, bytes]]:
    """Type and body of each block of a capture in little-endian order."""
    data, blocks = path.read_bytes(), []
    while data:
        kind, length = struct.unpack_from("<II", data)
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, length - 4) == (length,)
        blocks.append((kind, data[8 : length - 4]))
        data = data[length:]
    return blocks


def pcapng_options(data: bytes) -> dict[int, bytes]:
    """The options of a block, by number."""
    options: dict[int, bytes] = {}
    while data:
        number, length = struct.unpack_from("<HH", data)
        if number == 0:
            assert data == bytes(4)
            return options
        options[number] = data[4 : 4 + length]
        data = data[4 + (length + 3) // 4 * 4 :]
    raise AssertionError("no end of options")


def internet_checksum(data: bytes) -> int:
    total: int = sum(word for (word,) in struct.iter_unpack(">H", data + bytes(len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.timing
@pytest.mark.parametrize("shells", ["mm-link 100k 200k", "mm-net --up 100k --down 200k"])
def test_a_capture_has_every_packet_its_time_and_what_happened_to_it(shells: str, tmp_path: Path) -> None:
    capture = tmp_path / "packets.pcapng"
    queue = "--uplink-queue=droptail --uplink-queue-args=packets=1"
    # Three datagrams at once: one is sent, one waits, one is dropped.
    burst = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        f"s.connect({SERVER!r}); [s.send(bytes(1001)) for _ in range(3)]; s.recv(1)"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(SERVER)
        shell = subprocess.Popen([*stack(f"{shells} {queue} --pcap={capture} --"), sys.executable, "-c", burst])
        before_ns = time.time_ns()
        server.recv(2000)
        _, client = server.recvfrom(2000)
        server.sendto(b"x", client)
        assert shell.wait(timeout=PATIENCE_S) == 0
    (head, section), *rest = pcapng_blocks(capture)
    assert head == 0x0A0D0D0A
    assert struct.unpack_from("<IHHq", section) == (0x1A2B3C4D, 1, 0, -1)
    interfaces = [body for kind, body in rest if kind == 1]
    assert [struct.unpack_from("<HHI", body) for body in interfaces] == [(101, 0, 0)] * 2
    assert [pcapng_options(body[8:]) for body in interfaces] == [{2: b"up", 9: b"\x09"}, {2: b"down", 9: b"\x09"}]
    seen = []
    for kind, body in rest[2:]:
        assert kind == 6
        interface, high, low, captured, original = struct.unpack_from("<5I", body)
        assert captured == original
        packet, options = body[20 : 20 + captured], pcapng_options(body[20 + (captured + 3) // 4 * 4 :])
        assert before_ns < (high << 32) + low < time.time_ns()
        assert internet_checksum(packet[12:20] + bytes([0, 17]) + packet[24:26] + packet[20:]) == 0xFFFF
        seen.append((interface, captured, options[1].decode(), int.from_bytes(options[2], "little")))
    up_ms, down_ms = 1029 * 8 / 100, 29 * 8 / 200
    assert seen[0] == (0, 1029, "dropped", 2)
    assert seen[1] == (0, 1029, f"left after {up_ms:.6f} ms", 2)
    (interface, length, comment, flags), answer = seen[2:]
    assert (interface, length, flags) == (0, 1029, 2)
    # The second datagram waited for the first. The earlier it was sent, the longer it waited.
    assert up_ms < float(comment.split()[2]) <= 2 * up_ms
    assert answer == (1, 29, f"left after {down_ms:.6f} ms", 1)


@pytest.mark.timing
def test_meters_show_what_links_carry_in_the_chosen_directions() -> None:
    """The meters run in parallel, since they mostly wait."""
    # 12 pings of 1500 bytes a second, until after the second line.
    ping = ["ping", "-n", "-q", "-c", "31", "-i", "0.0833", "-s", "1472", SERVER[0]]
    up, down = (rf"{name} +0\.1\d\d Mbit/s" for name in ("up", "down"))
    queue = r", at most +12\.0 ms in the queue, 0 dropped"
    expected = {
        "mm-net --up 1M --down 1M --meter": f"{up}{queue} +{down}{queue}",
        "mm-meter": f"{up}   {down}",
        "mm-meter --meter-uplink": up,
        "mm-meter --meter-downlink": down,
    }
    for shells in "mm-link 1M 1M", "mm-net --up 1M --down 1M":
        for direction, pattern in ("uplink", up), ("downlink", down):
            for what in "", "-delay":
                expected[f"{shells} --meter-{direction}{what}"] = pattern + queue
    with ThreadPoolExecutor(len(expected)) as pool:
        complaints = pool.map(lambda shells: run(f"{shells} --", ping).stderr, expected)
    for (shells, pattern), text in zip(expected.items(), complaints, strict=True):
        lines = text.splitlines()
        assert len(lines) > 1, shells
        assert re.fullmatch(pattern, lines[1]), (shells, lines)


STOP_THE_SHELL = (
    "import os, signal, socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    f"s.connect({SERVER!r}); shell = int(input()); os.kill(shell, signal.SIGSTOP);"
)
LET_IT_GO_ON = "os.kill(shell, signal.SIGCONT);"


def complaints_of_a_stopped(shells: str, meanwhile: str, afterwards: str = "") -> str:
    """The standard error of a shell whose command acts while the shell is stopped."""
    code = STOP_THE_SHELL + meanwhile + LET_IT_GO_ON + afterwards
    command = [*stack(shells), sys.executable, "-c", code]
    shell = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, complaints = shell.communicate(f"{shell.pid}\n", timeout=PATIENCE_S)
    assert shell.returncode == 0
    return complaints


def send_through_a_stopped(shells: str) -> tuple[float, str]:
    """How long a packet takes (s) through a shell that is stopped for the next 0.1 s, and the shell's output after
    that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(SERVER)
        took_s = []

        def answer() -> None:
            sent, client = server.recvfrom(100)
            took_s.append(time.monotonic() - float(sent))
            server.sendto(b"x", client)

        answering = threading.Thread(target=answer)
        answering.start()
        complaints = complaints_of_a_stopped(
            shells, "s.send(str(time.monotonic()).encode()); time.sleep(0.1);", "s.recv(1)"
        )
        answering.join(timeout=PATIENCE_S)
    return took_s[0], complaints


@pytest.mark.timing
@pytest.mark.needs_kernel_stamps
def test_a_delay_counts_from_when_a_packet_came_in_not_from_when_it_was_read() -> None:
    took_s, _ = send_through_a_stopped("mm-delay 200")
    assert 0.2 <= took_s < 0.29


@pytest.mark.needs_kernel_stamps
def test_late_wake_ups_are_counted_and_reported() -> None:
    took_s, complaints = send_through_a_stopped("mm-delay 5")
    assert took_s >= 0.1
    report = re.search(r"woke up more than 1 ms late (\d+) times?, ([\d.]+) ms at worst", complaints)
    assert report is not None, complaints
    assert float(report[2]) >= 94


def test_packets_that_the_emulator_itself_loses_are_reported() -> None:
    # While the shell is stopped, more packets arrive than the kernel holds for it.
    more_than_held, held = 130_000, 100_000
    complaints = complaints_of_a_stopped("mm-delay 1", f"[s.send(b'x') for _ in range({more_than_held})];")
    report = re.search(r"lost (\d+) packets? by itself", complaints)
    assert report is not None, complaints
    assert more_than_held - held <= int(report[1]) <= more_than_held - held + 100


def test_a_trace_played_once_ends_the_command(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("300\n")
    assert run(f"mm-link {trace} {trace} --once --", ["sleep", "1000"]).returncode == 0


def test_a_trace_that_is_named_like_a_rate_is_refused_until_one_of_both_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("12").write_text("300\n")
    refusal = run("mm-link 12 12 -d log --", ["true"])
    assert (refusal.returncode, refusal.stdout, refusal.stderr.count("\n")) == (1, "", 1)
    assert "./12 for the trace, or 012 for the rate" in refusal.stderr
    command = ["sh", "-c", 'test "$1" = -d', "it's", "-d"]
    assert run("mm-link ./12 012 -u up -d down", command).returncode == 0
    quoted = r"""'./12' '012' '-u' 'up' '-d' 'down' 'sh' '-c' 'test "$1" = -d' 'it'\''s' '-d'"""
    for log, rate in (("up", "[./12]"), ("down", "[12 bit/s]")):
        head = Path(log).read_text().splitlines()[:2]
        assert rate in head[0]
        assert head[1] == f"# command line: '{tool('mm-link')}' {quoted}"


def test_a_network_that_is_to_begin_at_a_signal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAHIMAHI_PASSTHROUGH_UNTIL_SIGNAL", "1")
    result = run("mm-delay 20", ["echo", "ran"])
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "MAHIMAHI_PASSTHROUGH_UNTIL_SIGNAL is set" in result.stderr


def test_a_full_disk_is_an_error_before_the_command_runs() -> None:
    result = run("mm-link 1M 1M --uplink-log=/dev/full --", ["echo", "ran"])
    assert (result.returncode, result.stdout) == (1, "")
    assert "/dev/full" in result.stderr


def test_a_disk_that_becomes_full_ends_the_command(tmp_path: Path) -> None:
    shell = " ".join(stack(f"mm-link 1M 1M --uplink-log={tmp_path}/log --"))
    script = f"mount -t tmpfs -o size=8k none {tmp_path} && exec {shell} ping -n -i 0.002 {SERVER[0]}"
    result = run("", ["unshare", "--mount", "sh", "-c", script])
    assert result.returncode == 1
    assert f"{tmp_path}/log" in result.stderr


def test_variables_tell_the_command_where_it_is() -> None:
    show = ["sh", "-c", 'echo "$MAHIMAHI_BASE|$MAHIMAHI_SHELL_PREFIX"']
    output = run("mm-delay 1 mm-link 1M 1M -- mm-loss uplink 0.5", show).stdout
    assert output == "100.64.0.1|[delay 1 ms] [link] [loss up=0.5] \n"
    assert run("mm-delay --addresses 10.9.0.0/16 1", show).stdout.startswith("10.9.0.1|")


# These commands use no `exec`, and start no processes after "ready": while a process executes `exec`, its environment
# is empty, and `Marked` would not recognise the process by it.
STAYS = ["sh", "-c", "echo ready; read -r what_never_comes"]
LEAVES_PROCESSES = ["sh", "-c", "sleep 1000 & sh -c 'sleep 1000 & sleep 1000' & echo ready; wait"]


def test_sigkill_of_any_process_leaves_nothing() -> None:
    nested = "mm-delay 1 mm-loss uplink 0 mm-link 1M 1M --"
    shell_processes = 7  # three shells and their supervisors, and the command
    for victim in range(shell_processes):
        tree = Marked(nested, LEAVES_PROCESSES)
        processes = tree.processes()
        with namespaces_kept(processes) as namespaces:
            assert len(namespaces) == 3
            os.kill(processes[victim], signal.SIGKILL)
            tree.assert_all_end()
            assert not namespaces & network_namespaces(all_processes())
        assert devices() == ["lo"]


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_to_the_shell_ends_its_command(sent: signal.Signals, status: int) -> None:
    tree = Marked("mm-delay 1 mm-loss uplink 0", STAYS)
    tree.shell.send_signal(sent)
    tree.assert_all_end()
    assert tree.shell.returncode == status


def test_a_signal_to_the_supervisor_of_a_command_ends_the_command() -> None:
    tree = Marked("mm-delay 1", STAYS)
    _, supervisor, _ = tree.processes()
    os.kill(supervisor, signal.SIGTERM)
    tree.assert_all_end()
    assert tree.shell.returncode == 128 + signal.SIGTERM


def test_a_signal_that_is_ignored_outside_is_ignored_inside() -> None:
    tree = Marked("nohup mm-delay 1 mm-loss uplink 0", STAYS)
    for process in tree.processes():
        os.kill(process, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        tree.shell.wait(timeout=5.5)  # a command that ignores other signals is killed after 5 s
    tree.shell.send_signal(signal.SIGTERM)
    tree.assert_all_end()
    assert tree.shell.returncode == 128 + signal.SIGTERM


def test_what_the_command_leaves_running_ends_with_it() -> None:
    tree = Marked("mm-delay 1", ["sh", "-c", "sleep 1000 & echo ready; exit 3"])
    tree.assert_all_end()
    assert tree.shell.returncode == 3


def in_terminal(command: list[str], awaited: bytes, typed: bytes) -> int:
    """The exit status of a command in a new terminal; `typed` is typed when the terminal shows `awaited`."""
    process, terminal = pty.fork()
    if process == 0:
        os.execv(command[0], command)
    output = b""
    while awaited not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, typed)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    return status


def test_ctrl_c_is_for_the_command_to_handle() -> None:
    handles = ["sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done"]
    assert in_terminal([*stack("mm-delay 1 mm-loss uplink 0"), *handles], b"ready\r\n", b"\x03") == 9
    dies = ["sh", "-c", "echo ready; exec sleep 1000"]
    assert in_terminal([*stack("mm-delay 1"), *dies], b"ready\r\n", b"\x03") == 130


def test_an_interactive_shell_has_the_terminal_and_its_prompt_shows_where_it_is() -> None:
    bash = ["env", "PS1=$ ", "bash", "--norc", "-i"]
    prompt = b"[delay 1 ms] [loss up=0] $ "
    assert in_terminal([*stack("mm-delay 1 mm-loss uplink 0"), *bash], prompt, b"true; exit 5\n") == 5
