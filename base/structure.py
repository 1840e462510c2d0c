"""Converts documents (JSON, TOML) into typed values and back, by cattrs: the same rules for settings, specs and
records.

Types are strict: a number is not accepted as text, nor true as a number. An unknown key is an error. A missing key is
an error unless the type has a default for it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from base.bounded import parse_json
from base.errors import EyelevelError

# Processes of a replay import the types of settings, but convert none: they must not wait for cattrs.
if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


def structured(document: Any, kind: type[T], where: str) -> T:
    """`document` as a `kind`. Raises EyelevelError with one line that begins with `where` and names the key."""
    try:
        return _converter().structure(document, kind)
    except Exception as error:
        raise EyelevelError(f"{where}{_fault(error, [])}") from None


def unstructured(value: Any) -> Any:
    """`value` as a document that JSON takes: the inverse of `structured`."""
    return _converter().unstructure(value)


def from_json(text: str, kind: type[T], where: str) -> T:
    """The `kind` that `text` contains as JSON. Raises EyelevelError that begins with `where`."""
    try:
        document = parse_json(text.encode())
    except ValueError as error:
        raise EyelevelError(f"{where}: {error}") from None
    return structured(document, kind, where)


def to_json(value: Any) -> str:
    """`value` as JSON; `from_json` is the inverse."""
    return json.dumps(unstructured(value))


def _fault(error: BaseException, path: list[str]) -> str:
    """The first fault, and its place in the document."""
    from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError, IterableValidationNote

    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            path = [*path, note.name]
        elif isinstance(note, IterableValidationNote):
            path = [*path, str(note.index)]
    if isinstance(error, ExceptionGroup):
        return _fault(error.exceptions[0], path)
    if isinstance(error, ForbiddenExtraKeysError):
        allowed = ", ".join(field.name for field in fields(error.cl)) if is_dataclass(error.cl) else ""
        return f"{_prefix(path)} has an unknown key {min(error.extra_fields)!r}; allowed are {allowed}"
    if isinstance(error, KeyError):
        return f"{_prefix(path[:-1])}: the key {path[-1] if path else str(error)!r} is missing"
    text = "is not a table" if isinstance(error, TypeError | AttributeError) else str(error)  # the value has no keys
    return f": {'.'.join(path)} {text}" if path else f": {text}"


def _prefix(path: list[str]) -> str:
    return f": {'.'.join(path)}" if path else ""


# The type of a field → the types that its value may have in a document, and their name in errors. A number stays as it
# was written, 24 or 24.0, so that reading and writing a document does not change it.
_PRIMITIVES: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
    Path: ((str, Path), "a path"),
}


def _primitive(value: Any, kind: Any) -> Any:
    types, name = _PRIMITIVES[kind]
    is_of_type = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
    if not is_of_type or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"must be {name}, not {value!r}")
    return Path(value) if kind is Path else value


def _tuple(value: Any, kind: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, not {value!r}")
    arguments = get_args(kind)
    kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
    if len(kinds) != len(value):
        raise ValueError(f"must be a list of {len(kinds)}, not of {len(value)}")
    return tuple(_converter().structure(entry, one) for entry, one in zip(value, kinds, strict=True))


def _mapping(value: Any, kind: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a table, not {value!r}")
    key_kind, value_kind = get_args(kind)
    structure = _converter().structure
    return {structure(key, key_kind): structure(entry, value_kind) for key, entry in value.items()}


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (dict, Mapping)


@cache
def _converter() -> "Converter":
    from cattrs import Converter

    converter = Converter(forbid_extra_keys=True)
    for kind in _PRIMITIVES:
        converter.register_structure_hook(kind, _primitive)
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook_func(_is_tuple, _tuple)
    converter.register_structure_hook_func(_is_mapping, _mapping)
    return converter
