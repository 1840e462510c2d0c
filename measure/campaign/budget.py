"""How long a measurement may take.

A campaign with a budget begins a block only if the block is expected to end within the budget. So the campaign stops
between two blocks, and the same command resumes it.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from base.errors import Misuse

# The seconds of an hour, a minute and a second, in the order in which a budget names them.
UNITS_S = (3600, 60, 1)


@dataclass(frozen=True)
class Budget:
    """A time limit of `seconds`, counted from `begun_s` on the monotonic clock `now`."""

    seconds: float
    begun_s: float
    now: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, seconds: float, now: Callable[[], float] = time.monotonic) -> "Budget":
        """A budget that begins now."""
        return cls(seconds, now(), now)

    @property
    def remaining_s(self) -> float:
        """The seconds that remain, negative when the budget is used up."""
        return self.begun_s + self.seconds - self.now()


def budget_for(seconds: float) -> str:
    """A budget in which `seconds` fit, with half a minute or more to spare, in whole minutes: 7m."""
    return f"{seconds / 60 + 1:.0f}m"


def read_budget(text: str) -> float:
    """The seconds of a budget written like 90s, 60m, 1.5h, 2h15m. Raises EyelevelError."""
    number = r"\d+(?:\.\d+)?"
    match = re.fullmatch(rf"(?:({number})h)?(?:({number})m)?(?:({number})s)?", text)
    if not text or not match:
        raise Misuse(f"write a budget as 90s, 60m, 1.5h or 2h15m, not {text!r}")
    return sum(float(count or 0) * unit_s for count, unit_s in zip(match.groups(), UNITS_S, strict=True))
