"""Whether background flows behave as configured: each moves through the emulated link with its congestion control.

`python -m measure.validate.network.cross_traffic` is the client of the replay in which they are measured. It starts
them, waits for WATCHED_S once they are steady, and prints when this wait began and ended (s since 1970).
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from base.errors import EyelevelError, reports_errors
from dataset.checks import Check, between, same, unchecked
from dataset.run_files import CROSS_TRAFFIC_SAMPLES
from measure.instruments.cross_traffic import bytes_at, read_series
from measure.validate.contract import Bench, Validation
from measure.validate.network.path import refusal
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from replay import ReplaySpec, run
from replay.cross_traffic import begin_cross_traffic
from tuning import protocols
from tuning.cross_traffic import UNLIMITED_WAIT_MS, Flow, flows_of
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network

# How long (s) background flows are watched once they are steady.
WATCHED_S = 5.0
# The share of a link's rate that is payload, without headers and acknowledgements. LEAST_SHARE: if bulk flows keep the
# link busy, and only its queue drops packets. MOST_SHARE: the share of 1500 bytes that is not IP and TCP headers.
LEAST_SHARE, MOST_SHARE = 0.8, 0.975
# Packets that were under way when the watched time began may come faster than the link sends. They add at most what the
# link sends in this time.
BURST_S = 0.1
RTT_TOLERANCE_MS, RTT_TOLERANCE = 1.0, 0.01


@dataclass(frozen=True)
class FlowMeasurement:
    """The measurement of a flow: its name, its direction, its congestion control as its sender reports it, its rate in
    Mbit/s, and its minimum round-trip time in ms if its sender reports it."""

    name: str
    direction: str
    congestion_control: str
    mbps: float
    min_rtt_ms: float | None


def measure_cross_traffic(network: Network, site: Site) -> list[FlowMeasurement]:
    """Measure the background flows of `network` in a replay of `site`, which nobody loads. Raises EyelevelError."""
    with tempfile.TemporaryDirectory(prefix="cross-traffic-") as temporary, tempfile.TemporaryFile("w+") as output:
        folder = Path(temporary)
        spec = ReplaySpec(
            site.folder,
            network,
            protocols.load()["tcp"],
            qlog=folder,
            cross_traffic_awaits_turn=True,
            cross_traffic_log=folder / CROSS_TRAFFIC_SAMPLES,
        )
        outcome = run(spec, (sys.executable, "-m", "measure.validate.network.cross_traffic"), stdout=output.fileno())
        output.seek(0)
        times = output.read().split()
        if outcome.status or len(times) != 2:
            raise EyelevelError(f"the background flows of {network.name} could not be measured; see above")
        began_s, ended_s = map(float, times)
        series = read_series(folder)
    flows = []
    for number, said in enumerate(outcome.evidence["cross_traffic"]["flows"]):
        came = bytes_at(series[number], ended_s) - bytes_at(series[number], began_s)
        mbps = came * 8 / (ended_s - began_s) / 1e6
        control, rtt_ms = said["congestion_control"], said.get("min_rtt_ms")
        flows.append(FlowMeasurement(said["name"], said["direction"], control, mbps, rtt_ms))
    return flows


def judge_cross_traffic(network: Network, measured: list[FlowMeasurement]) -> Iterator[Check]:
    """Compare `measured` with the background flows that `network` configures."""
    for number, (flow, seen) in enumerate(zip(flows_of(network), measured, strict=True), start=1):
        what = f"cross traffic {number} ({flow.name} {flow.direction})"
        wanted = flow.protocol.congestion_control
        yield same(network.name, f"{what}, congestion control", wanted, seen.congestion_control)
        yield _judge_rate(network, what, flow, seen)
        if seen.min_rtt_ms is None:
            yield unchecked(
                network.name, f"{what}, least round trip", "its sender does not report it", network.min_rtt_ms, "ms"
            )
        else:
            tolerance_ms = max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms) + 2 * network.jitter_ms
            least_ms = network.min_rtt_ms - tolerance_ms
            # Perhaps the queues of both directions are never empty while the flows run. Then even the least round trip
            # includes waits.
            most_ms = network.min_rtt_ms + tolerance_ms + 2 * network.queue_wait_ms(UNLIMITED_WAIT_MS)
            yield between(network.name, f"{what}, least round trip", least_ms, seen.min_rtt_ms, most_ms, "ms")
    for direction in (DOWN, UP):
        total_mbps = sum(seen.mbps for seen in measured if seen.direction == direction)
        mbps, trace = network.rate_of(direction), network.trace_of(direction)
        if mbps is None or trace or not any(seen.direction == direction for seen in measured):
            continue
        is_busy = not (network.cross_traffic_on_off or network.on_off_of(direction) or _is_lossy(network))
        # Acknowledgements that wait for flows in the other direction come in bursts.
        least_mbps = LEAST_SHARE * mbps if is_busy and not network.up_cross_traffic else 0.0
        most_mbps = MOST_SHARE * mbps * (1 + BURST_S / WATCHED_S)
        yield between(network.name, f"cross traffic, all {direction}", least_mbps, total_mbps, most_mbps, "Mbit/s")


def _judge_rate(network: Network, what: str, flow: Flow, seen: FlowMeasurement) -> Check:
    """Whether a flow moved; a flow that is off at times may have been off."""
    if flow.on_off and not seen.mbps:
        return unchecked(network.name, f"{what}, rate", "it was off at times")
    passed = seen.mbps > 0
    return Check(network.name, f"{what}, rate", "more than 0 Mbit/s", f"{seen.mbps:.3g} Mbit/s", "", passed=passed)


def _is_lossy(network: Network) -> bool:
    return bool(network.loss_of(UP) or network.loss_of(DOWN))


def _applies(network: Network, bench: Bench) -> bool:
    return network.has_cross_traffic and refusal(network, bench) is None


VALIDATION = Validation(
    "cross traffic",
    "the background flows of ",
    20,
    measure=lambda network, bench: measure_cross_traffic(network, bench.sites[WINDOW_PAGE]),
    judge=judge_cross_traffic,
    document=lambda network, seen: {"cross_traffic": [asdict(flow) for flow in seen]},
    applies=_applies,
)


@reports_errors
def main() -> None:
    """Start the background flows, and wait for a while once they are steady."""
    begin_cross_traffic()
    print(time.time(), flush=True)
    time.sleep(WATCHED_S)
    print(time.time(), flush=True)


if __name__ == "__main__":
    main()
