"""The texts of the pages, in their languages (`languages.toml`)."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from record.web.dice import Dice

FILE = Path(__file__).with_name("languages.toml")
WORDS = (
    *("search", "menu", "news", "shop", "pictures", "help", "contact", "about", "more", "buy", "login", "accept"),
    *("read_on", "related", "price", "terms"),
)
# The name of a site: two syllables for its domain, and for its logo.
SYLLABLES = [
    "al",
    "ber",
    "car",
    "dor",
    "el",
    "fen",
    "gal",
    "hol",
    "in",
    "ker",
    "lum",
    "mar",
    "nor",
    "or",
    "pel",
    "rin",
    "sol",
    "tar",
    "ul",
    "ver",
    "wen",
]
ENDINGS = ["mouth", "ford", "holm", "stead", "wick", "haven", "field", "port", "bridge", "well"]


class Writer:
    """Writes texts in `language`; the same `dice` give the same texts in the same order."""

    def __init__(self, language: str, dice: Dice) -> None:
        table = _languages()[language]
        self.language, self.direction, self.script = language, table["direction"], table["script"]
        self.words = dict(zip(WORDS, table["words"], strict=True))
        self._table, self._dice = table, dice
        self._unused: dict[str, list[str]] = {}

    def headline(self) -> str:
        """A short sentence without a full stop."""
        return self._begun(f"{self._deal('subjects')} {self._deal('verbs')}")

    def sentence(self) -> str:
        """A sentence."""
        return self._begun(f"{self._deal('subjects')} {self._deal('verbs')} {self._deal('places')}.")

    def paragraph(self, sentences: int) -> str:
        """A paragraph of this many sentences."""
        return " ".join(self.sentence() for _ in range(sentences))

    def noun(self) -> str:
        """The name of a thing."""
        return self._deal("nouns")

    def person(self) -> str:
        """The name of a person."""
        return self._deal("people")

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return self._dice.number(low, high)

    def _deal(self, key: str) -> str:
        """The next text of a list, each of which comes once before any comes again."""
        if not (deck := self._unused.setdefault(key, [])):
            deck += self._dice.shuffled(self._table[key])
        return deck.pop()

    def _begun(self, text: str) -> str:
        first = "İ" if self.language == "tr" and text[0] == "i" else text[0].upper()
        return first + text[1:]


def letters(script: str) -> list[int]:
    """The code points that texts in `script` use, and those of ASCII."""
    tables = [table for table in _languages().values() if table["script"] == script]
    used = {letter for table in tables for texts in table.values() for text in texts for letter in text}
    return sorted({*range(0x20, 0x7F), *(ord(one) for letter in used for one in letter + letter.upper()), 0xA9, 0x2026})


@cache
def _languages() -> dict[str, dict[str, Any]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
