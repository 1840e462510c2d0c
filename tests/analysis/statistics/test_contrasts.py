"""Statistics of single sites: published examples, cases computed by hand, and properties that must always hold."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.analysis_truth import campaign_table

from analysis import hypotheses
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics import contrasts
from analysis.statistics.contrast_table import false_discovery_rate
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array, by_count, t_test_p
from dataset.metrics import time_names
from eyelevel.simulate import Truth, simulate

# Student's sleep data (Biometrika 1908): hours gained under two drugs.
SLEEP_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])

times = st.lists(st.integers(1, 1000).map(float), min_size=3, max_size=20)


def padded(*rows: Sequence[float]) -> Array:
    """Cells of different sizes as one array."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def test_welch_on_students_sleep_data() -> None:
    """R's t.test(extra ~ group, data = sleep): p-value = 0.07939, 95 % interval -3.3654832 to 0.2054832."""
    assert t_test_p(SLEEP_2, SLEEP_1, equal_var=False) == pytest.approx(0.07939, abs=5e-6)
    low, high = contrasts.difference_interval(SLEEP_2, SLEEP_1, 0.95)
    assert [float(low), float(high)] == pytest.approx([-3.3654832, 0.2054832], abs=1e-6)


def test_corrections_by_hand() -> None:
    result = false_discovery_rate(np.array([0.01, 0.04, 0.03, 0.005, np.nan]))
    assert result[:4] == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert np.isnan(result[4])


@settings(max_examples=30)
@given(times, times, st.floats(0.01, 100))
def test_neither_the_unit_of_time_nor_the_order_of_protocols_changes_welchs_p(
    a: list[float], b: list[float], factor: float
) -> None:
    x, y = np.array(a), np.array(b)
    p = t_test_p(x, y, equal_var=False)
    assert t_test_p(factor * x, factor * y, equal_var=False) == pytest.approx(p, rel=1e-4, abs=1e-7, nan_ok=True)
    assert t_test_p(y, x, equal_var=False) == pytest.approx(p, nan_ok=True)


def test_cells_without_enough_runs_are_no_number() -> None:
    table = padded([1, 2, 3], [1], [])
    assert by_count(lambda x: x.mean(axis=1), table).tolist() == pytest.approx([2, np.nan, np.nan], nan_ok=True)
    assert by_count(lambda x: x.mean(axis=1), table, least=1)[1] == 1


def test_what_cannot_be_computed_is_named() -> None:
    flat = [5.0] * 6
    a = padded([1, 2, 3], flat, [1, 1, 1, 1, 1, 1, 90], [1], [0, 1, 2, 3, 4])
    b = padded([1, 2, 4], flat, [1, 1, 1, 1, 1, 2, 1], [2], [1, 2, 3, 4, 5])
    assert contrasts.notes(a, b).tolist() == [
        "fewer than 5 runs",
        "no variance",
        "wildly skewed",
        "one run",
        "a time of 0",
    ]
    assert t_test_p(a, b, equal_var=False)[1] == 1 and np.isnan(t_test_p(a, b, equal_var=False)[3])


@pytest.fixture(scope="module")
def campaign() -> CampaignTable:
    """Three sites, the last of which lacks a protocol, and a metric that some runs lack."""
    truth = Truth(sites=3, networks=("dsl",), runs=6, effects={"quic": -0.2}, noise_sd=0.02, excluded={"tcp": 0.1})
    runs = simulate(truth)
    runs = runs[(runs["site"] != "site-03") | (runs["protocol"] != "quic+bbr")]
    runs.loc[runs["run"] == 2, "vc85"] = np.nan
    return campaign_table(runs, truth.networks, truth.protocols)


def test_the_order_of_rows_does_not_matter(campaign: CampaignTable) -> None:
    declared = hypotheses.load().restricted_to(campaign.protocols, campaign.metrics)
    shuffled = campaign_table(campaign.runs.sample(frac=1, random_state=5), campaign.networks, campaign.protocols)
    one, other = (contrasts.contrasts(samples_of(table), declared, {"dsl": 24}) for table in (campaign, shuffled))
    pd.testing.assert_frame_equal(one, other)


def test_every_pair_that_was_measured_is_compared(campaign: CampaignTable) -> None:
    declared = hypotheses.load().restricted_to(campaign.protocols, campaign.metrics)
    result = contrasts.contrasts(samples_of(campaign), declared, {"dsl": 24})
    sites = result.groupby(["reference", "compared"])["site"].unique().apply(len)
    assert sites["tcp+", "quic"] == 3
    assert sites["tcp+bbr", "quic+bbr"] == 2
    # Too many loads lack this metric (`analysis.samples.missing_times`).
    assert set(result["metric"]) == {*campaign.metrics} - {"vc85"}
    clear = result[(result["reference"] == "tcp+") & (result["compared"] == "quic")]
    assert (clear["verdict"] == "faster").all()


def test_fewer_than_five_blocks_decide_nothing_about_a_site() -> None:
    truth = Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=5, effects={"quic": -0.5}, noise_sd=0.001)
    runs = simulate(truth)
    few = runs[(runs["site"] != "site-01") | (runs["run"] < 5)]
    declared = hypotheses.load().restricted_to(("tcp", "quic"), time_names())
    table = contrasts.contrasts(samples_of(campaign_table(few, ("dsl",), ("tcp", "quic"))), declared, {"dsl": 24})
    verdicts = table[table["metric"].eq("si")].set_index("site")
    assert verdicts["verdict"].to_dict() == {"site-01": "not decided", "site-02": "faster"}
    assert verdicts["ratio_high"].lt(0).all()
    assert verdicts["p"].isna().to_dict() == {"site-01": True, "site-02": False}


def test_a_campaign_of_other_protocols_is_compared_with_its_first() -> None:
    restricted = hypotheses.load().restricted_to(("mine", "yours", "tcp", "quic"), ("si",))
    assert restricted.comparisons == (Pair("tcp", "quic"), Pair("mine", "yours"))
    assert restricted.family_metrics == ("si",)
    assert restricted.family == (Pair("mine", "yours"),)
