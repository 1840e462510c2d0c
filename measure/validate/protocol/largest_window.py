"""Whether a protocol's congestion window stops growing at its configured limit. On a network that has a delay but no
rate limit, a bulk flow carries one window per round trip."""

import math
import tempfile
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool
from dataset.checks import Check, within
from dataset.run_files import CROSS_TRAFFIC_SAMPLES
from measure.instruments.cross_traffic import bytes_at, read_series
from measure.validate.contract import Bench, Validation
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from replay import ReplaySpec, run
from servers.registry import require_served, server_of
from tuning import protocols
from tuning.cross_traffic import Flow
from tuning.networks import Network
from tuning.protocols import Protocol

NAME = "largest window"
# The round trip is chosen so that the window yields this rate; programs can send and receive faster.
RATE_MBPS = 10.0
# The window is measured for WATCHED_S, after the round trips in which slow start doubles it to the limit, and
# FURTHER_ROUND_TRIPS more.
FURTHER_ROUND_TRIPS, WATCHED_S = 4, 3.0
# HTTP's bytes are fewer than those that QUIC's window counts, and a machine is sometimes late.
TOLERANCE = 0.1


def measure_largest_window(protocol: Protocol, site: Site) -> float:
    """The largest window, in packets, of `protocol`, which uses QUIC and has a setting for it; nobody loads `site`
    meanwhile. Raises EyelevelError."""
    packets = protocol.max_window_packets
    assert packets
    segment_bytes = server_of(protocol).window_segment_bytes(protocol)
    network = Network("delay", min_rtt_ms=round(packets * segment_bytes * 8 / RATE_MBPS / 1e3))
    (served,) = require_served([protocol])
    round_trips = math.log2(packets / protocol.initial_window_packets) + FURTHER_ROUND_TRIPS
    seconds = round_trips * network.min_rtt_ms / 1e3 + WATCHED_S
    with tempfile.TemporaryDirectory(prefix="window-") as temporary:
        samples = Path(temporary) / CROSS_TRAFFIC_SAMPLES
        flows = (Flow(protocol.name, served),)
        spec = ReplaySpec(site.folder, network, protocols.load()["tcp"], flows=flows, cross_traffic_log=samples)
        run(spec, ["sleep", f"{seconds:.3f}"])
        series = read_series(Path(temporary))[0]
    ended_s = series[0][0] + seconds - 0.2
    came = bytes_at(series, ended_s) - bytes_at(series, ended_s - WATCHED_S)
    return came / WATCHED_S * network.min_rtt_ms / 1e3 / segment_bytes


def judge_largest_window(protocol: Protocol, seen_packets: float) -> list[Check]:
    """Compare `seen_packets` with the setting of `protocol`."""
    packets = protocol.max_window_packets
    assert packets
    return [within(protocol.name, NAME, packets, seen_packets, TOLERANCE * packets, "packets")]


def _refusal(protocol: Protocol, bench: Bench) -> str | None:
    try:
        tool("quinn_client")
    except EyelevelError as error:
        return str(error)
    return None


VALIDATION = Validation(
    NAME,
    "the largest window of ",
    8,
    measure=lambda protocol, bench: measure_largest_window(protocol, bench.sites[WINDOW_PAGE]),
    judge=judge_largest_window,
    applies=lambda protocol, bench: protocol.max_window_packets is not None,
    refusal=_refusal,
)
