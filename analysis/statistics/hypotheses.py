"""The hypotheses that an analysis tests: pairs of protocols, the declared family, and thresholds.

`analysis.hypotheses` reads them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Pair(NamedTuple):
    """A comparison of the protocol `compared` with the protocol `reference`."""

    reference: str
    compared: str

    def is_of(self, protocols: Collection[str]) -> bool:
        """Whether both protocols of the pair are among `protocols`."""
        return set(self) <= set(protocols)


@dataclass(frozen=True)
class Origin:
    """Where hypotheses come from: a file (`source`) with a text of this `sha256`.

    `declared_at`: when the campaign declared its hypotheses; nothing when it did not. `is_post_hoc`: whether these are
    not the ones that it declared.
    """

    source: str = ""
    sha256: str = ""
    declared_at: str = ""
    is_post_hoc: bool = True


@dataclass(frozen=True)
class Hypotheses:
    """Thresholds (as shares; one in round trips), the pairs to compare, those pairs and metrics that are the declared
    family, and where all of this comes from.

    `added_protocols` and `added_networks` came to the campaign after its first run, at these times. Pairs with such a
    protocol are not in the family: its runs lie in other blocks than those of the others. Networks that came at one
    time have a family of their own, which was declared before their first run.
    """

    significant_p: float
    confidence: float
    equivalence_margin: float
    equivalence_round_trips: float
    comparisons: tuple[Pair, ...]
    family: tuple[Pair, ...]
    family_metrics: tuple[str, ...]
    added_protocols: Mapping[str, str] = field(default_factory=dict)
    added_networks: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = field(default=Origin(), compare=False)

    def restricted_to(self, protocols: Sequence[str], metrics: Collection[str]) -> "Hypotheses":
        """The hypotheses on a campaign with these `protocols` and `metrics`. A protocol that no pair names is compared
        with the first; without a pair of the family, those with the first are the family, or all if there are none."""
        pairs = [pair for pair in self.comparisons if pair.is_of(protocols)]
        in_pairs = {name for pair in pairs for name in pair}
        first = next(iter([*(name for name in protocols if name not in self.added_protocols), *protocols]), "")
        pairs += [Pair(first, name) for name in protocols if name != first and name not in in_pairs]
        declared = [pair for pair in pairs if not set(pair) & self.added_protocols.keys()]
        family = [pair for pair in self.family if pair in declared]
        family = family or [pair for pair in declared if first in pair] or declared
        family_metrics = tuple(metric for metric in self.family_metrics if metric in metrics)
        return replace(self, comparisons=tuple(pairs), family=tuple(family), family_metrics=family_metrics)

    def family_size(self, networks: int) -> int:
        """The number of contrasts of the family in a campaign with this number of `networks`."""
        return len(self.family) * len(self.family_metrics) * networks

    def declared_with(self, network: str, networks: Collection[str]) -> list[str]:
        """Those of `networks` that share a family with `network`."""
        came_at = self.added_networks.get(network)
        return [name for name in networks if self.added_networks.get(name) == came_at]
