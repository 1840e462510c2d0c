"""What is asked of a campaign: `hypotheses.toml`, read and fitted to the protocols that a campaign has."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError

DECLARED = Path(__file__).with_name("hypotheses.toml")
KEYS = {"significant_p", "confidence", "equivalence_margin", "comparisons", "family"}


@dataclass(frozen=True)
class Pair:
    """A comparison: how `compared` fares against `reference`; both are names of protocols."""

    reference: str
    compared: str

    def __str__(self) -> str:
        return f"{self.compared} against {self.reference}"


@dataclass(frozen=True)
class Hypotheses:
    """Thresholds (as shares), the pairs to compare, and which of them on which metrics are the declared family."""

    significant_p: float
    confidence: float
    equivalence_margin: float
    comparisons: tuple[Pair, ...]
    family: tuple[Pair, ...]
    family_metrics: tuple[str, ...]

    def fitted(self, protocols: Sequence[str]) -> "Hypotheses":
        """Only the pairs that a campaign of `protocols` has, and its first against each that would be left out."""
        has = set(protocols)
        pairs = [pair for pair in self.comparisons if {pair.reference, pair.compared} <= has]
        named = {name for pair in pairs for name in (pair.reference, pair.compared)}
        pairs += [Pair(protocols[0], name) for name in protocols[1:] if name not in named]
        family = [pair for pair in self.family if pair in pairs]
        family = family or [pair for pair in pairs if pair.reference == protocols[0]]
        return Hypotheses(
            self.significant_p,
            self.confidence,
            self.equivalence_margin,
            tuple(pairs),
            tuple(family),
            self.family_metrics,
        )


def load(path: Path = DECLARED) -> Hypotheses:
    """The hypotheses in the file `path`. Raises EyelevelError when it is missing or something in it is not right."""
    try:
        told = tomllib.loads(path.read_text())
        if unknown := told.keys() ^ KEYS:
            raise EyelevelError(f"{path}: {', '.join(sorted(unknown))} is missing or unknown; see {DECLARED}")
        hypotheses = Hypotheses(
            significant_p=float(told["significant_p"]),
            confidence=float(told["confidence"]),
            equivalence_margin=float(told["equivalence_margin"]),
            comparisons=_pairs(told["comparisons"]),
            family=_pairs(told["family"]["pairs"]),
            family_metrics=tuple(told["family"]["metrics"]),
        )
    except FileNotFoundError:
        raise EyelevelError(f"{path} is missing") from None
    except (ValueError, TypeError, KeyError) as error:
        raise EyelevelError(f"{path} is no file of hypotheses: {error}") from None
    for name in ("significant_p", "confidence", "equivalence_margin"):
        if not 0 < getattr(hypotheses, name) < 1:
            raise EyelevelError(f"{path}: {name} is {getattr(hypotheses, name)}, must lie between 0 and 1")
    return hypotheses


def _pairs(told: Sequence[Sequence[str]]) -> tuple[Pair, ...]:
    return tuple(Pair(reference, compared) for reference, compared in told)
