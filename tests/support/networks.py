"""Networks as a validation measures and judges them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from dataset.checks import Check
from measure.probe.measurement import NetworkMeasurement
from measure.validate.network.path import judge_network, measure_network
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from tuning.networks import Network


def failures(checks: Iterable[Check]) -> set[str]:
    """The names of those that fail, without what they are counted of or which queue they are of."""
    return {check.name.partition(" of ")[0].partition(" (")[0] for check in checks if not check.passed}


def measured(network: Network, sites: Mapping[str, Site], lost_packets: int = 100) -> NetworkMeasurement:
    """`network` as it is measured, all of whose checks pass."""
    measurement = measure_network(network, sites[WINDOW_PAGE], lost_packets)
    checks = judge_network(network, measurement)
    assert failures(checks) == set(), [asdict(check) for check in checks if not check.passed]
    return measurement
