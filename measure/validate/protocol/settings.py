"""Whether a protocol behaves as its setting says (paper, Table 1), by packets and the kernel's account."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from browsers.browsertime.configuration import STATIC_QUIET_MS
from dataset.checks import Check, between, same, unchecked, within
from dataset.observations import (
    BURST_PACKETS,
    CLEAR_RTT_MS,
    FLIGHT_TOLERANCE_PACKETS,
    PACED_SHARE,
    PICTURES,
    REQUEST_TOLERANCE_RTT,
    UNPACED_SHARE,
)
from measure.campaign.method import Method
from measure.campaign.single_load import single_load
from measure.captures.reading import (
    CapturedConnection,
    CapturedPacket,
    early_data,
    largest,
    read_connections,
    request_after_s,
)
from measure.captures.streams import STREAM_FIELDS, longest_record_bytes, requests
from measure.run.gates import LOAD_FAILED, REPLAY, Gate
from measure.run.load import Observers
from measure.run.monitor import CAPTURE
from measure.run.setting import Loading, Setting
from measure.validate.contract import Validation
from measure.validate.protocol.congestion_controls import BEHAVIOURS, not_modelled
from measure.validate.site import BULK_PAGE, OBJECT_BYTES, SERVERS, WINDOW_PAGE
from record.site import Site
from servers.registry import server_of
from tuning.networks import Network
from tuning.protocols import LARGEST_MSS_BYTES, Protocol

MONITOR = (sys.executable, "-m", "measure.run.monitor")

# The network on which the first flight is measured. Its uplink is so slow that every server gets a ClientHello of two
# packets whole (`servers.caddy`).
CLEAR = Network("clear", min_rtt_ms=CLEAR_RTT_MS, up_mbps=10, down_mbps=100, queue_ms=200)
# The network on which the answer to losses is measured: Cubic fills a fraction of it (1.2 / √p packets per round trip,
# Mathis et al., CCR 1997), BBR nearly all.
LOSSY = Network("lossy", min_rtt_ms=20, up_mbps=10, down_mbps=20, queue_ms=100, loss=0.08)
# The seed of losses; a method adds the number of the attempt.
SEED = 0
LOADING = Loading(repeatable=False, filmed=False, limit_s=300.0)
# The bulk page requests nothing after its load event, so a short quiet time suffices. The other page requests an object
# after a pause.
BULK_LOADING = replace(LOADING, quiet_ms=STATIC_QUIET_MS)

# The file with the keys of the browser's TLS sessions, in NSS's key log format.
KEYS = "keys.log"
# Connection options that the browser sends by itself: HTTP/3's ORIGIN frame, which does not affect the server's
# settings.
BROWSERS_TAGS = ("ORIG",)
# Smaller transfers are the page and handshakes, not objects.
SMALL_TRANSFER_BYTES = OBJECT_BYTES // 2

# A flight is what is sent before the first acknowledgement can come back.
FLIGHT_S = 0.95 * CLEAR_RTT_MS / 1e3
# Chromium sends at most this many requests of low priority at once to a server that it does not know to support
# priorities.
HELD_BACK_MOST = 6
# HTTP version → the parameters on which all servers should agree with the browser.
AGREED = {
    "h2": {"TLS version": "TLS 1.3", "cipher": "AES-128-GCM", "application protocol": "h2"},
    "h3": {"TLS version": "TLS 1.3", "cipher": "AES-128-GCM", "application protocol": "h3", "QUIC version": "QUIC v1"},
}
CERTIFICATES = ["ECDSA secp256r1 by CN=Eyelevel replay testbed"]


@dataclass(frozen=True)
class ProtocolObservation:
    """Observations of a protocol: one load on the clear network and one on the lossy network, captured at the server.

    `early_data`: server → whether it accepted any. `congestion_control`: the one that the server used, by its own
    account (`servers.contract`), if it gives one. `pictures_at_once`: how many of the page's pictures the browser
    requested at once.
    """

    clear: CapturedConnection
    lossy: CapturedConnection
    certificates: list[str]
    request_after_s: float
    early_data: dict[str, bool]
    congestion_control: str | None
    pictures_at_once: int

    def document(self) -> dict[str, Any]:
        """The observations of interest to readers, as JSON."""
        clear = self.clear
        return {
            "handshake": clear.handshake,
            "certificates": self.certificates,
            "connection_options": clear.connection_options,
            "transport_parameters": clear.transport_parameters,
            "congestion_control": self.congestion_control,
            "request_after_s": self.request_after_s,
            "early_data": self.early_data,
            "pictures_at_once": self.pictures_at_once,
            "flights": [
                [[round(packet.at_s - transfer[0].at_s, 6), packet.payload_bytes] for packet in _flight(transfer)]
                for transfer in _objects(clear)
            ],
            "lossy_mbps": _second_half_mbps(self.lossy),
        }


class ObservationMethod(Method):
    """Loads a page, captured at the servers with the browser's keys; a load counts if nothing in it failed."""

    def observers(self, setting: Setting, folder: Path) -> Observers:
        return Observers((*MONITOR, str(folder)), ("env", f"SSLKEYLOGFILE={folder / KEYS}"), qlog=folder)

    def gates(self) -> Sequence[Gate]:
        return (REPLAY, LOAD_FAILED)


