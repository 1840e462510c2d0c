"""Whether a hop works as its kind should, between the two halves of its network, which are measured separately.

`python -m measure.validate.network.hop HOST ADDRESS` is the client of the replay in which this is measured: it prints
how long echoes, connections and TLS handshakes took.
"""

import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError, reports_errors
from base.places import tool
from base.structure import from_json, to_json
from dataset.checks import Check, between, same, unchecked, within
from measure.validate.contract import Bench, Validation
from measure.validate.network.path import refusal
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from replay import ReplaySpec, run
from replay.hops.registry import hop_of
from tuning import protocols
from tuning.networks import Network

# How many echoes and connections are measured. The least time of each is used, so that losses and a busy machine do not
# matter.
ECHOES, CONNECTIONS = 20, 10
TOLERANCE_MS, TOLERANCE = 3.0, 0.01
# The processor time that a handshake may take at both ends together. If a handshake takes no less than the path's round
# trip, TLS is the servers' own.
HANDSHAKE_MS = 40.0
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class TunnelTimes:
    """The least times in ms: to connect to the proxy; for the proxy to open the second of two tunnels once the first is
    open; then until TLS with the server is established; and then until its answer begins."""

    connect_ms: float
    open_ms: float
    secure_ms: float
    response_ms: float


@dataclass(frozen=True)
class Times:
    """The least times in ms: of an echo (ICMP), of a TCP connection, of a connection with its TLS handshake, and of a
    response over it."""

    echo_ms: float
    connect_ms: float
    secure_ms: float
    response_ms: float


@dataclass(frozen=True)
class HopMeasurement:
    """The times that the client measured (in `tunnel` if the hop tunnels), and the hop's own account (`replay.hop`)."""

    account: dict[str, Any]
    times: Times | None = None
    tunnel: TunnelTimes | None = None


def measure_hop(network: Network, site: Site) -> HopMeasurement:
    """Observe the hop of `network` between a client and the servers of `site`. Raises EyelevelError."""
    host, (address, *_) = next(iter(site.addresses.items()))
    kind, what = hop_of(network), "what was seen of the hop"
    client = ("tunnel", host, str(CONNECTIONS)) if kind.proxy else ("hop", host, address)
    with tempfile.TemporaryFile("w+") as output:
        command = (sys.executable, "-m", f"measure.validate.network.{client[0]}", *client[1:])
        protocol = protocols.load()[kind.validation_protocol]
        outcome = run(ReplaySpec(site.folder, network, protocol), command, stdout=output.fileno())
        output.seek(0)
        answer = output.read()
    if outcome.status:
        raise EyelevelError(f"the hop of {network.name} could not be measured (status {outcome.status}); see above")
    account = outcome.evidence["hop"]
    if kind.proxy:
        return HopMeasurement(account, tunnel=from_json(answer, TunnelTimes, what))
    return HopMeasurement(account, from_json(answer, Times, what))


def judge_hop(
    network: Network, seen: HopMeasurement, tolerance_ms: float = TOLERANCE_MS, handshake_ms: float = HANDSHAKE_MS
) -> Iterator[Check]:
    """Compare `seen` with what `network` configures for its hop. Times may deviate by `tolerance_ms`, and a handshake
    may take `handshake_ms` of processor time at both ends together."""
    hop, kind, name = network.hop, hop_of(network), network.name
    assert hop
    yield same(name, "hop", hop.kind, seen.account["kind"])
    near_ms, path_ms = network.min_rtt_ms, network.path_rtt_ms
    tolerance_ms = max(tolerance_ms, TOLERANCE * path_ms) + network.jitter_ms + hop.jitter_ms
    if network.follows_clock or network.retransmit_ms is not None:
        yield unchecked(name, "hop, least times", "the near half's delay changes")
    elif tunnel := seen.tunnel:
        # The proxy itself answers the first two steps. The server answers the other two, at the end of the whole path.
        for what, least_ms, ms in (
            ("to connect", near_ms, tunnel.connect_ms),
            ("to a tunnel", near_ms, tunnel.open_ms),
            ("until TLS stands in it", path_ms, tunnel.secure_ms),
            ("to a response through it", path_ms, tunnel.response_ms),
        ):
            bounds_ms = least_ms - tolerance_ms, least_ms + tolerance_ms + handshake_ms
            yield between(name, f"hop, least time {what}", bounds_ms[0], ms, bounds_ms[1], "ms")
    elif times := seen.times:
        connect_ms = near_ms if kind.ends else path_ms
        yield within(name, "hop, least echo", path_ms, times.echo_ms, tolerance_ms, "ms")
        yield within(name, "hop, least time to connect", connect_ms, times.connect_ms, tolerance_ms, "ms")
        # Unless the hop terminates HTTP, the TLS handshake is with the server. A hop that splits connections connects
        # to the server only after the client has connected to the hop, and the client's data waits for that. So whether
        # the hop splits connections or not, TLS is established after two round trips of the path. A hop that terminates
        # HTTP makes the handshake itself, so this takes two round trips of the near half.
        least_ms = 2 * (near_ms if kind.ends_tls else path_ms) - tolerance_ms
        most_ms = least_ms + 2 * tolerance_ms + handshake_ms
        yield between(name, "hop, least time until TLS stands", least_ms, times.secure_ms, most_ms, "ms")
        # A hop that terminates HTTP keeps its connections to the servers open, so a response takes only one round trip
        # of the path.
        most_ms = path_ms + tolerance_ms + handshake_ms
        yield between(name, "hop, least time to a response", path_ms - tolerance_ms, times.response_ms, most_ms, "ms")
    for what, key, count in kind.counts:
        yield same(name, f"hop, {what}", count * CONNECTIONS, seen.account[key])
    if kind.ends:
        yield same(name, "hop, packets beside it", 0, seen.account["packets_beside"])


def _applies(network: Network, bench: Bench) -> bool:
    return network.hop is not None and refusal(network, bench) is None


VALIDATION = Validation(
    "hop",
    "the hop of ",
    20,
    measure=lambda network, bench: measure_hop(network, bench.sites[WINDOW_PAGE]),
    judge=judge_hop,
    document=lambda network, seen: {"hop": asdict(seen)},
    applies=_applies,
)


@reports_errors
def main(host: str, address: str) -> None:
    """Print the least times, as JSON."""
    context = ssl.create_default_context()
    connect_ms, secure_ms, response_ms = [], [], []
    for _ in range(CONNECTIONS):
        started_s = time.monotonic()
        with socket.create_connection((address, 443), TIMEOUT_S) as plain:
            connected_s = time.monotonic()
            # Without this option, the request waits for the acknowledgement of the handshake's end (Nagle's algorithm).
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(plain, server_hostname=host) as secure:
                secured_s = time.monotonic()
                secure.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                secure.recv(1)
                connect_ms.append((connected_s - started_s) * 1e3)
                secure_ms.append((secured_s - started_s) * 1e3)
                response_ms.append((time.monotonic() - secured_s) * 1e3)
    command: list[str | Path] = [tool("ping"), "-n", "-q", "-i", "0.1", "-c", str(ECHOES), address]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if "min/avg" not in completed.stdout:
        raise EyelevelError(f"no echo came back from {address}")
    echo_ms = float(completed.stdout.rpartition("= ")[2].partition("/")[0])
    print(to_json(Times(echo_ms, min(connect_ms), min(secure_ms), min(response_ms))))


if __name__ == "__main__":
    main(*sys.argv[1:])
