"""Means over sites like those of the campaign."""

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import simulated_table

from analysis import hypotheses
from analysis.samples import samples_of
from analysis.simulate import Truth
from analysis.statistics.aggregate import over_sites
from analysis.statistics.gain import gains, summary
from analysis.statistics.ratios import block_ratios, locations
from analysis.statistics.samples import Samples
from dataset.metrics import time_names


def samples(sites: int = 4) -> Samples:
    truth = Truth(sites=sites, networks=("dsl", "lte"), runs=5, effects={"quic": -0.2})
    return samples_of(simulated_table(truth))


def test_the_gains_are_the_papers_means() -> None:
    table, declared = samples(), hypotheses.load()
    total = over_sites(table, declared)
    merged = summary(gains(table, declared.comparisons)).merge(total, on=["reference", "compared", "network", "metric"])
    assert len(merged) == len(total) == 8 * 2 * len(time_names())
    assert merged["gain_x"].to_numpy() == pytest.approx(merged["gain_y"].to_numpy())
    assert merged["delta_ms_x"].to_numpy() == pytest.approx(merged["delta_ms_y"].to_numpy())
    assert (merged["sites_x"] == merged["sites_y"]).all()
    assert ((total["gain_low"] < total["gain"]) & (total["gain"] < total["gain_high"])).all()


def test_the_intervals_are_students_over_sites() -> None:
    table, declared = samples(), hypotheses.load()
    total = over_sites(table, declared).set_index(["reference", "compared", "network", "metric"])
    pair = declared.comparisons[0]
    of_sites, _ = locations(block_ratios(table, pair)[0, :, table.metrics.index("si")])
    row = total.loc[(*pair, "dsl", "si")]
    expected = stats.t.interval(0.95, 3, of_sites.mean(), stats.sem(of_sites))
    assert row["ratio_gain"] == pytest.approx(np.expm1(of_sites.mean()))
    assert list(row[["ratio_low", "ratio_high"]]) == pytest.approx(list(np.expm1(expected)))


def test_one_site_has_no_interval_over_sites() -> None:
    total = over_sites(samples(sites=1), hypotheses.load())
    assert total[["gain_low", "delta_ms_high", "ratio_low"]].isna().all(axis=None)
    assert total["gain"].notna().all()
