"""Times in the HAR of a run."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any


def navigated_s(har: Mapping[str, Any]) -> float:
    """When the navigation to the measured page of a HAR began, in s since 1970."""
    return started_s(har["log"]["pages"][-1])


def started_s(dated: Mapping[str, Any]) -> float:
    """When a page or an entry of a HAR began, in s since 1970."""
    return datetime.fromisoformat(dated["startedDateTime"]).timestamp()
