"""Chance that is the same in every version of Python, which promises that only of `random.Random(seed).random()`."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws the same for the same `seed`."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def share(self) -> float:
        """A number from 0 up to 1."""
        return self._random.random()

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: Sequence[T]) -> T:
        """One of `values`."""
        return values[int(self._random.random() * len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """`values` in random order."""
        return [value for _, _, value in sorted((self._random.random(), place, v) for place, v in enumerate(values))]

    def token(self, letters: int = 8) -> str:
        """Letters without a meaning, as in the names of built files."""
        return "".join(self.pick("abcdefghkmnpqrstuvwxyz23456789") for _ in range(letters))
