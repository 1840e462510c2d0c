"""read_campaign, as a notebook calls it."""

from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.schema import fields
from dataset.table import read_rows
from eyelevel import read_campaign
from measure.instruments.contract import instrument_columns


def test_read_campaign_returns_the_documented_columns_and_types() -> None:
    runs = read_campaign(PROJECT / "data" / "reference")
    assert set(runs) <= {*fields(), *instrument_columns()}
    assert [str(runs[name].dtype) for name in ("valid", "plt", "run")] == ["bool", "float64", "Int64"]
    assert {*runs["network"]} <= {*runs.attrs["campaign"]["settings"]["networks"]}
    assert len(runs) == len(read_rows(PROJECT / "data" / "reference"))


def test_a_folder_without_campaign_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is no campaign: campaign\.json is missing"):
        read_campaign(str(tmp_path))
