"""The schema of the table of runs describes the columns that are written; the documents are generated from it."""

import re
from pathlib import Path

import pandas as pd

from analysis.runs import typed
from base.places import PROJECT
from dataset.metrics import METRICS
from dataset.schema import fields, metric_heading
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT, columns
from measure.instruments.contract import instrument_columns
from measure.instruments.processor import INSTRUMENT as PROCESSOR

# The entries for each metric in docs/runs-csv.md, in addition to its definition.
SAID_OF_METRICS = ["Follows", "Read from", "Empty", "Disturbed by"]
PARQUET = {"string": "string", "boolean": "bool", "integer": "int64", "number": "double"}


def test_the_schema_has_the_columns_that_are_written() -> None:
    assert set(fields()) == set(columns())


def test_every_column_is_described_and_none_twice() -> None:
    assert all(field["description"] for field in [*fields().values(), *instrument_columns().values()])
    assert not fields().keys() & instrument_columns().keys()


def test_the_processors_columns_are_known_to_reports() -> None:
    assert tuple(column.name for column in PROCESSOR.columns) == (*PROCESSOR_COLUMNS, PROCESSOR_WAIT)


def test_the_document_of_metrics_has_each_of_them_with_its_name_and_unit_and_what_is_to_know_of_it() -> None:
    document = (PROJECT / "docs" / "runs-csv.md").read_text()
    sections = dict(re.findall(r"^### `(\w+)`\n\n(.*?)(?=\n\n)", document, re.MULTILINE | re.DOTALL))
    names = {metric.name for metric in METRICS}
    assert names - sections.keys() == set(), "write a section of docs/runs-csv.md for each"
    assert sections.keys() - names == set(), "docs/runs-csv.md has a section of what is no metric"
    for metric in METRICS:
        section = " ".join(sections[metric.name].split())
        assert section.startswith(f"**{metric_heading(metric)}.**"), metric_heading(metric)
        assert re.findall(r"\*(\w[\w ]+?):\* \S", section) == SAID_OF_METRICS, metric.name
        empty = re.search(r"\*Empty:\* (.*?)\*Disturbed", section)
        assert empty and ("without a film" in empty[1]) == metric.from_film, metric.name


def test_parquet_has_the_types_of_the_schema_though_cells_are_empty(tmp_path: Path) -> None:
    table = pd.DataFrame({name: [""] for name in columns()}).assign(valid=[True], further=["x"])
    typed(table).to_parquet(tmp_path / "runs.parquet", index=False)
    written = pd.read_parquet(tmp_path / "runs.parquet", dtype_backend="pyarrow").dtypes.astype(str)
    kinds = {name: kind.removeprefix("large_").removesuffix("[pyarrow]") for name, kind in written.items()}
    assert kinds.pop("further") == "string"
    assert kinds == {name: PARQUET[field["type"]] for name, field in fields().items()}