def observe_protocol(protocol: Protocol, sites: Mapping[str, Site]) -> ProtocolObservation:
    """Load the validation pages over `protocol` in the browser. Raises EyelevelError."""
    version = protocol.http_version
    with single_load(Setting(sites[WINDOW_PAGE], CLEAR, protocol, LOADING, SEED), ObservationMethod()) as folder:
        connections = read_connections(folder / CAPTURE, folder / KEYS, version, STREAM_FIELDS)
        controls = server_of(protocol).congestion_controls_taken(folder)
    with single_load(Setting(sites[BULK_PAGE], LOSSY, protocol, BULK_LOADING, SEED), ObservationMethod()) as folder:
        lossy = largest(read_connections(folder / CAPTURE, folder / KEYS, version))
    return ProtocolObservation(
        clear=largest(connections),
        lossy=lossy,
        # A returning browser does not receive the chain again.
        certificates=next((chain for connection in connections if (chain := connection.certificates)), []),
        request_after_s=request_after_s(connections),
        early_data=early_data(connections),
        congestion_control=None if controls is None else " ".join(sorted(controls)),  # a single name if all is right
        pictures_at_once=pictures_at_once(connections),
    )


def pictures_at_once(connections: Iterable[CapturedConnection]) -> int:
    """How many of the pictures, which the page requests at once, were requested before any response could have arrived.

    Raises EyelevelError when not all were requested.
    """
    # Use the connection with the most requests; with a returning browser, its last visit.
    arrivals = sorted(list(max(map(requests, connections), key=len).values())[-PICTURES:])
    if len(arrivals) < PICTURES:
        raise EyelevelError(f"of {PICTURES} pictures {len(arrivals)} were asked for, as far as the capture shows")
    return sum(at_s - arrivals[0] < FLIGHT_S for at_s in arrivals)


def judge_protocol(protocol: Protocol, seen: ProtocolObservation) -> list[Check]:
    """Compare what was `seen` with the settings of `protocol`."""
    name, control = protocol.name, protocol.congestion_control
    agreed = {**AGREED[protocol.http_version], "key exchange group": protocol.tls_group}
    checks = [same(name, what, value, seen.clear.handshake.get(what)) for what, value in agreed.items()]
    checks.append(same(name, "certificate chain", ", ".join(CERTIFICATES), ", ".join(seen.certificates)))
    if protocol.fast_open:
        accepted_bytes = seen.clear.accepted_in_syn_bytes
        checks.append(between(name, "data in the SYN", 1, accepted_bytes, protocol.segment_bytes, "bytes"))
    checks += _flight_checks(protocol, seen.clear)
    if protocol.in_kernel:
        mss_bytes = protocol.mss_bytes or LARGEST_MSS_BYTES
        checks.append(within(name, "maximum segment size", mss_bytes, seen.clear.announced_mss_bytes, 0, "bytes"))
    if protocol.tls_record_bytes:
        record_bytes = longest_record_bytes(seen.clear)
        checks.append(within(name, "longest TLS record", protocol.tls_record_bytes, record_bytes, 0, "bytes"))
    if options := server_of(protocol).connection_options(protocol):
        arrived = " ".join(tag for tag in seen.clear.connection_options if tag not in BROWSERS_TAGS)
        checks.append(same(name, "connection options that arrived", " ".join(options), arrived))
    if seen.congestion_control is None:
        why = f"{protocol.server} gives no account of it"
        checks.append(unchecked(name, "congestion control of the server", why))
    else:
        checks.append(same(name, "congestion control of the server", control, seen.congestion_control))
    checks.append(_share_check(protocol, seen.lossy))
    # With HTTP/2, once there is a connection, as here, the browser knows that the server supports priorities.
    held_back = not (protocol.browser_knows_servers or protocol.in_kernel)
    bounds = (1, HELD_BACK_MOST) if held_back else (PICTURES, PICTURES)
    checks.append(between(name, "pictures asked for at once", bounds[0], seen.pictures_at_once, bounds[1], "pictures"))
    if protocol.early_data:
        without = sorted(server for server, took in seen.early_data.items() if not took)
        measured = f"all {len(seen.early_data)}" if not without else f"all but {', '.join(without)}"
        checks.append(same(name, "servers that took early data", f"all {SERVERS}", measured))
    first_request_rtt = seen.request_after_s / CLEAR_RTT_MS * 1e3
    least = protocol.round_trips_before_request
    most = least + REQUEST_TOLERANCE_RTT
    checks.append(between(name, "round trips before the first request", least - 0.01, first_request_rtt, most, "RTT"))
    return checks


