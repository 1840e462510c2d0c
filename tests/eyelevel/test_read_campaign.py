"""A notebook reads a campaign by one function."""

from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.schema import fields
from dataset.table import read_rows
from eyelevel import read_campaign


def test_a_notebook_reads_a_campaign_as_it_is_documented() -> None:
    runs = read_campaign(PROJECT / "data" / "reference")
    described = fields()
    assert set(runs) <= set(described)
    assert [str(runs[name].dtype) for name in ("valid", "plt", "run")] == ["bool", "float64", "Int64"]
    assert {*runs["network"]} <= {*runs.attrs["campaign"]["settings"]["networks"]}
    assert len(runs) == len(read_rows(PROJECT / "data" / "reference"))


def test_a_notebook_is_told_what_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is no campaign: campaign\.json is missing"):
        read_campaign(str(tmp_path))
