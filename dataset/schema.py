"""The columns of `runs.csv` and `runs.parquet`: name, type, unit, meaning, as a Table Schema (Frictionless).

`runs.schema.json` describes the columns that belong neither to a metric (`dataset.metrics`) nor to an instrument
(`measure.instruments`, and `columns` in a campaign's `campaign.json`). The table in docs/runs-csv.md has them
all.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dataset.metrics import METRICS, Metric

SCHEMA = Path(__file__).with_name("runs.schema.json")
TYPES = {"string": "text", "boolean": "`true`, `false`", "integer": "integer", "number": "number"}
# The metrics follow this column.
BEFORE_METRICS = "reason"


def schema(names: Iterable[str], of_instruments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The Table Schema of a table with the columns `names`, in their order.

    `of_instruments` describes the columns of the campaign's instruments. A column that nothing describes, as in the
    campaign of an older version, is of any type.
    """
    described = {**fields(), **of_instruments}
    return {**_schema(), "fields": [described.get(name, {"name": name, "type": "any"}) for name in names]}


def fields() -> dict[str, dict[str, Any]]:
    """The descriptions of the columns that every campaign has, by name, in order."""
    described: dict[str, dict[str, Any]] = {}
    for field in _schema()["fields"]:
        described[field["name"]] = field
        if field["name"] == BEFORE_METRICS:
            described |= {metric.name: metric.column.field() for metric in METRICS}
    return described


@cache
def _schema() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SCHEMA.read_text())
    return document


def rows(of_instruments: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The rows of the table in docs/runs-csv.md. The row of a metric has a link to its section."""
    metrics = {metric.name for metric in METRICS}
    described = {**fields(), **of_instruments}
    names = {name: f"[`{name}`](#{name})" if name in metrics else f"`{name}`" for name in described}
    return [f"| {names[name]} | {_kind(field)} | {field['description']} |" for name, field in described.items()]


def metric_heading(metric: Metric) -> str:
    """The heading of a metric's definition in docs/runs-csv.md."""
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


def _kind(field: Mapping[str, Any]) -> str:
    constraints = field.get("constraints", {})
    bounds = _bounds(constraints) if "maximum" in constraints else ""
    written = "ISO 8601" if field["name"] == "started_at" else ""
    return ", ".join(filter(None, (TYPES[field["type"]], field.get("unit"), bounds, written)))


def _bounds(constraints: Mapping[str, Any]) -> str:
    return f"from {constraints['minimum']} to {constraints['maximum']}"
