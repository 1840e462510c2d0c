"""Whether a protocol setting is what it is said to be (paper, Table 1), from the wire and the kernel."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from measure.run.visit import LOG
from measure.run.witness import CAPTURE, SOCKETS
from measure.validate.capture import (
    Connection,
    Packet,
    early_data,
    kernel_congestion_control,
    largest,
    read_connections,
    request_after_s,
)
from measure.validate.checks import Check, between, same, within
from measure.validate.site import BULK_PAGE, OBJECT_BYTES, SERVERS, WINDOW_PAGE
from record.site import Site
from replay import ReplaySpec, run
from servers.qlog import SUFFIX, read_qlog
from tuning.networks import Network
from tuning.protocols import LARGEST_MSS_BYTES, Protocol

# Where the first flight is looked at: its round trip is long enough to see what is sent within one.
CLEAR = Network("clear", min_rtt_ms=100, up_mbps=100, down_mbps=100, queue_ms=200)
# Where the answer to losses is: Cubic fills a fraction of it (1.2 / √p packets a round trip, Mathis et al., CCR 1997),
# BBR nearly all.
LOSSY = Network("lossy", min_rtt_ms=20, up_mbps=20, down_mbps=20, queue_ms=100, loss=0.08)
SEED = 1

# Of the browser's TLS sessions, in NSS's key log format.
KEYS = "keys.log"
# Connection options that the browser sends of itself: of HTTP/3's ORIGIN frame, nothing that the server decides by.
BROWSERS_TAGS = ("ORIG",)
# What is less is a page and a handshake, not an object.
SMALL_TRANSFER_BYTES = OBJECT_BYTES // 2

# A flight is what is sent before the first acknowledgement can be back.
FLIGHT_S = 0.95 * CLEAR.min_rtt_ms / 1e3
# What quiche counts its window in.
QUIC_SEGMENT_BYTES = 1460
# QUIC sends while less than the window is in flight, so one packet more. BBR's window grows by what was acknowledged
# before: over TCP by the segments of handshake and page.
FLIGHT_TOLERANCE_PACKETS = 1.5
BBR_GROWTH_PACKETS = {"tcp": 9.0, "quic": 4.0}
# The first packets go out at once however paced, the rest over a third of a round trip at twice the window in each.
BURST_PACKETS = 10
PACED_SHARE, UNPACED_SHARE = 0.15, 0.05
# What cubic must stay below, and BBR reach, of the lossy link. Of some 30 loads of all settings, on an idle machine and
# on a busy one, cubic had 9 to 37 %, BBR 69 to 94 %.
CUBIC_SHARE, BBR_SHARE = 0.55, 0.6
# In round trips, what a browser does between its first packet and its first request.
REQUEST_TOLERANCE_RTT = 0.5
AGREED = {
    "tcp": {
        "TLS version": "TLS 1.3",
        "cipher": "AES-128-GCM",
        "application protocol": "h2",
    },
    "quic": {
        "TLS version": "TLS 1.3",
        "cipher": "AES-128-GCM",
        "application protocol": "h3",
        "QUIC version": "QUIC v1",
    },
}
CERTIFICATES = ["ECDSA secp256r1 by CN=Eyelevel replay testbed"]


@dataclass(frozen=True)
class Evidence:
    """What was seen of a protocol: a load over the clear network and one over the lossy, as captured at the server.

    `early_data` is, of each server, whether it took any. `congestion_control` is what the server took, as the kernel or
    quic_server tells.
    """

    clear: Connection
    lossy: Connection
    certificates: list[str]
    request_after_s: float
    early_data: dict[str, bool]
    congestion_control: str

    def document(self) -> dict[str, Any]:
        """What a reader may want to see of it, as JSON takes it."""
        clear = self.clear
        return {
            "handshake": clear.handshake,
            "certificates": self.certificates,
            "connection_options": clear.connection_options,
            "transport_parameters": clear.transport_parameters,
            "congestion_control": self.congestion_control,
            "request_after_s": self.request_after_s,
            "early_data": self.early_data,
            "flights": [
                [[round(packet.at_s - transfer[0].at_s, 6), packet.payload_bytes] for packet in _flight(transfer)]
                for transfer in _objects(clear)
            ],
            "lossy_mbps": _second_half_mbps(self.lossy),
        }


def observe_protocol(protocol: Protocol, sites: Mapping[str, Site]) -> Evidence:
    """Load the validation pages over `protocol` in the browser. Raises EyelevelError."""
    with _observed(sites[WINDOW_PAGE], CLEAR, protocol) as folder:
        connections = read_connections(folder / CAPTURE, folder / KEYS, protocol.transport)
        tcp = protocol.transport == "tcp"
        control = kernel_congestion_control(folder / SOCKETS) if tcp else _logged_congestion_control(folder)
    with _observed(sites[BULK_PAGE], LOSSY, protocol) as folder:
        lossy = largest(read_connections(folder / CAPTURE, folder / KEYS, protocol.transport))
    # Who returns does not ask for the chain again.
    certificates = next((chain for connection in connections if (chain := connection.certificates)), [])
    asked_s, early = request_after_s(connections), early_data(connections)
    return Evidence(largest(connections), lossy, certificates, asked_s, early, control)


def judge_protocol(protocol: Protocol, seen: Evidence) -> list[Check]:
    """What was `seen` against what `protocol` should be."""
    transport, control = protocol.transport, protocol.congestion_control
    agreed = {**AGREED[transport], "key exchange group": protocol.tls_group}
    checks = [same(protocol.name, what, value, seen.clear.handshake.get(what)) for what, value in agreed.items()]
    checks.append(same(protocol.name, "certificate chain", ", ".join(CERTIFICATES), ", ".join(seen.certificates)))
    if protocol.fast_open:
        accepted_bytes = seen.clear.accepted_in_syn_bytes
        checks.append(between(protocol.name, "data in the SYN", 1, accepted_bytes, protocol.segment_bytes, "bytes"))
    checks += _flight_checks(protocol, seen.clear)
    if transport == "tcp":
        mss_bytes = protocol.mss_bytes or LARGEST_MSS_BYTES
        checks.append(
            within(protocol.name, "maximum segment size", mss_bytes, seen.clear.announced_mss_bytes, 0, "bytes")
        )
    else:
        wanted = " ".join(protocol.connection_options)
        arrived = " ".join(tag for tag in seen.clear.connection_options if tag not in BROWSERS_TAGS)
        checks.append(same(protocol.name, "connection options that arrived", wanted, arrived))
    checks.append(same(protocol.name, "congestion control of the server", control, seen.congestion_control))
    share = 100 * _second_half_mbps(seen.lossy) / (LOSSY.down_mbps or 1)
    bounds = (0, 100 * CUBIC_SHARE) if control == "cubic" else (100 * BBR_SHARE, 100)
    checks.append(
        between(protocol.name, f"share of a link with {LOSSY.loss:.0%} loss", bounds[0], share, bounds[1], "%")
    )
    if protocol.early_data:
        without = sorted(server for server, took in seen.early_data.items() if not took)
        measured = f"all {len(seen.early_data)}" if not without else f"all but {', '.join(without)}"
        checks.append(same(protocol.name, "servers that took early data", f"all {SERVERS}", measured))
    first_request_rtt = seen.request_after_s / CLEAR.min_rtt_ms * 1e3
    least = protocol.round_trips_before_request
    most = least + REQUEST_TOLERANCE_RTT
    checks.append(
        between(protocol.name, "round trips before the first request", least - 0.01, first_request_rtt, most, "RTT")
    )
    return checks


def _flight_checks(protocol: Protocol, clear: Connection) -> list[Check]:
    """The first flight of an object, and that of one asked for after a pause."""
    transfers = _objects(clear)
    if len(transfers) != 2:
        raise EyelevelError(
            f"{protocol.name}: expected the transfers of 2 objects in the capture, found {len(transfers)}"
        )
    first, later = map(_flight, transfers)
    segment_bytes = protocol.segment_bytes if protocol.transport == "tcp" else QUIC_SEGMENT_BYTES
    window = sum(packet.payload_bytes for packet in first) / segment_bytes
    window_later = sum(packet.payload_bytes for packet in later) / segment_bytes
    expected = protocol.initial_window_packets
    tolerance = FLIGHT_TOLERANCE_PACKETS
    most = expected + max(
        tolerance, 0 if protocol.congestion_control == "cubic" else BBR_GROWTH_PACKETS[protocol.transport]
    )
    checks = [between(protocol.name, "initial window", expected - tolerance, window, most, "segments")]
    flight, which = (first, "first flight") if expected > BURST_PACKETS else (later, "flight after a pause")
    spread = 100 * (flight[-1].at_s - flight[0].at_s) / (CLEAR.min_rtt_ms / 1e3)
    bounds = (100 * PACED_SHARE, 95) if protocol.pacing else (0, 100 * UNPACED_SHARE)
    checks.append(between(protocol.name, f"{which} spread over a round trip", bounds[0], spread, bounds[1], "%"))
    if protocol.restarts_after_idle:
        checks.append(within(protocol.name, "window after a pause", expected, window_later, tolerance, "segments"))
    else:
        most = max(OBJECT_BYTES / segment_bytes * 1.1, expected)
        checks.append(between(protocol.name, "window after a pause", 1.5 * expected, window_later, most, "segments"))
    return checks


def _objects(clear: Connection) -> list[list[Packet]]:
    """The transfers of the page's objects."""
    return [transfer for transfer in clear.transfers if sum(p.payload_bytes for p in transfer) > SMALL_TRANSFER_BYTES]


