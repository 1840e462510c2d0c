"""Reading settings files: TOML tables into immutable values, checked once, here.

The testbed's own files come first: the paper's settings, which together are `all`, then further ones. Users add
theirs in files of the same names in a folder of their own, which the environment variable EYELEVEL_TUNING names.
"""

import itertools
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from base.errors import EyelevelError

T = TypeVar("T")

FOLDER = Path(__file__).parent
OWN_FOLDER = "EYELEVEL_TUNING"
# What stands for all of the paper's settings.
ALL = "all"
# Marks a field of a setting that follows from others and cannot be given.
DERIVED = {"derived": True}


class Settings(dict[str, T], Generic[T]):
    """Settings by name. `groups` are names that stand for several of them; `all` is one."""

    def __init__(self, values: Mapping[str, T], groups: Mapping[str, Iterable[str]] | None = None) -> None:
        super().__init__(values)
        self.groups = {name: tuple(members) for name, members in (groups or {ALL: values}).items()}

    def choices(self) -> str:
        """What may be chosen, in words; the members of a large group go without saying."""
        unsaid = {name for group, names in self.groups.items() if group != ALL for name in names}
        return ", ".join([name for name in self if name not in unsaid] + [g for g in self.groups if g != ALL])


def load_all(filename: str, read: Callable[[Path], Settings[T]]) -> Settings[T]:
    """The settings of every file of this name: the paper's, further ones, and the user's own. Raises EyelevelError."""
    paper = read(FOLDER / filename)
    found = Settings(paper, {ALL: paper})
    for folder in (FOLDER / "further", own_folder()):
        if folder and (folder / filename).exists():
            more = read(folder / filename)
            for name in (*more, *more.groups):
                if name in found or (name in found.groups and name != ALL):
                    raise EyelevelError(f"{folder / filename}: there is already a [{name}]; choose another name")
            found.update(more)
            found.groups.update({name: members for name, members in more.groups.items() if name != ALL})
    return found


def own_folder() -> Path | None:
    """The folder of the user's own settings, if there is one. Raises EyelevelError when it holds none."""
    if not (named := os.environ.get(OWN_FOLDER)):
        return None
    folder = Path(named)
    if not any((folder / name).exists() for name in ("networks.toml", "protocols.toml")):
        raise EyelevelError(f"{folder} has neither a networks.toml nor a protocols.toml")
    return folder


def load_tables(
    file: Path, kind: type[T], check: Callable[[T], str | None], units: Mapping[str, str] | None = None
) -> Settings[T]:
    """Every table of `file` as a `kind` (a dataclass with a `name`), by its name.

    A table with lists for some of the keys of `units` is a grid: it gives a setting for each combination, named after
    the table and the values with their units, and is the group of them. A key "a, b" gives its value to both.
    `check` returns what is wrong with a value, or None. Raises EyelevelError that names file, table and key.
    """
    try:
        tables = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EyelevelError(f"{file}: {error}") from None
    values: dict[str, T] = {}
    groups: dict[str, list[str]] = {}
    for title, table in tables.items():
        members = list(_combinations(title, table, units or {}))
        for name, entries in members:
            values[name] = _value(file, name, entries, kind, check)
        if len(members) > 1:
            groups[title] = [name for name, _ in members]
    return Settings(values, {ALL: list(values), **groups})


def choose(what: str, wanted: str | Iterable[str], known: Mapping[str, T]) -> list[T]:
    """The settings that `wanted` names: names, or groups such as `all`, separated by commas or blanks.

    Raises EyelevelError that names the allowed ones.
    """
    settings = known if isinstance(known, Settings) else Settings(known)
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else list(wanted)
    allowed = f"choose among {settings.choices()}, or all"
    if not names:
        raise EyelevelError(f"no {what} was named; {allowed}")
    for name in names:
        if name not in settings and name not in settings.groups:
            raise EyelevelError(f"unknown {what} {name!r}; {allowed}")
    members = [member for name in names for member in settings.groups.get(name, (name,))]
    return [settings[name] for name in dict.fromkeys(members)]


def choose_one(what: str, wanted: str, known: Mapping[str, T]) -> T:
    """The one setting that `wanted` names. Raises EyelevelError that names the allowed ones."""
    if wanted not in known:
        settings = known if isinstance(known, Settings) else Settings(known)
        raise EyelevelError(f"unknown {what} {wanted!r}; choose among {settings.choices()}")
    return known[wanted]


def _combinations(title: str, table: Any, units: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The settings that a table stands for, each with its name: itself, or those of a grid."""
    if not isinstance(table, dict):
        yield title, table
        return
    axes = [key for key in table if isinstance(table[key], list) and units.keys() >= set(key.split(", "))]
    fixed = {key: value for key, value in table.items() if key not in axes}
    for point in itertools.product(*(table[key] for key in axes)):
        parts = [f"{value}{units[key.split(', ')[0]]}" for key, value in zip(axes, point, strict=True)]
        values = {name: value for key, value in zip(axes, point, strict=True) for name in key.split(", ")}
        yield "-".join([title, *parts]), {**fixed, **values}


def _value(file: Path, name: str, table: Any, kind: type[T], check: Callable[[T], str | None]) -> T:
    where = f"{file}: [{name}]"
    if not isinstance(table, dict):
        raise EyelevelError(f"{where} is no table")
    settable = [field for field in fields(kind) if "derived" not in field.metadata]  # type: ignore[arg-type]
    allowed = [field.name for field in settable if field.name != "name"]
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
