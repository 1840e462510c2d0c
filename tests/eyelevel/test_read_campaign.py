"""read_campaign, as a notebook calls it."""

import subprocess
import sys
from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.schema import fields
from dataset.table import read_rows
from eyelevel import read_campaign
from measure.instruments.contract import instrument_columns

# pandas' description of its options includes their current values.
NOTEBOOK = """
import pandas
before = pandas.describe_option(_print_desc=False)
from eyelevel import read_campaign
read_campaign("data/reference")
print(pandas.describe_option(_print_desc=False) == before)
"""


def test_reading_a_campaign_leaves_the_notebooks_options_of_pandas_as_they_are() -> None:
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_read_campaign_returns_the_documented_columns_and_types() -> None:
    runs = read_campaign(PROJECT / "data" / "reference")
    assert set(runs) <= {*fields(), *instrument_columns()}
    assert [str(runs[name].dtype) for name in ("valid", "plt", "run")] == ["bool", "float64", "Int64"]
    assert {*runs["network"]} <= {*runs.attrs["campaign"]["settings"]["networks"]}
    assert len(runs) == len(read_rows(PROJECT / "data" / "reference"))


def test_a_folder_without_campaign_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is not a campaign: campaign\.json is missing"):
        read_campaign(str(tmp_path))
