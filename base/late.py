"""Loads modules only when their functions or values are used, since some modules take seconds."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any


def late(function: str) -> Callable[..., Any]:
    """A stand-in for `function` (`module:function`) that loads the module when it is called."""
    return lambda *arguments, **named: resolve_name(function)(*arguments, **named)


def late_value(name: str) -> Callable[[], Any]:
    """A function that loads the module of `name` (`module:NAME`) when it is called, and returns the value."""
    return lambda: resolve_name(name)
