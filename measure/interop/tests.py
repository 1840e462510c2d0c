"""The tests: the page and the network of each, and its own requirements.

In every load, each object must have arrived with its status and all its bytes, which the page itself checks by digests
(`measure.interop.site`). Each request must have used the version of HTTP under test, and none may have failed or gone
elsewhere (`measure.run.gates`). All must have been answered from the recording.
"""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from measure.captures.reading import HTTPS_PORT, CapturedConnection, early_data, largest, read_connections, read_fields
from measure.captures.streams import STREAM_FIELDS, carried, requests
from measure.interop.site import Page
from measure.run.evidence import Evidence
from measure.run.monitor import CAPTURE
from measure.validate.protocol.settings import KEYS
from tuning.networks import Network
from tuning.protocols import TRANSPORTS

VERSIONS = tuple(transport.http_version for transport in TRANSPORTS.values())

# Uplinks have at most 10 Mbit/s: if a ClientHello has two packets, quic-go 0.29 drops the second when it arrives right
# after the first. The round trip of "far" is so long that even a slow processor sends more requests than servers allow
# at once before the first response comes.
FAR = Network("far", min_rtt_ms=300, up_mbps=10, down_mbps=100, queue_ms=200)
NEAR = Network("near", min_rtt_ms=20, up_mbps=10, down_mbps=50, queue_ms=200)
# These packets are lost: the first in each direction, with which a handshake begins; some consecutive ones in the
# middle; and a random share of all others.
LOST_UP, LOST_DOWN = (1,), (1, 400, 401, 402)
LOSSY = Network(
    "lossy",
    min_rtt_ms=20,
    up_mbps=10,
    down_mbps=20,
    queue_ms=200,
    loss=0.02,
    drop_up_packets=LOST_UP,
    drop_down_packets=LOST_DOWN,
)

PAGE = Page("page", (0, 1, 1_000, 16_384, 65_537, 300_000) * 2, servers=3)
LARGE = Page("large", (12_582_912,))
# Every server should allow 100 streams at once (RFC 9113 section 6.5.2, RFC 9114 section 6.1). After the page's own
# stream has ended, a server may still count it until it permits another one (as quinn does), which leaves 99. The page
# requests more than any of our servers allows. A browser's congestion window lets out 60 to 90 requests per round trip
# (Firefox). No answer may end before all requests have arrived, so each answer is longer than what a server sends in
# its first round trip.
LEAST_STREAMS, STREAMS = 99, 150
MANY = Page("many", (80_000,) * STREAMS, at_once=True)
SEVERAL = Page("several", (250_000,) * 8)
PAGES = (PAGE, LARGE, MANY, SEVERAL)


@dataclass(frozen=True)
class Observation:
    """One load over `http_version`: its folder, and its evidence."""

    folder: Path
    http_version: str
    evidence: Evidence

    @cached_property
    def connections(self) -> list[CapturedConnection]:
        """The connections of this version in the capture at the servers. Raises EyelevelError."""
        return read_connections(self.folder / CAPTURE, self.folder / KEYS, self.http_version, STREAM_FIELDS)


@dataclass(frozen=True)
class Test:
    """One test; `asks` is a question for readers.

    `page` is loaded on `network`, over each of `versions`; with `early_data`, by a returning browser. `fault` returns
    which requirement of this test failed, or None; it raises EyelevelError when that cannot be determined. Some objects
    are requested after the page's load event; `quiet_ms` must be longer than any of them takes.
    """

    name: str
    asks: str
    page: Page
    network: Network
    fault: Callable[[Observation], str | None]
    versions: tuple[str, ...] = VERSIONS
    early_data: bool = False
    quiet_ms: int = 3000


def no_fault(observation: Observation) -> str | None:
    """No requirements besides those of every load."""
    return None


def transport_fault(observation: Observation) -> str | None:
    """Whether packets went to or from servers over the other transport."""
    other = "tcp" if observation.http_version == "h3" else "udp"
    packets = _packets(observation, f"{other}.port == {HTTPS_PORT}")
    return f"{packets} packets over {other.upper()}" if packets else None


