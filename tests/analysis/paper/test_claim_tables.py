"""The tables of claims state the declaration, and show the numbers on which claims are tested."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.analysis_truth import simulated_table

from analysis import hypotheses
from analysis.analyses import analyse
from analysis.report.sections.paper import claims
from eyelevel.simulate import Truth


@pytest.mark.slow
def test_the_tables_of_claims() -> None:
    campaign = simulated_table(Truth(sites=9, networks=("dsl",), protocols=("tcp+", "quic"), runs=3))
    with ThreadPoolExecutor() as pool:
        findings = analyse(campaign, replace(hypotheses.load(), significant_p=0.03), pool)
    by_name = {table.name: table for table in claims(findings).tables}
    assert "tested at p < 0.03, corrected by Bonferroni" in by_name["claims"].note
    agreement = by_name["metric_agreement"]
    assert "p < 0.03, corrected by Holm's method" in agreement.note
    assert agreement.data[["metric", "other_metric"]].to_numpy().tolist() == [
        ["fvc", "si"], ["fvc", "vc85"], ["fvc", "plt"], ["si", "vc85"], ["si", "plt"], ["vc85", "plt"],
    ]  # fmt: skip
    assert agreement.texts["other metric"].tolist() == ["SI", "VC85", "PLT", "VC85", "PLT", "PLT"]
    assert agreement.data["correlation"].between(-1, 1).all() and (agreement.data["sites"] == 9).all()
