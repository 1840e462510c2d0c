"""Validating networks and protocols, one after another."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from base.errors import EyelevelError
from base.progress import each_shown
from dataset.checks import Check, unchecked
from dataset.observations import LOSS_RESPONSE, ORDER_OF_SERVICE
from measure.validate.cross_traffic import judge_cross_traffic, measure_cross_traffic
from measure.validate.hop import checks_of_half, judge_hop, measure_hop
from measure.validate.largest_window import judge_largest_window
from measure.validate.loss_response import KEPT, expected_curve, judge_loss_response, observe_loss_response
from measure.validate.network import LOST_PACKETS, LOST_PACKETS_QUICK, judge_network, measure_network
from measure.validate.order_of_service import judge_order, observe_order
from measure.validate.protocol import judge_protocol, observe_protocol
from measure.validate.server_rtts import DelayedSite, judge_server_rtts, measure_server_rtts, seen_of
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from record.site import Site
from replay.shells.registry import shells_named
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network
from tuning.protocols import Protocol

# Of what was seen of a site, how far its servers are (`server_rtts.seen_of`).
SERVERS = "servers"


@dataclass(frozen=True)
class Step:
    """One measurement of a network or a protocol, called `subject`.

    `expected_s`: about how long it takes on two cores; only the relation to other steps matters. `measure` returns the
    checks, and what is to be kept of what was seen; it raises EyelevelError.
    """

    subject: str
    description: str
    expected_s: float
    measure: Callable[[], tuple[list[Check], dict[str, Any]]]


def validate(
    networks: Iterable[Network],
    protocols: Iterable[Protocol],
    folder: Path,
    *,
    quick: bool = False,
    compared: bool = False,
    shells: str = DEFAULT_SHELLS,
    delayed: Iterable[DelayedSite] = (),
) -> tuple[list[Check], dict[str, Any]]:
    """Every check of `networks`, of `protocols` and of the servers of `delayed` sites, and by their names what was
    seen; shows how far it is.

    What is needed meanwhile is in `folder`. What cannot be measured at all is a check that failed. If this is to be
    `quick`, fewer losses of a network are looked at, and the answer to one loss and the order of service only of
    protocols that are to be `compared`, or that have a setting for it. Networks are those of `shells`; protocols are
    seen behind ours, which can lose a chosen packet.
    """
    sites = write_validation_sites(folder)
    steps = [_network_step(network, sites, shells, quick=quick) for network in networks]
    steps += map(_server_step, delayed)
    for protocol in itertools.chain.from_iterable(map(each_spoken, protocols)):
        steps += _protocol_steps(protocol, sites, quick=quick and not compared)
    checks: list[Check] = []
    seen: dict[str, Any] = {}
    console = Console(stderr=True)
    for step in each_shown(steps, lambda step: step.description, lambda step: step.expected_s, console):
        with measurable(step.subject, checks):
            judged, document = step.measure()
            checks += judged
            seen.setdefault(step.subject, {}).update(document)
    return checks, seen


def each_spoken(protocol: Protocol) -> list[Protocol]:
    """`protocol`, or the two that its servers speak, each by itself."""
    if (other := protocol.alternative_service) is None:
        return [protocol]
    alone = replace(protocol, alternative=None, discovery=None, alternative_settings=None)
    return [alone, replace(other, name=f"{protocol.name}: {other.name}")]


def _network_step(network: Network, sites: Mapping[str, Site], shells: str, *, quick: bool) -> Step:
    def measure() -> tuple[list[Check], dict[str, Any]]:
        if refusal := shells_named(shells).refusal(network):
            return [unchecked(network.name, "measurement", refusal)], {}
        lost_packets = LOST_PACKETS_QUICK if quick else LOST_PACKETS
        checks: list[Check] = []
        seen: dict[str, Any] = {}
        for half in network.halves:
            measurement = measure_network(half.alone, sites[WINDOW_PAGE], lost_packets, shells)
            checks += checks_of_half(network, judge_network(half, measurement, shells))
            which = half.name.removeprefix(f"{network.name}: ")
            seen |= {which: asdict(measurement)} if network.hop else asdict(measurement)
        if network.hop:
            hop = measure_hop(network, sites[WINDOW_PAGE])
            checks += judge_hop(network, hop)
            seen["hop"] = asdict(hop)
        if network.has_cross_traffic:
            flows = measure_cross_traffic(network, sites[WINDOW_PAGE])
            checks += judge_cross_traffic(network, flows)
            seen["cross_traffic"] = [asdict(flow) for flow in flows]
        return checks, seen

    return Step(
        network.name, f"measuring {network.name}", 40 if network.has_cross_traffic or network.hop else 20, measure
    )


def _server_step(site: DelayedSite) -> Step:
    def measure() -> tuple[list[Check], dict[str, Any]]:
        measured = measure_server_rtts(site)
        return judge_server_rtts(site, measured), {SERVERS: seen_of(measured)}

    return Step(site.name, f"measuring how far the servers of {site.name} are", 4, measure)


def _protocol_steps(protocol: Protocol, sites: Mapping[str, Site], *, quick: bool) -> Iterator[Step]:
    """If this is to be `quick`: beside the settings at large, what the protocol has a setting for."""

    def measure() -> tuple[list[Check], dict[str, Any]]:
        observation = observe_protocol(protocol, sites)
        return judge_protocol(protocol, observation), observation.document()

    def measure_loss_response() -> tuple[list[Check], dict[str, Any]]:
        if protocol.in_kernel and protocol.congestion_control == "reno":
            why = "Linux's Reno has no HyStart: its slow start ends in a full queue, which loses hundreds of packets"
            return [unchecked(protocol.name, KEPT, why)], {}
        response = observe_loss_response(protocol, sites)
        document = response.document(expected_curve(protocol, response))
        return judge_loss_response(protocol, response), {LOSS_RESPONSE: document}

    def measure_order() -> tuple[list[Check], dict[str, Any]]:
        order = observe_order(protocol, sites)
        return judge_order(protocol, order.numbers), {ORDER_OF_SERVICE: order.document()}

    def measure_window() -> tuple[list[Check], dict[str, Any]]:
        return [judge_largest_window(protocol, sites[WINDOW_PAGE])], {}

    name = protocol.name
    yield Step(name, f"observing {name}", 20, measure)
    if not quick or protocol.emulated_connections is not None:
        yield Step(name, f"observing {name} after one loss", 11, measure_loss_response)
    if protocol.max_window_packets is not None:
        yield Step(name, f"observing the largest window of {name}", 8, measure_window)
    if not quick or protocol.scheduler is not None or protocol.notsent_lowat_bytes is not None:
        yield Step(name, f"observing the order of service of {name}", 8, measure_order)


@contextmanager
def measurable(subject: str, checks: list[Check]) -> Iterator[None]:
    """Make an error a check of `subject` that failed, so that the checks of others are not lost."""
    try:
        yield
    except EyelevelError as error:
        checks.append(Check(subject, "measurement", "possible", str(error), "", passed=False))
