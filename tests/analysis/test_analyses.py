"""An entry in the list suffices to add an analysis, and an entry for each of its tables to show them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import cast, get_args

import numpy as np
import pandas as pd
import pytest
from support.analysis_truth import simulated_table, varied_findings
from support.reports import parts_of_report

from analysis import analyses, hypotheses
from analysis.findings import Findings, Table
from analysis.networks import further
from analysis.report import tables
from analysis.report.sections.declared import confirmatory
from analysis.report.sentences import equivalence_margin
from analysis.runs import CampaignTable
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from eyelevel.simulate import Truth

DECLARED = hypotheses.load()
# Tables whose two ends are not an interval, but the range over omitted sites, or over possible results of lost runs;
# and the table of what stands beside decided contrasts, which are others at another threshold.
RANGES = ("sensitivity", "loss_bounds", "other_metrics")


def ends_of(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The columns with the lower and upper ends of intervals."""
    lower = [name for name in table if name == "low" or name.endswith("_low")]
    return [(name, f"{name.removesuffix('low')}high") for name in lower]


@pytest.fixture(scope="module")
def unusual() -> Findings:
    """The findings under hypotheses with another confidence, significance level and margin than the default ones."""
    return varied_findings(replace(DECLARED, confidence=0.9, significant_p=0.03, equivalence_margin=0.07))


@pytest.mark.slow
def test_every_interval_is_of_the_declared_confidence(unusual: Findings) -> None:
    usual, narrow = varied_findings(DECLARED), unusual
    seen = set()
    for name in set(usual.tables).difference(RANGES):
        for low, high in ends_of(usual[name]):
            widths = [
                (findings[name][high] - findings[name][low]).to_numpy(dtype=float) for findings in (usual, narrow)
            ]
            is_known = np.isfinite(widths).all(axis=0) & (widths[0] > 0)
            if is_known.any():
                seen.add(name)
                # The ends of intervals of counts are whole numbers, and may be equal.
                assert (widths[1] <= widths[0])[is_known].all(), f"{name}: {low}"
                assert (widths[1] < widths[0])[is_known].any(), f"{name}: {low}"
    assert {"confirmatory", "contrasts", "halves", "drift", "aa_calibration", "shrunken", "paper"} <= seen


@pytest.mark.slow
def test_headings_notes_and_captions_tell_the_declared_confidence_and_threshold(unusual: Findings) -> None:
    parts = parts_of_report(unusual)
    all_tables = [table for part in parts for table in part.tables]
    headings = [name for table in all_tables for name in table.texts]
    texts = [*headings, *(table.note for table in all_tables)]
    texts += [figure.caption for part in parts for figure in part.figures]
    assert sum("90 %" in text for text in texts) >= 10
    assert [text for text in texts if "95" in text or "{" in text] == []
    assert all("%" in name for name in headings if "interval" in name)
    notes = {table.name: table.note for table in all_tables}
    assert "tested at p < 0.03" in notes["claims"] and "corrected p < 0.03" in notes["confirmatory"]


@pytest.mark.slow
def test_the_note_of_the_declared_hypotheses_tells_the_margin_of_each_kind_of_network(unusual: Findings) -> None:
    note = confirmatory(unusual).note
    margin = "0.5 round trips of the network, or 7 % of the reference's time where it has no RTT (LTE)"
    assert f"shown to differ by less than {margin}. Not decided" in note
    networks = [({"dsl": {"min_rtt_ms": 24.0}}, "0.5 round trips of the network")]
    networks += [({"moon": {}, "mars": {"min_rtt_ms": 0}}, "5 % of the reference's time")]
    for settings, text in networks:
        campaign = CampaignTable(pd.DataFrame(), CampaignDocument(CampaignSettings(networks=settings)))
        assert equivalence_margin(DECLARED, campaign) == text


@pytest.mark.slow
def test_an_analysis_and_its_table_are_an_entry_each(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = simulated_table(Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=3))
    name = cast(Table, "longest")
    entries = {name: lambda findings: findings["spread"].groupby("protocol", as_index=False)["most"].max()}
    columns = ["protocol", ["most", "longest", "ms"], [["protocol", "most"], "both", "{}: {:.1f}"]]
    monkeypatch.setitem(tables.FORMS, "longest", {"title": "Longest", "columns": columns, "note": "Under {level}."})
    monkeypatch.setattr(analyses, "STAGES", (*analyses.STAGES, entries))
    with ThreadPoolExecutor() as pool:
        findings = analyses.analyse(campaign, hypotheses.load(), pool)
    table = tables.report_table(name, findings[name], level=0.01)
    longest = campaign.runs.loc[campaign.runs["protocol"] == "quic", "plt"].max()
    longest = max(longest, campaign.runs.loc[campaign.runs["protocol"] == "quic", "lvc"].max())
    assert table.texts.set_index("protocol").loc["QUIC"].tolist() == [f"{longest:.0f}", f"quic: {longest:.1f}"]
    assert (table.title, table.note) == ("Longest", "Under 0.01.")
    pd.testing.assert_frame_equal(table.data, findings[name])


def test_every_table_is_of_an_analysis() -> None:
    named = {form["analysis"] for form in tables.FORMS.values() if "analysis" in form}
    assert named <= {*chain(*analyses.STAGES)} == set(get_args(Table))


def test_what_a_network_has_beyond_the_papers_is_in_words() -> None:
    network = {"loss": 0.1, "retransmit_ms": 60, "drop_up_packets": [7, 2], "drop_down_at_ms": [1500]}
    repaired = "the link repairs losses, 60 ms a try"
    assert further(network) == [repaired, "packets 7, 2 up dropped", "a packet down dropped at 1500 ms"]
    assert further({"loss": 0.1, "retransmit_ms": None, "drop_up_packets": None}) == []
