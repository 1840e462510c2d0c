"""Means over sites like those of the campaign."""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import simulated_table

from analysis import hypotheses
from analysis.findings import Findings
from analysis.report.conclusion import findings_of
from analysis.statistics.ratios import block_ratios, locations
from dataset.metrics import time_names
from eyelevel.simulate import Truth

KEY = ["reference", "compared", "network", "metric"]


@cache
def simulated(sites: int = 4) -> Findings:
    """Findings that tests must not change."""
    truth = Truth(sites=sites, networks=("dsl", "lte"), runs=5, effects={"quic": -0.2})
    return findings_of(simulated_table(truth), hypotheses.load())


def test_the_gains_and_the_verdicts_are_the_papers() -> None:
    findings = simulated()
    total, of_sites = findings["over_sites"].set_index(KEY), findings["gains"].groupby(KEY)
    assert len(total) == 8 * 2 * len(time_names())
    assert total["gain"].to_dict() == pytest.approx(of_sites["gain"].mean().to_dict())
    assert total["delta_ms"].to_dict() == pytest.approx(of_sites["delta_ms"].mean().to_dict())
    assert (total["sites"] == 4).all()
    assert (total[["faster", "slower", "no_difference", "untested"]].sum(axis=1) == 4).all()
    for verdict in ("faster", "slower", "no difference"):
        expected = findings["gains"]["verdict"].eq(verdict).groupby([findings["gains"][name] for name in KEY]).sum()
        assert total[verdict.replace(" ", "_")].to_dict() == expected.to_dict()
    assert ((total["gain_low"] < total["gain"]) & (total["gain"] < total["gain_high"])).all()


def test_the_intervals_are_students_over_sites() -> None:
    findings = simulated()
    samples, pair = findings.samples, findings.hypotheses.comparisons[0]
    of_sites, _ = locations(block_ratios(samples, pair)[0, :, samples.metrics.index("si")])
    row = findings["over_sites"].set_index(KEY).loc[(*pair, "dsl", "si")]
    expected = stats.t.interval(0.95, 3, of_sites.mean(), stats.sem(of_sites))
    assert row["ratio_gain"] == pytest.approx(np.expm1(of_sites.mean()))
    assert list(row[["ratio_low", "ratio_high"]].astype(float)) == pytest.approx(list(np.expm1(expected)))


def test_one_site_has_no_interval_over_sites() -> None:
    total = simulated(sites=1)["over_sites"]
    assert total[["gain_low", "delta_ms_high", "ratio_low"]].isna().all(axis=None)
    assert total["gain"].notna().all()
