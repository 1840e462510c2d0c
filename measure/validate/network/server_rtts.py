"""Whether each server of a site is at the right distance beyond the access network."""

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from dataset.checks import Check, same, within
from measure.validate.contract import Validation
from measure.validate.network.echoes import ECHOES
from record.site import Site
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

PROBE = (sys.executable, "-m", "measure.validate.network.echoes")
# The network has only a delay. It needs one: the emulator avoids late wake-ups by waking early, which it cannot do
# without a delay (shells/README.md).
NETWORK = Network("a delay alone", min_rtt_ms=20.0)
# The tolerance of the shortest round trip. An emulator never sends early, so a longer time is the machine's fault, not
# the setting's.
TOLERANCE_MS = 0.2
# The key of the servers in the document of a validation.
SERVERS = "servers"


@dataclass(frozen=True)
class DelayedSite:
    """A site whose servers are beyond the network: `extra_rtts_ms` is server address → extra round-trip time."""

    name: str
    folder: Path
    extra_rtts_ms: Mapping[str, float]


def measure_server_rtts(delayed: DelayedSite, spec: ReplaySpec | None = None) -> dict[str, list[float]]:
    """Server address → round-trip times (ms) of echoes, in a replay of the site, or of `spec` if given.

    Raises EyelevelError.
    """
    protocol = protocols.load()["tcp"]
    spec = spec or ReplaySpec(delayed.folder, NETWORK, protocol, extra_rtts_ms=delayed.extra_rtts_ms)
    addresses = list(Site.load(delayed.folder).servers)
    with tempfile.TemporaryFile("w+") as output:
        outcome = run(spec, [*PROBE, *addresses], stdout=output.fileno())
        output.seek(0)
        answer = output.read()
    if outcome.status:
        raise EyelevelError(f"the probe of {delayed.name} failed (status {outcome.status}); see above")
    times_ms: dict[str, list[float]] = json.loads(answer)
    return times_ms


def judge_server_rtts(delayed: DelayedSite, measured: Mapping[str, list[float]]) -> list[Check]:
    """Compare the `measured` echoes with the configured distance of each server."""
    checks = []
    for address, times_ms in measured.items():
        name, extra_ms = f"extra round-trip time of {address}", delayed.extra_rtts_ms.get(address, 0.0)
        if not times_ms:
            checks.append(same(delayed.name, f"answers of {address}", ECHOES, 0))
            continue
        beyond_ms = min(times_ms) - NETWORK.min_rtt_ms
        checks.append(within(delayed.name, name, extra_ms, beyond_ms, TOLERANCE_MS, "ms"))
    return checks


def seen_of(measured: Mapping[str, list[float]]) -> dict[str, dict[str, float | None]]:
    """Server address → the numbers that a validation stores: its shortest and its median round trip."""
    return {
        address: {
            "rtt_min_ms": min(times_ms, default=None),
            "rtt_median_ms": statistics.median(times_ms) if times_ms else None,
        }
        for address, times_ms in measured.items()
    }


VALIDATION = Validation(
    "extra round-trip times",
    "how far the servers are of ",
    4,
    measure=lambda site, bench: measure_server_rtts(site),
    judge=judge_server_rtts,
    document=lambda site, seen: {SERVERS: seen_of(seen)},
)
