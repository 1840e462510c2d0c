"""Errors that can be sent from one of our processes to another."""

import pickle

from base.errors import EyelevelError


def portable(error: Exception) -> Exception:
    """`error`, or an error with the same text if it cannot be sent itself."""
    try:
        pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PickleError):
        return EyelevelError(str(error))
    return error
