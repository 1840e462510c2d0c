"""The contract of impairments: their keys in a network, and all that follows from them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# The values of a direction: up, down, or both at once.
UP, DOWN, BOTH = "up", "down", "both"

# A network's settings as `campaign.json` keeps them.
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Path:
    """The keys of every network. `min_rtt_ms` is its least round-trip time."""

    name: str
    min_rtt_ms: float


@dataclass(frozen=True)
class Judgement:
    """A number that a validation measured of an impairment, and the configured one."""

    name: str
    configured: float
    measured: float | None
    tolerance: float
    unit: str


@dataclass(frozen=True)
class Impairment:
    """One impairment, or several that depend on each other. All functions are of a network that has its `keys`.

    `keys` is a dataclass of keys of networks.toml, by keyword, None by default. `place` is where it stands among the
    others in words and in command lines. `units` are those of the keys that a grid of networks may vary, as they stand
    in a network's name; a table's keys are `a.b`. `files`: which keys are paths.

    `check` raises ValueError with what is wrong, `finish` too; that returns the network with what follows from the
    keys. `words` are the impairment in the report, `label` at a figure if they differ there. `arguments` are those of
    `mm-net`. `mahimahi`: key → what Mahimahi's shells have nothing like.

    `judge` compares what a validation measured (`measure.probe.measurement.NetworkMeasurement`) with the network; most
    are judged by `measure.validate.network`, since they depend on each other. `hides` names the checks of those that
    it makes impossible, by how their names begin, with the reason.
    """

    name: str
    keys: type[Path]
    place: int
    units: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    check: Callable[[Any], None] = lambda network: None
    finish: Callable[[Any], Any] = lambda network: network
    words: Callable[[Settings], Iterable[str]] = lambda settings: ()
    label: Callable[[Settings], Iterable[str]] | None = None
    arguments: Callable[[Any], Iterable[str]] = lambda network: ()
    mahimahi: Mapping[str, str] = field(default_factory=dict)
    judge: Callable[[Any, Any], Iterable[Judgement]] = lambda network, measured: ()
    hides: Callable[[Any], Mapping[str, str]] = lambda network: {}


def units_of(tables: Iterable[str], units: Mapping[str, str]) -> dict[str, str]:
    """`units` of the keys of tables within a network, each of which has them all."""
    return {f"{table}.{key}": unit for table in tables for key, unit in units.items()}
