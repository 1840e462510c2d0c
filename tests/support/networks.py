"""Measurements of networks as a validation makes and judges them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from dataset.checks import Check
from measure.probe.measurement import NetworkMeasurement
from measure.validate.network.path import judge_network, measure_network
from measure.validate.site import WINDOW_PAGE
from record.site import Site
from tuning.networks import Network


def failures(checks: Iterable[Check]) -> set[str]:
    """The names of the failing checks, without suffixes such as their sample size or the kind of queue."""
    return {check.name.partition(" of ")[0].partition(" (")[0] for check in checks if not check.passed}


def measured(network: Network, sites: Mapping[str, Site], lost_packets: int = 100) -> NetworkMeasurement:
    """A measurement of `network` for which all checks pass."""
    measurement = measure_network(network, sites[WINDOW_PAGE], lost_packets)
    checks = judge_network(network, measurement)
    assert failures(checks) == set(), [asdict(check) for check in checks if not check.passed]
    return measurement
