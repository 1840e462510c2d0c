"""Reads settings files: converts TOML tables into immutable values, and checks them once.

The testbed's files come first: the paper's settings, which together are `all`, then further ones. Users add theirs in
files of the same names in a folder that the environment variable EYELEVEL_TUNING names.

A table with the key `like` inherits all keys of the table of that name, which is in the same file or in an earlier one;
its own keys override them. The key `source`, which is never inherited, states where the numbers of a table come from;
it is not a setting, and nothing depends on it.
"""

import itertools
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from base.errors import EyelevelError, Misuse
from base.structure import structured
from base.text import unknown

T = TypeVar("T")
Table = dict[str, Any]

FOLDER = Path(__file__).parent
FURTHER_FOLDER = FOLDER / "further"
USER_FOLDER = "EYELEVEL_TUNING"
USER_FILES = ("networks.toml", "protocols.toml", "devices.toml")
# The name of the group of all the paper's settings.
ALL = "all"
# The key that names the table to inherit from.
LIKE = "like"
# The key that states where a table's numbers come from.
SOURCE = "source"
# Marks a field of a setting that is derived from others and cannot be given.
DERIVED = {"derived": True}


class Catalogue(dict[str, T], Generic[T]):
    """Settings by name. `groups` are names that stand for several settings, such as `all`.

    `tables` are the source tables by title, including inherited keys. `places` say where a user finds each setting: the
    file, and the table in it. `sources` state where the numbers of some settings come from.
    """

    def __init__(
        self,
        values: Mapping[str, T],
        groups: Mapping[str, Iterable[str]] | None = None,
        tables: Mapping[str, Table] | None = None,
        places: Mapping[str, str] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(values)
        self.groups = {name: tuple(members) for name, members in (groups or {ALL: values}).items()}
        self.tables = dict(tables or {})
        self.places = dict(places or {})
        self.sources = dict(sources or {})

    def copy(self) -> "Catalogue[T]":
        """Another catalogue with the same settings."""
        return Catalogue(self, self.groups, self.tables, self.places, self.sources)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """Reads the settings files of one name.

    `kind` is the type of a setting: a dataclass with a `name`. `finish` returns a setting with its derived values, or
    raises ValueError with the fault. `prepare` gets each table as written in a file, and the file. A table with lists
    for some of the keys of `units` is a grid: it gives a setting for each combination, named after the table and the
    values with their units; its own name stands for the group. Keys of nested tables are `a.b`. A key "a, b" gives its
    value to both.
    """

    filename: str
    kind: type[T]
    finish: Callable[[T], T]
    units: Mapping[str, str]
    prepare: Callable[[Table, Path], Table] = lambda table, _: table

    def load(self, file: Path | None = None) -> Catalogue[T]:
        """The settings of every file: the paper's, further ones, and the user's; or only those of `file`. Raises
        EyelevelError.

        Tables in `file` may inherit from the testbed's.
        """
        catalogue = self._own.copy()
        if file:
            return self.read(file, catalogue.tables)
        if (folder := user_folder()) and (folder / self.filename).exists():
            self._add(catalogue, folder / self.filename)
        return catalogue

    @cached_property
    def _own(self) -> Catalogue[T]:
        """The settings in the testbed's own files, which are read once: they do not change while a program runs."""
        catalogue = self.read(FOLDER / self.filename, {})
        if (further := FURTHER_FOLDER / self.filename).exists():
            self._add(catalogue, further)
        return catalogue

    def read(self, file: Path, others: Mapping[str, Table]) -> Catalogue[T]:
        """Every table of `file` as a setting, by its name; it may inherit from the tables in `others`.

        Raises EyelevelError that names file, table and key.
        """
        try:
            document = tomllib.loads(file.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise EyelevelError(f"{file}: {error}") from None
        said = {
            title: _source(table.pop(SOURCE), f"{file}: [{title}]")
            for title, table in document.items()
            if isinstance(table, dict) and SOURCE in table
        }
        given = {
            title: self.prepare(table, file) if isinstance(table, dict) else table for title, table in document.items()
        }
        tables = {title: _completed(title, given, others, file, ()) for title in given}
        values: dict[str, T] = {}
        groups: dict[str, list[str]] = {}
        places: dict[str, str] = {}
        sources: dict[str, str] = {}
        for title, table in tables.items():
            if title == ALL:
                raise EyelevelError(f"{file}: [{ALL}] stands for all that there is; choose another name")
            members = list(_combinations(title, table, self.units))
            for name, entries in members:
                if name in values:
                    raise EyelevelError(
                        f"{file}: [{title}] makes a second {name}, as {places[name].removeprefix(f'{file}: ')} does; "
                        "choose other names, or name each value once"
                    )
                values[name] = self._value(file, name, entries)
                places[name] = f"{file}: [{title}]"
                sources |= {name: said[title]} if title in said else {}
            if len(members) > 1:
                groups[title] = [name for name, _ in members]
        return Catalogue(values, {ALL: list(values), **groups}, tables, places, sources)

    def _add(self, catalogue: Catalogue[T], file: Path) -> None:
        more = self.read(file, catalogue.tables)
        for name in (*more, *more.groups):
            if name in catalogue or (name in catalogue.groups and name != ALL):
                raise EyelevelError(f"{file}: there is already a [{name}]; choose another name")
        catalogue.update(more)
        catalogue.groups.update({name: members for name, members in more.groups.items() if name != ALL})
        catalogue.tables.update(more.tables)
        catalogue.places.update(more.places)
        catalogue.sources.update(more.sources)

    def _value(self, file: Path, name: str, table: Table) -> T:
        where = f"{file}: [{name}]"
        settable = [field for field in fields(self.kind) if "derived" not in field.metadata]  # type: ignore[arg-type]
        allowed = [field.name for field in settable if field.name != "name"]
        for key in table:
            if key not in allowed:
                raise EyelevelError(
                    f"{where} has an unknown key {key!r}; allowed are {', '.join([*allowed, LIKE, SOURCE])}"
                )
        try:
            return self.finish(structured({"name": name, **table}, self.kind, where))
        except ValueError as fault:
            raise EyelevelError(f"{where}: {fault}") from None


def user_folder() -> Path | None:
    """The folder of the user's settings; None if none is named. Raises EyelevelError if it contains none of
    USER_FILES."""
    if not (named := os.environ.get(USER_FOLDER)):
        return None
    folder = Path(named)
    if not any((folder / name).exists() for name in USER_FILES):
        raise EyelevelError(f"{folder} has none of {', '.join(USER_FILES)}")
    return folder


def choose(what: str, wanted: str | Iterable[str], known: Mapping[str, T]) -> list[T]:
    """The settings that `wanted` names: names, or groups such as `all`, separated by commas or blanks.

    Raises Misuse for a wrong name in a text, which is from the command line, and EyelevelError for one in a list.
    """
    settings = known if isinstance(known, Catalogue) else Catalogue(known)
    names, fault = list(wanted), EyelevelError
    if isinstance(wanted, str):
        names, fault = wanted.replace(",", " ").split(), Misuse
    if not names:
        raise fault(f"no {what} was named")
    for name in names:
        if name not in settings and name not in settings.groups:
            raise fault(unknown(what, name, {**settings, **settings.groups, ALL: ()}))
    members = [member for name in names for member in settings.groups.get(name, (name,))]
    return [settings[name] for name in dict.fromkeys(members)]


def choose_one(what: str, wanted: str, known: Mapping[str, T]) -> T:
    """The one setting that `wanted` names. Raises Misuse."""
    if wanted not in known:
        raise Misuse(unknown(what, wanted, known))
    return known[wanted]


def _source(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise EyelevelError(f"{where}: {SOURCE} must be text, not {text!r}")
    return " ".join(text.split())


def _completed(
    title: str, given: Mapping[str, Any], others: Mapping[str, Table], file: Path, path: tuple[str, ...]
) -> Table:
    """The table `title` of `file` with all keys that it inherits; `path` are the tables that inherit from it."""
    where = f"{file}: [{path[0] if path else title}]"
    table = given[title]
    if not isinstance(table, dict):
        raise EyelevelError(f"{where} is not a table" if not path else f"{where}: {LIKE}: [{title}] is not a table")
    if LIKE not in table:
        return table
    base, path = table[LIKE], (*path, title)
    if not isinstance(base, str):
        raise EyelevelError(f"{where}: {LIKE} must be the name of a table, not {base!r}")
    if base in path:
        raise EyelevelError(f"{where}: {LIKE} is circular: {' → '.join((*path, base))}")
    if base in given:
        built_on = _completed(base, given, others, file, path)
    elif base in others:
        built_on = others[base]
    else:
        known = ", ".join([*(name for name in given if name not in path), *others])
        raise EyelevelError(f"{where}: {LIKE}: there is no [{base}]; there are {known}")
    return _merged(built_on, {key: value for key, value in table.items() if key != LIKE})


def _merged(base: Table, override: Table) -> Table:
    """`base` with the values in `override` in place of its own; nested tables are merged in the same way.

    A key "a, b" is replaced when either name is overridden.
    """
    replaced = {name for key in override for name in key.split(", ")}
    remaining = {key: value for key, value in base.items() if key in override or replaced.isdisjoint(key.split(", "))}
    merged = {
        key: _merged(remaining[key], value)
        if isinstance(value, dict) and isinstance(remaining.get(key), dict)
        else value
        for key, value in override.items()
    }
    return {**remaining, **merged}


def _combinations(title: str, table: Table, units: Mapping[str, str]) -> Iterator[tuple[str, Table]]:
    """The settings of a table, each with its name: one, or several for a grid."""
    axes = list(_axes(table, units, ()))
    for point in itertools.product(*(values for _, _, values in axes)):
        entries, parts = table, [title]
        for (path, unit, _), value in zip(axes, point, strict=True):
            entries = _replaced(entries, path, value)
            parts.append(_name(value, unit))
        yield "-".join(parts), {name: value for key, value in entries.items() for name in key.split(", ")}


def _axes(
    table: Table, units: Mapping[str, str], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, list[Any]]]:
    """The keys of a table, nested ones included, whose values are lists of variations, with their units."""
    for key, value in table.items():
        names = [".".join([*(part.split(", ")[0] for part in path), name]) for name in key.split(", ")]
        if isinstance(value, dict):
            yield from _axes(value, units, (*path, key))
        elif isinstance(value, list) and units.keys() >= set(names):
            yield (*path, key), units[names[0]], value


def _replaced(table: Table, path: tuple[str, ...], value: Any) -> Table:
    """`table` with `value` at `path`."""
    key, *rest = path
    return {**table, key: _replaced(table[key], tuple(rest), value) if rest else value}


def _name(value: Any, unit: str) -> str:
    """A value as it appears in the name of a grid's setting."""
    if isinstance(value, bool):
        return unit if value else f"no-{unit}"
    return f"{Path(value).stem if isinstance(value, str) else value}{unit}"