def early_data_fault(observation: Observation) -> str | None:
    """Whether a server refused early data on its last connection, by the capture."""
    taken = early_data(observation.connections)
    without = sorted(server for server, took in taken.items() if not took)
    if len(taken) < PAGE.servers:
        return f"{len(taken)} of {PAGE.servers} servers received requests, according to the capture"
    return f"early data was not accepted by {', '.join(without)}" if without else None


def streams_fault(observation: Observation) -> str | None:
    """Whether the requests did not share one connection, or too few were open at once."""
    connection = largest(observation.connections)
    began = requests(connection)
    if len(began) < STREAMS:
        return f"{len(began)} of {STREAMS} requests went over one connection"
    most = most_at_once(began, {part.stream: part.at_s for part in carried(connection)})
    return f"{most} streams were open at once, not {LEAST_STREAMS}" if most < LEAST_STREAMS else None


def most_at_once(began: Mapping[int, float], ended: Mapping[int, float]) -> int:
    """The largest number of streams that were open at once at the server.

    There, a stream is open from the arrival of its request (`began`, s) to the departure of the last byte of its
    response (`ended`, s). At the browser, half a round trip away, it is open for longer.
    """
    changes = [(at_s, 1) for at_s in began.values()] + [(ended[stream], -1) for stream in began if stream in ended]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


def loss_fault(observation: Observation) -> str | None:
    """Whether the servers sent so few packets that not all of the packets in LOST_DOWN were among them."""
    sent = sum(packet.from_server for connection in observation.connections for packet in connection.packets)
    return f"the servers sent {sent} packets, so that none was lost on purpose" if sent < max(LOST_DOWN) else None


def ipv6_fault(observation: Observation) -> str | None:
    """Whether anything was sent over IPv6, or requested from an IPv6 address."""
    if packets := _packets(observation, "ipv6 && (tcp || udp)"):
        return f"{packets} packets over IPv6"
    addresses = {request.address for request in observation.evidence.requests if request.address}
    if others := sorted(address for address in addresses if ipaddress.ip_address(address).version != 4):
        return f"{others[0]} was asked"
    return None if addresses else "the requested addresses are unknown"


def _packets(observation: Observation, condition: str) -> int:
    """How many packets in the capture match this tshark filter. Raises EyelevelError."""
    folder = observation.folder
    return len(read_fields(folder / CAPTURE, folder / KEYS, ("frame.number",), "-Y", condition))


TESTS = (
    Test(
        "h2",
        "does a page of three servers arrive over HTTP/2, and nothing over UDP?",
        PAGE,
        NEAR,
        transport_fault,
        versions=("h2",),
    ),
    Test("h3", "does it arrive over HTTP/3, and nothing over TCP?", PAGE, NEAR, transport_fault, versions=("h3",)),
    Test(
        "0-RTT",
        "does a browser that returns send early data to each server, and does each take it?",
        PAGE,
        FAR,
        early_data_fault,
        early_data=True,
    ),
    Test("large response", "does a response of 12 MiB arrive?", LARGE, NEAR, no_fault, quiet_ms=8000),
    Test(
        "many streams",
        f"do {STREAMS} requests at once go over one connection, at least {LEAST_STREAMS} of them open at once?",
        MANY,
        FAR,
        streams_fault,
        quiet_ms=8000,
    ),
    Test(
        "loss",
        f"does everything arrive when the first packet of either side is lost, then packets "
        f"{', '.join(map(str, LOST_DOWN[1:]))} to the browser, and {LOSSY.loss:.0%} of all?",
        SEVERAL,
        LOSSY,
        loss_fault,
        quiet_ms=6000,
    ),
    Test("IPv4 only", "where there are IPv4 addresses alone, is nothing sent over IPv6?", PAGE, NEAR, ipv6_fault),
)
