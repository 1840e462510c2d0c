"""Errors on their way from one process of ours to another."""

import pickle

from base.errors import EyelevelError


def portable(error: Exception) -> Exception:
    """`error`, or one with its text where it cannot be sent itself."""
    try:
        pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PickleError):
        return EyelevelError(str(error))
    return error
