"""The robust statistics: published examples, cases computed by hand, and properties that must always hold."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.analysis_truth import campaign_table

from analysis import hypotheses
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.simulate import Truth, simulate
from analysis.statistics import contrasts
from analysis.statistics.contrast_table import false_discovery_rate
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array, by_count
from dataset.metrics import time_names

# Student's sleep data (Biometrika 1908): hours gained under two drugs.
SLEEP_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
# Permeability of membranes (Hollander and Wolfe, Nonparametric Statistical Methods, section 4.1).
MEMBRANE_X = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
MEMBRANE_Y = np.array([1.15, 0.88, 0.90, 0.74, 1.21])

times = st.lists(st.integers(1, 1000).map(float), min_size=3, max_size=20)


def padded(*rows: Sequence[float]) -> Array:
    """Cells of different sizes as one array."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def test_welch_on_students_sleep_data() -> None:
    """R's t.test(extra ~ group, data = sleep): p-value = 0.07939, 95 % interval -3.3654832 to 0.2054832."""
    assert contrasts.welch_p(SLEEP_2, SLEEP_1) == pytest.approx(0.07939, abs=5e-6)
    low, high = contrasts.difference_interval(SLEEP_2, SLEEP_1, 0.95)
    assert [float(low), float(high)] == pytest.approx([-3.3654832, 0.2054832], abs=1e-6)


def test_mann_whitney_on_students_sleep_data() -> None:
    """R's wilcox.test(extra ~ group, data = sleep): W = 25.5, p-value = 0.06933."""
    p, delta = contrasts.mann_whitney(SLEEP_2, SLEEP_1)
    assert p == pytest.approx(0.06933, abs=5e-6)
    assert delta == pytest.approx(2 * 25.5 / 100 - 1)


def test_hodges_and_lehmann_on_the_membranes() -> None:
    """R's wilcox.test(x, y, conf.int = TRUE): W = 35, p-value = 0.2544, shift 0.305, 95 % interval -0.15 to 0.76."""
    p, delta = contrasts.mann_whitney(MEMBRANE_Y, MEMBRANE_X)
    assert p == pytest.approx(0.2544, abs=5e-5)
    assert delta == pytest.approx(2 * 35 / 50 - 1)
    assert contrasts.hodges_lehmann(MEMBRANE_Y, MEMBRANE_X, 0.95) == pytest.approx([0.305, -0.15, 0.76])


@pytest.mark.parametrize(
    ("m", "n", "critical"), [(4, 4, 0), (5, 5, 2), (5, 10, 8), (10, 10, 23), (20, 20, 127), (8, 14, 26)]
)
def test_ranks_are_those_of_the_printed_tables(m: int, n: int, critical: int) -> None:
    """Mann and Whitney's table: U is significant at 0.05, two-sided, when it is at most `critical`."""
    assert contrasts.ranks_outside(m, n, 0.95) == critical + 1


def test_too_few_runs_have_no_rank_interval() -> None:
    assert contrasts.ranks_outside(3, 3, 0.95) == 0
    shift, low, high = contrasts.hodges_lehmann(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), 0.95)
    assert shift == 3 and np.isnan(low) and np.isnan(high)


def test_the_normal_approximation_of_ranks_joins_the_exact_ones() -> None:
    exact = contrasts.ranks_outside(60, 60, 0.95)
    spread = np.sqrt(60 * 60 * 121 / 12)
    assert exact == pytest.approx(60 * 60 / 2 - 1.96 * spread, abs=2)
    assert contrasts.ranks_outside(61, 61, 0.95) > exact


def test_cliffs_delta_by_hand() -> None:
    slower, same = np.array([5.0, 6, 7]), np.array([1.0, 2, 3])
    assert contrasts.mann_whitney(same, slower)[1] == 1
    assert contrasts.mann_whitney(slower, same)[1] == -1
    # The 4 pairs: 2 below 3, 2 above 1, 2 equal to 2 (no point), 3 above 1.
    assert contrasts.mann_whitney(np.array([1.0, 2]), np.array([2.0, 3]))[1] == pytest.approx(0.75)


def test_corrections_by_hand() -> None:
    result = false_discovery_rate(np.array([0.01, 0.04, 0.03, 0.005, np.nan]))
    assert result[:4] == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert np.isnan(result[4])


def test_the_gains_interval_is_welchs_for_many_quiet_runs() -> None:
    draw = np.random.default_rng(2)
    a, b = draw.normal(1000, 20, 400), draw.normal(900, 30, 400)
    low, high = contrasts.gain_interval(a, b, 0.95)
    error = np.hypot(20 / 1000, 30 / 900) / np.sqrt(400)
    centre = np.log(b.mean() / a.mean())
    assert low == pytest.approx(np.expm1(centre - 1.96 * error), abs=4e-4)
    assert high == pytest.approx(np.expm1(centre + 1.96 * error), abs=4e-4)


