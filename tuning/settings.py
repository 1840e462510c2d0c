"""Reading a settings file: TOML tables into immutable values, checked once, here."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from eyelevel.errors import EyelevelError

T = TypeVar("T")


def load_tables(file: Path, kind: type[T], check: Callable[[T], str | None]) -> dict[str, T]:
    """Every table of `file` as a `kind` (a dataclass with a `name`), by its name.

    `check` returns what is wrong with a value, or None. Raises EyelevelError that names file, table and key.
    """
    try:
        tables = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EyelevelError(f"{file}: {error}") from None
    return {name: _value(file, name, table, kind, check) for name, table in tables.items()}


def choose(what: str, wanted: str | Iterable[str], known: Mapping[str, T]) -> list[T]:
    """The settings that `wanted` names: names separated by commas or blanks, or `all`.

    Raises EyelevelError that names the allowed ones.
    """
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else list(wanted)
    if names == ["all"]:
        return list(known.values())
    allowed = f"choose among {', '.join(known)}, or all"
    if not names:
        raise EyelevelError(f"no {what} was named; {allowed}")
    for name in names:
        if name not in known:
            raise EyelevelError(f"unknown {what} {name!r}; {allowed}")
    return [known[name] for name in dict.fromkeys(names)]


def choose_one(what: str, wanted: str, known: Mapping[str, T]) -> T:
    """The one setting that `wanted` names. Raises EyelevelError that names the allowed ones."""
    if wanted not in known:
        raise EyelevelError(f"unknown {what} {wanted!r}; choose among {', '.join(known)}")
    return known[wanted]


def _value(file: Path, name: str, table: Any, kind: type[T], check: Callable[[T], str | None]) -> T:
    where = f"{file}: [{name}]"
    if not isinstance(table, dict):
        raise EyelevelError(f"{where} is no table")
    allowed = [field.name for field in fields(kind) if field.name != "name"]  # type: ignore[arg-type]
    for key in table:
        if key not in allowed:
            raise EyelevelError(f"{where} has an unknown key {key!r}; allowed are {', '.join(allowed)}")
    try:
        value = kind(**{"name": name, **{key: _frozen(entry) for key, entry in table.items()}})
    except TypeError as error:
        raise EyelevelError(f"{where}: {str(error).partition(') ')[2] or error}") from None
    if fault := check(value):
        raise EyelevelError(f"{where}: {fault}")
    return value


def _frozen(entry: Any) -> Any:
    return tuple(entry) if isinstance(entry, list) else entry