def _flight(transfer: list[Packet]) -> list[Packet]:
    """What was sent before the first acknowledgement could be back."""
    return [packet for packet in transfer if packet.at_s - transfer[0].at_s < FLIGHT_S]


def _second_half_mbps(lossy: Connection) -> float:
    """The rate of the bulk transfer once its start is over, as it left the server, in Mbit/s."""
    bulk = max(lossy.transfers, key=len)
    half = bulk[len(bulk) // 2 :]
    if len(half) < 2 or half[0].at_s == half[-1].at_s:
        raise EyelevelError("the bulk transfer is missing in the capture of the lossy network")
    return sum(packet.payload_bytes for packet in half) * 8 / (half[-1].at_s - half[0].at_s) / 1e6


def _logged_congestion_control(folder: Path) -> str:
    """Every congestion control that quic_server logged of its connections: one name, if all is right."""
    logs = [read_qlog(path) for path in folder.glob(f"*{SUFFIX}")]
    return " ".join(sorted({str(log.parameters.get("congestion_control")) for log in logs}))


@contextmanager
def _observed(site: Site, network: Network, protocol: Protocol) -> Iterator[Path]:
    """A folder with what the witness of one load left, and the browser's keys."""
    with tempfile.TemporaryDirectory(prefix="validate-") as temporary:
        folder = Path(temporary)
        witness = (sys.executable, "-m", "measure.run.witness", str(folder))
        spec = ReplaySpec(site.folder, network, protocol, seed=SEED, witness=witness, qlog=folder)
        visit = ["env", f"SSLKEYLOGFILE={folder / KEYS}", sys.executable, "-m", "measure.run.visit", "--no-film"]
        visit += ["--site", str(site.folder), "--proto", protocol.name, "--into", str(folder)]
        with (folder / "replay.log").open("w") as log:
            outcome = run(spec, visit, stdin=subprocess.DEVNULL, stdout=log.fileno(), stderr=log.fileno())
        if outcome.status:
            said = [line for file in ("replay.log", LOG) for line in (folder / file).read_text().split("\n") if line]
            raise EyelevelError(f"{protocol.name}: the validation page could not be loaded: {' '.join(said[-1:])}")
        yield folder
