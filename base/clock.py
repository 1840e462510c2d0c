"""When something was done, as documents tell it."""

import time


def now_iso() -> str:
    """The time of day, with its offset from UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
