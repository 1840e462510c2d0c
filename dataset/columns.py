"""A column of `runs.csv`, described where it is filled: by a metric or by an instrument."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of numbers: its `name`, `unit` (none for counts and shares), and a `description` for docs/runs-csv.md.

    `is_count`: whether its numbers are whole. `is_share`: whether they are from 0 to 1.
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
