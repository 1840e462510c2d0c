"""The contract of impairments: their keys in a network, and everything derived from the keys."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# The directions: up, down, or both.
UP, DOWN, BOTH = "up", "down", "both"

# A network's settings as `campaign.json` keeps them.
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Path:
    """The keys that every network has. `min_rtt_ms` is its smallest round-trip time."""

    name: str
    min_rtt_ms: float


@dataclass(frozen=True)
class Judgement:
    """A number that validation measured for an impairment, and its configured value."""

    name: str
    configured: float
    measured: float | None
    tolerance: float
    unit: str


@dataclass(frozen=True)
class Impairment:
    """One impairment, or several that depend on each other. Every function takes a network with its `keys`.

    `keys` is a dataclass of keys of networks.toml, keyword only, None by default. `place` is its position among the
    others in words and in command lines. `units` are the units of the keys that a grid of networks may vary, as they
    appear in a network's name; a table's keys are `a.b`. `files`: the keys that are paths.

    `check` raises ValueError with the fault; so does `finish`, which returns the network with values derived from the
    keys. `words` describes the impairment in the report, `label` in a figure if that differs. `arguments` are those of
    `mm-net`. `mahimahi`: key → the feature that Mahimahi's shells lack.

    `judge` compares what a validation measured (`measure.probe.measurement.NetworkMeasurement`) with the network; most
    impairments are judged by `measure.validate.network`, since they depend on each other. `hides` maps checks that it
    makes impossible, by the start of their names, to the reason.
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
    """`units` repeated for each of the tables within a network, which all have the same keys."""
    return {f"{table}.{key}": unit for table in tables for key, unit in units.items()}
