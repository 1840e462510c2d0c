"""Whether a network's path is as configured: round-trip time, rates, loss, queues, names (paper, Table 2)."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from base.errors import EyelevelError
from base.structure import from_json, to_json
from dataset.checks import Check, unchecked, within
from measure.probe.measurement import NetworkMeasurement
from measure.validate.contract import Bench, Validation
from measure.validate.network import round_trip
from measure.validate.network.contract import Judge, OneWay, Whole
from measure.validate.network.delay import DELAYS, ORDER, OVER_TIME
from measure.validate.network.loss import DROPS, LOSSES
from measure.validate.network.on_off import ON_OFF
from measure.validate.network.queue import QUEUES
from measure.validate.network.rate import RATES
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from replay import ReplaySpec, run
from replay.shells.registry import shells_named
from tuning import protocols
from tuning.defaults import DEFAULT_SHELLS
from tuning.impairments.contract import DOWN, UP
from tuning.networks import IMPAIRMENTS, Network

PROBE = (sys.executable, "-m", "measure.probe.emulated")

# This many lost packets make the loss rate known to 12 % of itself; a quick validation counts fewer.
LOST_PACKETS, LOST_PACKETS_QUICK = 1089, 100

# The judges of a network, then those of each direction, in the order of their checks.
OF_WHOLE: Sequence[Judge[Whole]] = round_trip.JUDGES
OF_DIRECTION: Sequence[Judge[OneWay]] = (DELAYS, ORDER, ON_OFF, OVER_TIME, *RATES, *QUEUES, *LOSSES, DROPS)


def measure_network(
    network: Network, site: Site, lost_packets: int = LOST_PACKETS, shells: str = DEFAULT_SHELLS
) -> NetworkMeasurement:
    """Measure `network`, emulated by `shells`, between a client and the servers of `site`. Losses are counted until
    `lost_packets` losses are expected.

    Raises EyelevelError.
    """
    host, (address, *_) = next(iter(site.addresses.items()))
    protocol = protocols.load()["tcp"]
    spec = ReplaySpec(site.folder, network, protocol, monitor=(*PROBE, "peer", address), shells=shells)
    with tempfile.TemporaryFile("w+") as output:
        in_opportunities = str(int(shells_named(shells).in_opportunities))
        command = [*PROBE, "client", to_json(network), host, str(lost_packets), in_opportunities]
        outcome = run(spec, command, stdout=output.fileno())
        output.seek(0)
        answer = output.read()
    if outcome.status:
        raise EyelevelError(f"the probe of {network.name} failed (status {outcome.status}); see above")
    return from_json(answer, NetworkMeasurement, f"the answer of the probe of {network.name}")


def judge_network(network: Network, measured: NetworkMeasurement) -> list[Check]:
    """Compare `measured` with the configuration of `network`."""
    whole = Whole(network, measured)
    both = ((UP, measured.up), (DOWN, measured.down))
    ways = [OneWay(network, direction, seen, measured.in_opportunities) for direction, seen in both]
    checks = [check for one in OF_WHOLE if one.applies(whole) for check in one.judge(whole)]
    checks += [check for way in ways for one in OF_DIRECTION if one.applies(way) for check in one.judge(way)]
    hidden = {name: why for one in IMPAIRMENTS for name, why in one.hides(network).items()}
    checks = [_unless_hidden(check, hidden) for check in checks]
    judgements = (judgement for one in IMPAIRMENTS for judgement in one.judge(network, measured))
    return [*checks, *(within(network.name, **vars(judgement)) for judgement in judgements)]


def _unless_hidden(check: Check, hidden: dict[str, str]) -> Check:
    """`check`; but unchecked, with the reason, if an impairment hides the property."""
    for name, why in hidden.items():
        if check.name.startswith(name):
            return replace(unchecked(check.subject, check.name, why), configured=check.configured)
    return check


def checks_of_half(network: Network, checks: list[Check]) -> list[Check]:
    """`checks` with `network` as their subject, including those of its halves, since a network's checks are looked up
    by its name."""
    return [
        check
        if check.subject == network.name
        else replace(check, subject=network.name, name=f"{_half(network, check.subject)}, {check.name}")
        for check in checks
    ]


def _half(network: Network, name: str) -> str:
    """The name of a half without that of its network: "near" or "far"."""
    return name.removeprefix(f"{network.name}: ")


def refusal(network: Network, bench: Bench) -> str | None:
    """Why the shells of `bench` cannot emulate `network`; None if they can."""
    return shells_named(bench.shells).refusal(network)


def _measure(network: Network, bench: Bench) -> list[NetworkMeasurement]:
    lost_packets = LOST_PACKETS_QUICK if bench.quick else LOST_PACKETS
    site = bench.sites[WINDOW_PAGE]
    return [measure_network(half.alone, site, lost_packets, bench.shells) for half in network.halves]


def _judge(network: Network, seen: Sequence[NetworkMeasurement]) -> Iterator[Check]:
    for half, measured in zip(network.halves, seen, strict=True):
        yield from checks_of_half(network, judge_network(half, measured))


def _document(network: Network, seen: Sequence[NetworkMeasurement]) -> dict[str, Any]:
    if not network.hop:
        return asdict(seen[0])
    return {_half(network, half.name): asdict(one) for half, one in zip(network.halves, seen, strict=True)}


VALIDATION = Validation("measurement", "", 20, measure=_measure, judge=_judge, document=_document, refusal=refusal)
