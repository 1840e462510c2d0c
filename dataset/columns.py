"""A column of `runs.csv`, described by the code that fills it: a metric or an instrument."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of numbers: its `name`, `unit` (empty for counts and shares), and a `description` for docs/runs-csv.md.

    `is_count`: its numbers are whole. `is_share`: its numbers are from 0 to 1.
    """

    name: str
    unit: str
    description: str
    is_count: bool = False
    is_share: bool = False

    def field(self) -> dict[str, Any]:
        """The column as a field of a Table Schema (Frictionless)."""
        return {
            "name": self.name,
            "type": "integer" if self.is_count else "number",
            **({"unit": self.unit} if self.unit else {}),
            **({"constraints": {"minimum": 0, "maximum": 1}} if self.is_share else {}),
            "description": self.description,
        }
