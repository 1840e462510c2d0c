"""Plausible English from a small grammar (`grammar.toml`): headlines, paragraphs, captions, names."""

import re
import tomllib
from functools import cache
from pathlib import Path
from random import Random

GRAMMAR = Path(__file__).with_name("grammar.toml")


class Writer:
    """Writes texts by a grammar's rules; the same seed gives the same texts in the same order."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._unused: dict[str, list[str]] = {}

    def write(self, rule: str) -> str:
        """One text by `rule`: every `{name}` in it is replaced by a text of that rule.

        `{Name}` gives it a capital letter. The alternatives of a rule are drawn like cards from a deck: none comes
        twice before all have come once.
        """
        text = re.sub(r"\{(\w+)\}", lambda match: self.write(match[1]), self._deal(rule.lower()))
        text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
        return text[0].upper() + text[1:] if rule[0].isupper() else text

    def paragraph(self, sentences: int, rule: str = "sentence") -> str:
        """A paragraph of this many sentences."""
        return " ".join(self.write(rule) for _ in range(sentences))

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return self._random.randint(low, high)

    def letters(self, count: int) -> str:
        """A meaningless word, as in identifiers and tokens."""
        return "".join(self._random.choices("abcdefghijklmnopqrstuvwxyz", k=count))

    def _deal(self, rule: str) -> str:
        deck = self._unused.setdefault(rule, [])
        if not deck:
            deck += _grammar()[rule]
            self._random.shuffle(deck)
        return deck.pop()


def slug(text: str) -> str:
    """`text` as a part of a URL's path."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def _grammar() -> dict[str, list[str]]:
    return tomllib.loads(GRAMMAR.read_text(encoding="utf-8"))