def _share_check(protocol: Protocol, lossy: CapturedConnection) -> Check:
    """How the congestion control answers losses."""
    what = f"share of a link with {LOSSY.loss:.0%} loss"
    share = 100 * _second_half_mbps(lossy) / (LOSSY.down_mbps or 1)
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    if behaviour is None:
        return unchecked(protocol.name, what, not_modelled(protocol.congestion_control, f"{share:.0f}%"))
    least, most = behaviour.lossy_share
    return between(protocol.name, what, 100 * least, share, 100 * most, "%")


def _flight_checks(protocol: Protocol, clear: CapturedConnection) -> list[Check]:
    """The first flight of an object, and the flight of an object that is requested after a pause."""
    name, transfers = protocol.name, _objects(clear)
    if len(transfers) != 2:
        raise EyelevelError(f"{name}: expected the transfers of 2 objects in the capture, found {len(transfers)}")
    first, later = map(_flight, transfers)
    segment_bytes = server_of(protocol).window_segment_bytes(protocol)
    window = sum(packet.payload_bytes for packet in first) / segment_bytes
    window_later = sum(packet.payload_bytes for packet in later) / segment_bytes
    expected = protocol.initial_window_packets
    tolerance = FLIGHT_TOLERANCE_PACKETS
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    growth_packets = behaviour.growth_packets.get(protocol.http_version, 0.0) if behaviour else 0.0
    most = expected + max(tolerance, growth_packets)
    checks = [between(name, "initial window", expected - tolerance, window, most, "segments")]
    flight, which = (first, "first flight") if expected > BURST_PACKETS else (later, "flight after a pause")
    spread = 100 * (flight[-1].at_s - flight[0].at_s) / (CLEAR_RTT_MS / 1e3)
    bounds = (100 * PACED_SHARE, 95) if protocol.pacing else (0, 100 * UNPACED_SHARE)
    checks.append(between(name, f"{which} spread over a round trip", bounds[0], spread, bounds[1], "%"))
    if protocol.restarts_after_idle:
        checks.append(within(name, "window after a pause", expected, window_later, tolerance, "segments"))
    else:
        most = max(OBJECT_BYTES / segment_bytes * 1.1, expected)
        checks.append(between(name, "window after a pause", 1.5 * expected, window_later, most, "segments"))
    return checks


def _objects(clear: CapturedConnection) -> list[list[CapturedPacket]]:
    """The transfers of the page's objects."""
    return [transfer for transfer in clear.transfers if sum(p.payload_bytes for p in transfer) > SMALL_TRANSFER_BYTES]


def _flight(transfer: list[CapturedPacket]) -> list[CapturedPacket]:
    """The packets that were sent before the first acknowledgement could come back."""
    return [packet for packet in transfer if packet.at_s - transfer[0].at_s < FLIGHT_S]


def _second_half_mbps(lossy: CapturedConnection) -> float:
    """The rate of the bulk transfer after its start phase, as it left the server, in Mbit/s."""
    bulk = max(lossy.transfers, key=len)
    half = bulk[len(bulk) // 2 :]
    if len(half) < 2 or half[0].at_s == half[-1].at_s:
        raise EyelevelError("the bulk transfer is missing in the capture of the lossy network")
    return sum(packet.payload_bytes for packet in half) * 8 / (half[-1].at_s - half[0].at_s) / 1e6


VALIDATION = Validation(
    "settings",
    "",
    20,
    measure=lambda protocol, bench: observe_protocol(protocol, bench.sites),
    judge=judge_protocol,
    document=lambda protocol, seen: seen.document(),
)
