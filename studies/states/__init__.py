"""States: what congestion control does while a page loads, over time."""

from studies.states import section

__all__ = ["section"]
