"""The schema of the table of runs describes the columns that are written, and the document is made from it."""

from pathlib import Path

import pandas as pd

from analysis.runs import typed
from base.places import PROJECT
from measure.metrics import METRICS
from measure.table import columns
from measure.table_schema import fields, rows

PARQUET = {"string": "string", "boolean": "bool", "integer": "int64", "number": "double"}


def test_the_schema_has_the_columns_that_are_written() -> None:
    assert set(fields()) == set(columns())


def test_the_schema_has_the_units_of_the_metrics() -> None:
    units = {metric.name: metric.unit for metric in METRICS}
    said = {name: fields()[name].get("unit", "") for name in units}
    assert {name: (unit, said[name]) for name, unit in units.items() if said[name] and said[name] != unit} == {}


def test_the_document_has_the_table_of_the_schema() -> None:
    document = (PROJECT / "docs" / "runs-csv.md").read_text()
    assert "\n".join(rows()) in document, "write it anew: python -m measure.table_schema"


def test_parquet_has_the_types_of_the_schema_though_cells_are_empty(tmp_path: Path) -> None:
    table = pd.DataFrame({name: [""] for name in columns()}).assign(valid=[True], further=["x"])
    typed(table).to_parquet(tmp_path / "runs.parquet", index=False)
    written = pd.read_parquet(tmp_path / "runs.parquet", dtype_backend="pyarrow").dtypes.astype(str)
    kinds = {name: kind.removeprefix("large_").removesuffix("[pyarrow]") for name, kind in written.items()}
    assert kinds.pop("further") == "string"
    assert kinds == {name: PARQUET[field["type"]] for name, field in fields().items()}
