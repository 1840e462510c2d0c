"""Whether one direction is off and on for the right times."""

import math
from collections.abc import Iterator

from base.words import plural
from dataset.checks import Check
from measure.validate.network.contract import LOSS_DEVIATIONS, Judge, OneWay

# Fewer outages do not show their usual length.
LEAST_OUTAGES = 3
OUTAGE_TOLERANCE = 0.02


def _on_off(way: OneWay) -> Iterator[Check]:
    times, seen = way.network.on_off_of(way.direction), way.seen.outages
    assert times
    if way.is_blurred:
        yield way.unchecked("off", "packets overtake each other before they are lost", times.off_s, "s")
        return
    if not seen or seen.least_s > times.off_s / 2:
        yield way.unchecked("off", "it cannot be distinguished from losses", times.off_s, "s")
        return
    if seen.count < LEAST_OUTAGES:
        why = f"it was off and on again only {plural('time', seen.count)} during the probe"
        yield way.unchecked("off", why, times.off_s, "s")
        return
    for what, configured_s, measured_s in (("off", times.off_s, seen.off_s), ("on", times.on_s, seen.on_s)):
        deviations = math.copysign(LOSS_DEVIATIONS, measured_s - configured_s)
        chance = 0.0 if times.periodic else abs(_exponential_mean(seen.count, deviations) - 1)
        tolerance_s = (OUTAGE_TOLERANCE + chance) * configured_s + seen.least_s + 2 * way.network.jitter_ms / 1e3
        kind = "always" if times.periodic else "mean"
        yield way.within(f"{what}, {kind}", configured_s, measured_s, tolerance_s, "s")


def _exponential_mean(count: int, deviations: float) -> float:
    """A bound for the mean of `count` exponential times, in units of their distribution's mean. A mean lies beyond it
    as rarely as a normal value lies beyond `deviations` standard deviations (Wilson and Hilferty 1931). For few times,
    a symmetric tolerance would be as large as the mean itself, and accept any mean that is too small."""
    return max(0.0, 1 - 1 / (9 * count) + deviations / (3 * math.sqrt(count))) ** 3


ON_OFF = Judge(_on_off, lambda way: way.is_off_at_times)
