"""What each column of `runs.csv` and `runs.parquet` is: name, type, unit, meaning. `runs.schema.json` says it, as a
Table Schema (Frictionless), and the table in docs/runs-csv.md is made from it.

    python -m measure.table_schema        prints the table of the document
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).with_name("runs.schema.json")
TYPES = {"string": "text", "boolean": "`true`, `false`", "integer": "integer", "number": "number"}


@cache
def schema() -> dict[str, Any]:
    """The Table Schema. A column of a study's own is not in it."""
    document: dict[str, Any] = json.loads(SCHEMA.read_text())
    return document


def fields() -> dict[str, dict[str, Any]]:
    """The columns' descriptions, by name, in order."""
    return {field["name"]: field for field in schema()["fields"]}


def rows() -> list[str]:
    """The rows of the document's table."""
    return [f"| `{name}` | {_kind(field)} | {field['description']} |" for name, field in fields().items()]


def _kind(field: dict[str, Any]) -> str:
    constraints = field.get("constraints", {})
    bounds = f"from {constraints['minimum']} to {constraints['maximum']}" if "maximum" in constraints else ""
    written = "ISO 8601" if field["name"] == "started_at" else ""
    return ", ".join(filter(None, (TYPES[field["type"]], field.get("unit"), bounds, written)))


if __name__ == "__main__":
    print("\n".join(rows()))
