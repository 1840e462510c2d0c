"""`validation.json`: a campaign's validations, with one entry for each time something had to be measured."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.files import write_json
from base.ownership import give_to_caller
from base.structure import from_json, unstructured
from dataset.checks import Check
from dataset.observations import LOSS_RESPONSE, ORDER_OF_SERVICE
from dataset.reading import read_text

VALIDATION = "validation.json"


@dataclass(frozen=True)
class ValidationEntry:
    """One validation.

    `at`: its time; `on`: the machine and the programs; `passed`: the settings (as documents) that passed; `checks`: all
    checks; `seen`: the observations.
    """

    at: str
    on: dict[str, Any]
    passed: tuple[dict[str, Any], ...]
    checks: tuple[Check, ...]
    seen: dict[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.on.get("host"), str):
            raise ValueError("on names no host")
        if not all(isinstance(setting.get("name"), str) for setting in self.passed):
            raise ValueError("a setting that passed has no name")

    def is_comparable(self, setting: Mapping[str, Any]) -> bool:
        """Whether this validation observed all that a comparison of the protocol with this `setting` needs."""
        return {LOSS_RESPONSE, ORDER_OF_SERVICE} <= set(self.seen.get(setting["name"], ()))


def keep_entries(folder: Path, more: Iterable[ValidationEntry]) -> None:
    """Add the entries `more`, of this or another machine, to those in `folder`. Raises EyelevelError."""
    entries = [*kept_entries(folder), *more]
    folder.mkdir(parents=True, exist_ok=True)
    write_entries(folder, entries)
    give_to_caller(folder)


def write_entries(folder: Path, entries: Iterable[ValidationEntry]) -> None:
    """Write `entries` to `folder`, and replace all entries there."""
    write_json(folder / VALIDATION, unstructured(list(entries)))


def kept_entries(folder: Path) -> tuple[ValidationEntry, ...]:
    """The entries in `folder`, one for each time something was measured. Raises EyelevelError if they are broken."""
    file = folder / VALIDATION
    try:
        return from_json(read_text(file), tuple[ValidationEntry, ...], f"{file} is broken")
    except FileNotFoundError:
        return ()
