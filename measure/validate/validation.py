"""Validating networks and protocols, one after another."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from base.errors import EyelevelError
from measure.validate.checks import Check
from measure.validate.loss_response import expected_curve, judge_loss_response, observe_loss_response
from measure.validate.network import LOST_PACKETS, LOST_PACKETS_QUICK, judge_network, measure_network
from measure.validate.order_of_service import judge_order, observe_order
from measure.validate.protocol import judge_protocol, observe_protocol
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from tuning.networks import Network
from tuning.protocols import Protocol

# Of what was seen of a protocol, the answer to one loss (`LossResponse.document`).
LOSS_RESPONSE = "loss_response"
# The order of service (`OrderOfService.document`).
ORDER_OF_SERVICE = "order_of_service"


def validate(
    networks: Iterable[Network],
    protocols: Iterable[Protocol],
    folder: Path,
    *,
    quick: bool = False,
    compared: bool = False,
) -> tuple[list[Check], dict[str, Any]]:
    """Every check of `networks` and `protocols`, and by their names what was seen; shows how far it is.

    What is needed meanwhile is in `folder`. What cannot be measured at all is a check that failed. If this is to be
    `quick`, fewer losses of a network are looked at, and the answer to one loss and the order of service only of
    protocols that are to be `compared`, or that have a setting for it.
    """
    networks, protocols = list(networks), list(protocols)
    sites = write_validation_sites(folder)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    checks: list[Check] = []
    seen: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(networks) + len(protocols))
        for network in networks:
            progress.update(task, description=f"measuring {network.name}")
            lost_packets = LOST_PACKETS_QUICK if quick else LOST_PACKETS
            with measurable(network.name, checks):
                measurement = measure_network(network, sites[WINDOW_PAGE], lost_packets)
                checks += judge_network(network, measurement)
                seen[network.name] = asdict(measurement)
            progress.advance(task)
        for protocol in protocols:
            progress.update(task, description=f"observing {protocol.name}")
            with measurable(protocol.name, checks):
                observation = observe_protocol(protocol, sites)
                checks += judge_protocol(protocol, observation)
                seen[protocol.name] = observation.document()
            if not quick or compared or protocol.emulated_connections is not None:
                progress.update(task, description=f"observing {protocol.name} after one loss")
                with measurable(protocol.name, checks):
                    response = observe_loss_response(protocol, sites)
                    checks += judge_loss_response(protocol, response)
                    document = response.document(expected_curve(protocol, response))
                    seen.setdefault(protocol.name, {})[LOSS_RESPONSE] = document
            is_set = protocol.scheduler is not None or protocol.notsent_lowat_bytes is not None
            if not quick or compared or is_set:
                progress.update(task, description=f"observing the order of service of {protocol.name}")
                with measurable(protocol.name, checks):
                    order = observe_order(protocol, sites)
                    checks += judge_order(protocol, order.numbers)
                    seen.setdefault(protocol.name, {})[ORDER_OF_SERVICE] = order.document()
            progress.advance(task)
    return checks, seen


@contextmanager
def measurable(subject: str, checks: list[Check]) -> Iterator[None]:
    """Make an error a check of `subject` that failed, so that the checks of others are not lost."""
    try:
        yield
    except EyelevelError as error:
        checks.append(Check(subject, "measurement", "possible", str(error), "", passed=False))
