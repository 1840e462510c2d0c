"""Single measurements: round trips, bulk transfers, CPU time."""

import contextlib
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from base.errors import EyelevelError
from benchmarks.shells import peer
from benchmarks.shells.systems import System, examples

SERVER = "198.18.0.1"
# A shell command that adds the server's address to a network namespace, before the command that follows.
ADD_SERVER = f"ip link set lo up && ip address add {SERVER}/32 dev lo"
PORT = 4000
# The emulator has real-time priority. The processes that wait for its packets get the lowest such priority, so that
# they wake as promptly as it does.
PROMPT = ("chrt", "--fifo", "1")


@dataclass(frozen=True)
class Deviations:
    """How far times deviated from the wanted time, in ms."""

    count: int
    median_ms: float
    p99_ms: float
    worst_ms: float


def deviations(errors_ms: list[float]) -> Deviations:
    """Summarise the deviations of single times."""
    sizes = sorted(map(abs, errors_ms))
    return Deviations(len(sizes), statistics.median(sizes), sizes[int(0.99 * (len(sizes) - 1))], sizes[-1])


def sleeps(sleep_ms: float, count: int) -> Deviations:
    """How late this machine wakes a real-time process that sleeps this long (clock_nanosleep)."""
    code = (
        "import time\n"
        f"for _ in range({count}):\n"
        f"    due = time.monotonic() + {sleep_ms / 1000}\n"
        f"    time.sleep({sleep_ms / 1000})\n"
        "    print((time.monotonic() - due) * 1000)"
    )
    command = (*PROMPT, sys.executable, "-c", code)
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return deviations([float(line) for line in output.splitlines()])


def round_trips(system: System, wanted_ms: float, count: int, pause_ms: float = 5, ip_bytes: int = 84) -> Deviations:
    """Send echo requests through a network, each one `pause_ms` after the previous answer."""
    times_ms = round_trip_times_ms((*system.prefix, *PROMPT), count, pause_ms, ip_bytes)
    return deviations([time_ms - wanted_ms for time_ms in times_ms])


def round_trip_times_ms(prefix: Sequence[str], count: int, pause_ms: float = 5, ip_bytes: int = 84) -> list[float]:
    """The time (ms) of each of `count` round trips in a network; `prefix` is a command line that runs a command
    there."""
    probe = (str(examples() / "icmp-probe"), SERVER, str(count), f"{pause_ms:.0f}", str(ip_bytes))
    output = subprocess.run((*prefix, *probe), capture_output=True, text=True, check=True, timeout=300).stdout
    return [float(line) / 1000 for line in output.splitlines() if line.replace(".", "", 1).isdigit()]


@dataclass(frozen=True)
class Transfer:
    """A bulk transfer: the data that arrived, what was sent again or lost, and the emulator's CPU time."""

    mbps: float
    lost_packets: int
    cpu_us_per_packet: float
    cpu_share: float


def tcp(system: System, congestion_control: str, seconds: float) -> Transfer:
    """Measure one TCP flow from inside to outside with 128 MB socket buffers, at the receiver.

    The first third, in which the flow reaches its speed, is not measured.
    """
    peer.make_buffers_roomy()
    with socket.create_server((SERVER, PORT)) as server, running(system, "tcp", seconds, congestion_control) as sender:
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            buffer = bytearray(1 << 20)
            begin = time.monotonic()
            received_bytes, since, cpu_before = 0, begin, 0.0
            while received := connection.recv_into(buffer):
                received_bytes += received
                now = time.monotonic()
                if since == begin and now - begin > seconds / 3:
                    received_bytes, since, cpu_before = 0, now, cpu_seconds(system)
            span, cpu = time.monotonic() - since, cpu_seconds(system) - cpu_before
        output, _ = sender.communicate(timeout=30)
    packets = received_bytes / 1448
    return Transfer(received_bytes * 8 / span / 1e6, last_number(output), cpu / packets * 1e6, cpu / span)


def udp(system: System, seconds: float) -> Transfer:
    """Send 1500-byte packets from inside to outside as fast as possible.

    A packet that has not arrived a second after the last was sent counts as lost; on a slow link it may still be
    waiting.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        so_rcvbufforce = 33
        server.setsockopt(socket.SOL_SOCKET, so_rcvbufforce, 256 << 20)
        server.bind((SERVER, PORT))
        with running(system, "udp", seconds) as sender:
            buffer = bytearray(2000)
            server.settimeout(10)
            client = server.recvfrom(2000)[1]
            arrived, first = 1, time.monotonic()
            last = first
            server.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                while last < first + seconds + 1:
                    server.recv_into(buffer)
                    last = time.monotonic()
                    arrived += 1
            cpu = cpu_seconds(system)
            server.sendto(b"x", client)
            output, _ = sender.communicate(timeout=60)
    span = max(last - first, 1e-9)
    lost = last_number(output) - arrived
    return Transfer(arrived * 1500 * 8 / span / 1e6, lost, cpu / arrived * 1e6, cpu / span)


def running(system: System, kind: str, seconds: float, *rest: str) -> subprocess.Popen[str]:
    """Start the sender inside a network."""
    arguments = (sys.executable, peer.__file__, kind, SERVER, str(PORT), str(seconds), *rest)
    return subprocess.Popen((*system.prefix, *arguments), stdout=subprocess.PIPE, text=True)


def last_number(output: str) -> int:
    """The count that the peer printed, taken from its command's `output`, to which an emulator may have added lines."""
    counts = [line for line in output.splitlines() if line.strip().isdigit()]
    if not counts:
        raise EyelevelError(f"the sender inside an emulator told no count, only {output!r}; run the benchmark again")
    return int(counts[-1])


def cpu_seconds(system: System) -> float:
    """The CPU time of the emulator's processes among this process's descendants."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() in system.processes:
                times = process.cpu_times()
                total += times.user + times.system
    return total
