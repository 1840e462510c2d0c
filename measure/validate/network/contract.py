"""The contract of judges: each compares one property of a network, or of one direction, with its measurement."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from dataset import checks
from dataset.checks import Check
from measure.probe.measurement import Direction, NetworkMeasurement
from tuning.conditions import Conditions
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network

# A round trip may deviate by RTT_TOLERANCE_MS, since a program may have to wait for the processor; a long one may
# deviate by the share RTT_TOLERANCE.
RTT_TOLERANCE_MS, RTT_TOLERANCE = 1.0, 0.01
# A binomial count of n lost packets deviates from its expectation by more than this many times √n only once in 16,000.
# A validation of all networks makes a dozen such checks, and must not fail by chance.
LOSS_DEVIATIONS = 4.0
PACKET_BITS = 1500 * 8


@dataclass(frozen=True)
class _Case:
    """A network that is judged; its checks are made as in `dataset.checks`."""

    network: Network

    def named(self, name: str) -> str:
        """The full name of a check."""
        return name

    def within(self, name: str, configured: float, measured: float, tolerance: float, unit: str) -> Check:
        return checks.within(self.network.name, self.named(name), configured, measured, tolerance, unit)

    def between(self, name: str, least: float, measured: float, most: float, unit: str) -> Check:
        return checks.between(self.network.name, self.named(name), least, measured, most, unit)

    def same(self, name: str, configured: object, measured: object) -> Check:
        return checks.same(self.network.name, self.named(name), configured, measured)

    def unchecked(self, name: str, why: str, configured: float | None = None, unit: str = "") -> Check:
        return checks.unchecked(self.network.name, self.named(name), why, configured, unit)


@dataclass(frozen=True)
class Whole(_Case):
    """A network, and its measurement."""

    seen: NetworkMeasurement

    @property
    def waits_for_lines(self) -> bool:
        """Whether packets wait for the next line of a trace."""
        return bool(self.network.up_trace or self.network.down_trace)

    @property
    def changing(self) -> list[Conditions]:
        """The conditions of those directions whose conditions change over time."""
        return [conditions for way in (UP, DOWN) if (conditions := self.network.conditions_of(way))]


@dataclass(frozen=True)
class OneWay(_Case):
    """One direction of a network, and its measurement."""

    direction: str
    seen: Direction
    in_opportunities: bool

    def named(self, name: str) -> str:
        return f"{self.direction}link {name}"

    @property
    def mbps(self) -> float | None:
        """The direction's rate."""
        return self.network.rate_of(self.direction)

    @property
    def trace(self) -> str | None:
        """The file of the direction's trace."""
        return self.network.trace_of(self.direction)

    @property
    def loss(self) -> float:
        """The direction's probability of loss; on a link that retransmits, that of a single try."""
        return self.network.loss_of(self.direction)

    @property
    def repeats(self) -> bool:
        """Whether the link retransmits what it loses."""
        return self.network.retransmit_ms is not None

    @property
    def is_off_at_times(self) -> bool:
        """Whether the link is off at times (`on_off`)."""
        return self.network.on_off_of(self.direction) is not None

    @property
    def is_blurred(self) -> bool:
        """Whether packets that are lost together may not have been sent together, since the downlink's jitter comes
        before its losses."""
        return self.direction == DOWN and self.network.reorder and self.network.jitter_ms > 0

    @property
    def chosen(self) -> int:
        """The number of this direction's packets that are chosen to be dropped."""
        return sum(map(len, self.network.chosen_of(self.direction)))


Case = TypeVar("Case", Whole, OneWay)


@dataclass(frozen=True)
class Judge(Generic[Case]):
    """The judge of one property: `applies` decides whether a case has the property, and `judge` makes the checks."""

    judge: Callable[[Case], Iterable[Check]]
    applies: Callable[[Case], bool] = lambda case: True
