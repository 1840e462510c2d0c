"""An analysis is added by its entry in the list alone, and its tables are shown by theirs."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from support.analysis_truth import simulated_table

from analysis import analyses, hypotheses
from analysis.report import tables
from analysis.simulate import Truth


def test_an_analysis_and_its_table_are_an_entry_each(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = simulated_table(Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=3))
    entries = {"longest": lambda findings: findings["spread"].groupby("protocol", as_index=False)["most"].max()}
    monkeypatch.setattr(analyses, "SUMMARIES", {**analyses.SUMMARIES, **entries})
    columns = ["protocol", ["most", "longest", "ms"], [["protocol", "most"], "both", "{}: {:.1f}"]]
    monkeypatch.setitem(tables.FORMS, "longest", {"title": "Longest", "columns": columns, "note": "Under {level}."})
    with ThreadPoolExecutor() as pool:
        findings = analyses.analyse(campaign, hypotheses.load(), pool)
    table = tables.report_table("longest", findings["longest"], level=0.01)
    longest = campaign.runs.loc[campaign.runs["protocol"] == "quic", "plt"].max()
    longest = max(longest, campaign.runs.loc[campaign.runs["protocol"] == "quic", "lvc"].max())
    assert table.texts.set_index("protocol").loc["QUIC"].tolist() == [f"{longest:.0f}", f"quic: {longest:.1f}"]
    assert (table.title, table.note) == ("Longest", "Under 0.01.")
    pd.testing.assert_frame_equal(table.data, findings["longest"])


def test_every_table_is_of_an_analysis() -> None:
    named = {form["analysis"] for form in tables.FORMS.values() if "analysis" in form}
    assert named <= {*analyses.ANALYSES, *analyses.SUMMARIES}