def interval(a: Array, b: Array) -> Array:
    """The interval of the gain, or NaN if rounding would decide whether it exists.

    A resample that repeats one value has no error, but its error is computed as a difference that rounding can leave
    just above 0. Then a bound is -100 % instead of NaN: [2, 2, 114] and [1, 1, 2] have no interval, but have one if all
    these times are multiplied by three. Such resamples are too rare to be a bound when the values of five runs or more
    all differ.
    """
    if any(len(np.unique(sample)) < max(5, len(sample)) for sample in (a, b)):
        return np.full(2, np.nan)
    return np.stack(contrasts.gain_interval(a, b, 0.95))


@settings(max_examples=30)
@given(times, times, st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(a: list[float], b: list[float], factor: float) -> None:
    x, y = np.array(a), np.array(b)
    for one, other in (
        (contrasts.welch_p(x, y), contrasts.welch_p(factor * x, factor * y)),
        (contrasts.mann_whitney(x, y), contrasts.mann_whitney(factor * x, factor * y)),
        (interval(x, y), interval(factor * x, factor * y)),
        (factor * contrasts.hodges_lehmann(x, y, 0.95), contrasts.hodges_lehmann(factor * x, factor * y, 0.95)),
    ):
        assert other == pytest.approx(one, rel=1e-4, abs=1e-7, nan_ok=True)


@settings(max_examples=30)
@given(times, times)
def test_exchanging_the_protocols_mirrors_everything(a: list[float], b: list[float]) -> None:
    x, y = np.array(a), np.array(b)
    assert contrasts.welch_p(x, y) == pytest.approx(contrasts.welch_p(y, x), nan_ok=True)
    assert contrasts.mann_whitney(x, y)[1] == pytest.approx(-contrasts.mann_whitney(y, x)[1])
    there, back = contrasts.hodges_lehmann(x, y, 0.95), contrasts.hodges_lehmann(y, x, 0.95)
    assert there == pytest.approx(-back[[0, 2, 1]], nan_ok=True)
    low, high = contrasts.gain_interval(x, y, 0.95, ("a", "b"))
    back_low, back_high = contrasts.gain_interval(y, x, 0.95, ("b", "a"))
    # A bound of nearly -100 % has too few digits left to compare its reciprocal: for example, that of [1, 11, 12] and
    # [1, 1, 6].
    assume(not min(1 + low, 1 + back_low) < 1e-6)
    # When the samples are swapped, the quantile of the method "nearest" may be a neighbouring resample, hence the
    # tolerance.
    assert 1 + low == pytest.approx(1 / (1 + back_high), rel=0.05, nan_ok=True)
    assert 1 + high == pytest.approx(1 / (1 + back_low), rel=0.05, nan_ok=True)


@settings(max_examples=30)
@given(st.lists(times, min_size=2, max_size=4), st.lists(times, min_size=2, max_size=4))
def test_a_cell_depends_on_no_other(a: list[list[float]], b: list[list[float]]) -> None:
    cells = min(len(a), len(b))
    x, y = padded(*a[:cells]), padded(*b[:cells])
    together = contrasts.mann_whitney(x, y)
    for place in range(cells):
        alone = contrasts.mann_whitney(np.array(a[place]), np.array(b[place]))
        assert together[place] == pytest.approx(alone, nan_ok=True)


def test_ties_in_one_cell_leave_the_exact_p_value_of_another() -> None:
    tied, clear = [1.0, 1, 2, 2, 3], [1.0, 2, 3, 4, 5]
    result = contrasts.mann_whitney(padded(tied, clear), padded([2.0, 3, 4, 5, 6], [6.0, 7, 8, 9, 10]))
    assert result[1, 0] == pytest.approx(2 / 252)  # one of the 252 ways to rank 5 and 5, and its mirror image


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
    assert contrasts.welch_p(a, b)[1] == 1 and np.isnan(contrasts.welch_p(a, b)[3])
    low, high = contrasts.gain_interval(a, b, 0.95)
    assert np.isnan(low[[1, 3]]).all() and np.isnan(high[[1, 3]]).all()


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
    assert set(result["metric"]) == set(time_names())
    clear = result[(result["reference"] == "tcp+") & (result["compared"] == "quic")]
    assert (clear["verdict"] == "faster").all()


def test_a_campaign_of_other_protocols_is_compared_with_its_first() -> None:
    restricted = hypotheses.load().restricted_to(("mine", "yours", "tcp", "quic"), ("si",))
    assert restricted.comparisons == (Pair("tcp", "quic"), Pair("mine", "yours"))
    assert restricted.family_metrics == ("si",)
    assert restricted.family == (Pair("mine", "yours"),)
