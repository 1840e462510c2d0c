"""The hypotheses of a campaign: `hypotheses.toml`, and the part of it that a campaign has protocols and metrics for."""

import math
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from base.errors import EyelevelError

DECLARED = Path(__file__).with_name("hypotheses.toml")
SHARES = ("significant_p", "confidence", "equivalence_margin")
KEYS = {*SHARES, "equivalence_round_trips", "comparisons", "family"}


class Pair(NamedTuple):
    """A comparison of the protocol `compared` with the protocol `reference`."""

    reference: str
    compared: str

    def is_of(self, protocols: Collection[str]) -> bool:
        """Whether both are among `protocols`."""
        return set(self) <= set(protocols)


@dataclass(frozen=True)
class Hypotheses:
    """Thresholds (as shares; one in round trips), the pairs to compare, and those pairs and metrics that are the
    declared family."""

    significant_p: float
    confidence: float
    equivalence_margin: float
    equivalence_round_trips: float
    comparisons: tuple[Pair, ...]
    family: tuple[Pair, ...]
    family_metrics: tuple[str, ...]

    def restricted_to(self, protocols: Sequence[str], metrics: Collection[str]) -> "Hypotheses":
        """The hypotheses on a campaign with these `protocols` and `metrics`. A protocol that no pair names is compared
        with the first; without a pair of the family, those with the first are the family, or all if there are none."""
        pairs = [pair for pair in self.comparisons if pair.is_of(protocols)]
        in_pairs = {name for pair in pairs for name in pair}
        pairs += [Pair(protocols[0], name) for name in protocols[1:] if name not in in_pairs]
        family = [pair for pair in self.family if pair in pairs]
        family = family or [pair for pair in pairs if protocols[0] in pair] or pairs
        family_metrics = tuple(metric for metric in self.family_metrics if metric in metrics)
        return replace(self, comparisons=tuple(pairs), family=tuple(family), family_metrics=family_metrics)

    def family_size(self, networks: int) -> int:
        """The number of contrasts of the family in a campaign with so many `networks`."""
        return len(self.family) * len(self.family_metrics) * networks


def load(path: Path = DECLARED) -> Hypotheses:
    """The hypotheses in the file `path`. Raises EyelevelError when it is missing or wrong."""
    try:
        document = tomllib.loads(path.read_text())
        if unknown := document.keys() ^ KEYS:
            raise EyelevelError(f"{path}: {', '.join(sorted(unknown))} is missing or unknown; see {DECLARED}")
        hypotheses = Hypotheses(
            significant_p=float(document["significant_p"]),
            confidence=float(document["confidence"]),
            equivalence_margin=float(document["equivalence_margin"]),
            equivalence_round_trips=float(document["equivalence_round_trips"]),
            comparisons=_pairs(document["comparisons"]),
            family=_pairs(document["family"]["pairs"]),
            family_metrics=tuple(document["family"]["metrics"]),
        )
    except FileNotFoundError:
        raise EyelevelError(f"{path} is missing") from None
    except (ValueError, TypeError, KeyError) as error:
        raise EyelevelError(f"{path} is no file of hypotheses: {error}") from None
    for name in SHARES:
        if not 0 < getattr(hypotheses, name) < 1:
            raise EyelevelError(f"{path}: {name} is {getattr(hypotheses, name)}, must lie between 0 and 1")
    if not 0 < hypotheses.equivalence_round_trips < math.inf:
        raise EyelevelError(f"{path}: equivalence_round_trips is {hypotheses.equivalence_round_trips}, must be above 0")
    return hypotheses


def _pairs(entries: Sequence[Sequence[str]]) -> tuple[Pair, ...]:
    return tuple(Pair(reference, compared) for reference, compared in entries)
