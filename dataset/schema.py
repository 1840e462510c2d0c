"""What each column of `runs.csv` and `runs.parquet` is: name, type, unit, meaning. `runs.schema.json` says it, as a
Table Schema (Frictionless). The table in docs/runs-csv.md is made from it, and with the list of metrics the one in
docs/metrics.md.

    python -m dataset.schema        prints the tables of both documents
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from dataset.metrics import METRICS, Metric

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
    """The rows of the table in docs/runs-csv.md. A metric's leads to where docs/metrics.md says more of it."""
    metrics = {metric.name for metric in METRICS}
    names = {name: f"[`{name}`](metrics.md#{name})" if name in metrics else f"`{name}`" for name in fields()}
    return [f"| {names[name]} | {_kind(field)} | {field['description']} |" for name, field in fields().items()]


def metric_rows() -> list[str]:
    """The rows of the table in docs/metrics.md."""
    return [
        f"| [`{metric.name}`](#{metric.name}) | {metric.label} | {metric.unit} | {metric.title or metric.label} "
        f"| {_group(metric)} |"
        for metric in METRICS
    ]


def metric_heading(metric: Metric) -> str:
    """What docs/metrics.md calls a metric where it says what that is."""
    field = fields()[metric.name]
    text = f"{metric.title} ({metric.label})" if metric.title else metric.label
    constraints = field.get("constraints", {})
    if metric.unit:
        text += f", in {metric.unit}"
    elif "maximum" in constraints:
        text += f", {_bounds(constraints)}"
    elif field["type"] != "integer":
        text += ", without a unit"
    return text[0].upper() + text[1:]


def _group(metric: Metric) -> str:
    if metric.is_of_web:
        return "of the web"
    return "the paper's" if metric.is_time else "of the link"


def _kind(field: dict[str, Any]) -> str:
    constraints = field.get("constraints", {})
    bounds = _bounds(constraints) if "maximum" in constraints else ""
    written = "ISO 8601" if field["name"] == "started_at" else ""
    return ", ".join(filter(None, (TYPES[field["type"]], field.get("unit"), bounds, written)))


def _bounds(constraints: dict[str, Any]) -> str:
    return f"from {constraints['minimum']} to {constraints['maximum']}"


if __name__ == "__main__":
    print("\n".join([*rows(), "", *metric_rows()]))
