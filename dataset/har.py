"""Times and URLs in the HAR of a run."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

# Browsertime writes URLs into a HAR with these characters escaped (chrome-har 1, by `url.format` of Node). Chromium may
# send them as they are: a query with `|`, a path with `'`.
ESCAPED_IN_HARS = str.maketrans({letter: f"%{ord(letter):02X}" for letter in " \"'<>\\^`{|}"})


def navigated_s(har: Mapping[str, Any]) -> float:
    """When the navigation to the measured page of a HAR began, in s since 1970."""
    return started_s(har["log"]["pages"][-1])


def started_s(dated: Mapping[str, Any]) -> float:
    """When a page or an entry of a HAR began, in s since 1970."""
    return datetime.fromisoformat(dated["startedDateTime"]).timestamp()


def comparable_url(url: str) -> str:
    """`url`, of a HAR or of another log, in the form in which both are equal: as in a HAR, without its fragment."""
    return url.partition("#")[0].translate(ESCAPED_IN_HARS)
