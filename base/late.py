"""Names of functions and values whose module is loaded when they are used, since some modules take seconds."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any


def late(function: str) -> Callable[..., Any]:
    """The `function` of this name (`module:function`), whose module is loaded when it is called."""
    return lambda *arguments, **named: resolve_name(function)(*arguments, **named)


def late_value(name: str) -> Callable[[], Any]:
    """A function that returns the value of this name (`module:NAME`), whose module is loaded when it is called."""
    return lambda: resolve_name(name)
