"""The only errors that are meant for users to read."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from base.text import printable_lines

P = ParamSpec("P")
R = TypeVar("R")


class EyelevelError(Exception):
    """Something outside the program is wrong: an input, a tool, the machine.

    The message is one line that says what is wrong, where, and what to do about it. Any other exception that escapes
    is a bug and keeps its traceback.
    """


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Decorate the entry point of a command line: an `EyelevelError` becomes one line and exit status 1."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EyelevelError as error:
            sys.exit(f"eyelevel: {printable_lines(str(error))}")

    return run
