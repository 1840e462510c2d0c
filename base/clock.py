"""The format of times in documents."""

import time


def now_iso() -> str:
    """The local time with its offset from UTC, to the second (ISO 8601)."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
