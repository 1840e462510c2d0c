"""Whether a network is as configured: round-trip time, rates, loss, queues, names (paper, Table 2)."""

import math
import sys
import tempfile

from base.errors import EyelevelError
from base.structure import from_json, to_json
from measure.validate.checks import Check, between, unchecked, within
from measure.validate.network_probe import OVERLOAD, NetworkMeasurement, probe_bytes
from record.site import Site
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

PROBE = (sys.executable, "-m", "measure.validate.network_probe")

# A program waits for the processor; of a long round trip, 1 %.
RTT_TOLERANCE_MS, RTT_TOLERANCE = 1.0, 0.01
RATE_TOLERANCE = 0.02
# Of all packets together: a sender that a busy machine held up for longer than the queue lasted sent fewer.
MEAN_RATE_TOLERANCE = 0.05
TRACE_TOLERANCE = 0.05  # it is known to some ms only which part of it was played
# A binomial count of n lost packets is within this many times √n of what is expected, but once in a thousand.
LOSS_DEVIATIONS = 3.3
# So many make that 10 % of the loss; a quick look takes fewer.
LOST_PACKETS, LOST_PACKETS_QUICK = 1089, 100
QUEUE_TOLERANCE = 0.02
RESOLUTION_TOLERANCE_MS = 3.0


def measure_network(network: Network, site: Site, lost_packets: int = LOST_PACKETS) -> NetworkMeasurement:
    """Measure `network` between a client and the servers of `site`; of a loss, until `lost_packets` should be lost.

    Raises EyelevelError.
    """
    host = next(iter(site.addresses))
    protocol = protocols.load()["tcp"]
    spec = ReplaySpec(site.folder, network, protocol, monitor=(*PROBE, "peer"))
    with tempfile.TemporaryFile("w+") as output:
        command = [*PROBE, "client", to_json(network), host, str(lost_packets)]
        outcome = run(spec, command, stdout=output.fileno())
        output.seek(0)
        answer = output.read()
    if outcome.status:
        raise EyelevelError(f"the probe of {network.name} failed (status {outcome.status}); see above")
    return from_json(answer, NetworkMeasurement, f"the answer of the probe of {network.name}")


def judge_network(network: Network, measured: NetworkMeasurement) -> list[Check]:
    """`measured` against what `network` should be."""
    rtt_tolerance_ms = max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms) + network.jitter_ms
    least_ms = network.min_rtt_ms
    if network.up_trace or network.down_trace:
        # A packet waits for the next line of the trace, even where nothing else does.
        most_ms = least_ms + (network.queue_ms or 0)
        checks = [between(network.name, "minimum RTT", least_ms - rtt_tolerance_ms, measured.rtt_min_ms, most_ms, "ms")]
    else:
        checks = [
            within(network.name, "minimum RTT", least_ms, measured.rtt_min_ms, rtt_tolerance_ms, "ms"),
            within(network.name, "median RTT", least_ms, measured.rtt_median_ms, 3 * rtt_tolerance_ms, "ms"),
        ]
    checks += [within(network.name, "name resolution", 0, measured.resolution_ms, RESOLUTION_TOLERANCE_MS, "ms")]
    for direction, way, mbps, queue_bytes, trace, loss in (
        ("uplink", measured.up, network.up_mbps, network.up_queue_bytes, network.up_trace, network.up_loss),
        ("downlink", measured.down, network.down_mbps, network.down_queue_bytes, network.down_trace, network.down_loss),
    ):
        configured_mbps = way.trace_mbps if trace else mbps
        if configured_mbps is not None and way.mbps is not None:
            tolerance = configured_mbps * (TRACE_TOLERANCE if trace else RATE_TOLERANCE)
            checks.append(within(network.name, f"{direction} rate", configured_mbps, way.mbps, tolerance, "Mbit/s"))
            if way.mean_mbps is not None:
                tolerance = configured_mbps * MEAN_RATE_TOLERANCE
                name = f"{direction} mean rate"
                checks.append(within(network.name, name, configured_mbps, way.mean_mbps, tolerance, "Mbit/s"))
        if queue_bytes is not None and way.queue_bytes is not None:
            # Nothing can wait but whole packets, and one is on the wire meanwhile.
            tolerance = QUEUE_TOLERANCE * queue_bytes + probe_bytes(queue_bytes, (mbps or 0) * OVERLOAD)
            checks.append(within(network.name, f"{direction} queue", queue_bytes, way.queue_bytes, tolerance, "bytes"))
        elif queue_bytes is not None and trace:
            why = "what waits in it moves with the trace"
            checks.append(unchecked(network.name, f"{direction} queue", why, queue_bytes, "bytes"))
        tolerance = LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) / way.sent)
        name = f"{direction} loss of {way.sent} packets"
        checks.append(within(network.name, name, 100 * loss, 100 * way.lost / way.sent, 100 * tolerance, "%"))
    return checks
