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
    is a bug and keeps its traceback. `status` is the exit status of a program that ends with it.
    """

    status = 1


class Misuse(EyelevelError):
    """The command line is wrong, whatever the machine and its files: an option, its value, or a combination of them."""

    status = 2


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Decorate the entry point of a command line: an `EyelevelError` becomes one line and its exit status."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EyelevelError as error:
            print_error(str(error))
            sys.exit(error.status)

    return run


def print_error(text: str) -> None:
    """Print the `text` of an error, which may be untrusted, on standard error."""
    print(f"eyelevel: {printable_lines(text)}", file=sys.stderr)
