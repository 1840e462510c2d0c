"""Values and errors that one of our processes sends to another."""

import pickle
from base64 import b85decode, b85encode
from typing import Any

from base.errors import EyelevelError


def as_argument(value: Any) -> str:
    """`value` as an argument of a process of ours; `from_argument` is the inverse.

    A page load starts two such processes. Each would need some 50 ms to load what converts JSON (`base.structure`).
    """
    return b85encode(pickle.dumps(value)).decode()


def from_argument(text: str) -> Any:
    """The value that `as_argument` made an argument of."""
    return pickle.loads(b85decode(text))


def portable(error: Exception) -> Exception:
    """`error`, or an error with the same text if it cannot be sent itself."""
    try:
        pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PickleError):
        return EyelevelError(str(error))
    return error
