"""The hypotheses that an analysis tests: pairs of protocols, the declared family, and thresholds.

`analysis.hypotheses` reads them from files.
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
    """The origin of hypotheses: a file (`source`) whose text has this `sha256`; when the campaign declared its own
    (empty if it did not); and whether these are others (`is_post_hoc`)."""

    source: str = ""
    sha256: str = ""
    declared_at: str = ""
    is_post_hoc: bool = True


@dataclass(frozen=True)
class Hypotheses:
    """Thresholds (shares, except one in round trips), the pairs to compare, the pairs and metrics of the declared
    family, and the origin of all these.

    `added_protocols` and `added_networks`: those added to the campaign after its first run → when. Pairs with an added
    protocol are not in the family, since the protocol's runs are not in the blocks of the other protocols. Networks
    that were added at the same time form a family of their own, which was declared before their first run.
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
        """The hypotheses on a campaign with these `protocols` and `metrics`.

        A protocol that no pair names is compared with the first. If the campaign has no pair of the family, the pairs
        with the first protocol form the family, or if there are none of these, all pairs.
        """
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
