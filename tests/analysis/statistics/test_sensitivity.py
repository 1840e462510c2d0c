"""The same contrast computed in other ways: by hand, and the bias of the paper's ratio by simulation."""

import numpy as np
import pytest
from scipy import stats
from support.samples_truth import declared, samples

from analysis.statistics.hypotheses import Pair
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import Array
from analysis.statistics.sensitivity import bias, leave_one_out, sensitivity


def test_by_hand() -> None:
    """Three sites with two blocks each have the mean log ratios -0.1, -0.2 and +0.6. At each site, the second block's
    log ratio is 0.02 higher than the first's."""
    steps = np.array([-0.01, 0.01])
    ratios = np.array([[-0.1], [-0.2], [0.6]]) + steps
    a = np.array([[1000.0, 1200.0]] * 3)
    campaign = samples({"tcp": a, "quic": a * np.exp(ratios)})
    (row,) = sensitivity(campaign, declared(("tcp", "quic"))).to_dict("records")
    assert row["sites"] == 3
    assert row["gain"] == pytest.approx(np.expm1(0.1))
    of_means = (a * np.exp(ratios)).mean(axis=1) / 1100 - 1
    assert row["paper_gain"] == pytest.approx(of_means.mean())
    assert row["median_gain"] == pytest.approx(np.expm1(-0.1))
    assert row["without_low"] == row["without_weightiest"] == pytest.approx(np.expm1(-0.15))
    assert row["without_high"] == pytest.approx(np.expm1(0.25))
    assert row["weightiest_site"] == "s03"


def test_the_gain_is_the_familys_own() -> None:
    draw = np.random.default_rng(1)
    times = {name: 1000 * np.exp(draw.normal(0, 0.3, (5, 9))) for name in ("tcp", "quic")}
    campaign = samples(times)
    (row,) = sensitivity(campaign, declared(("tcp", "quic"))).to_dict("records")
    ratio = mean_over_sites(block_ratios(campaign, Pair("tcp", "quic"))[0, :, 0])
    assert row["gain"] == pytest.approx(float(np.expm1(ratio.centre)))


def test_what_there_is_not_is_nan() -> None:
    campaign = samples({"tcp": np.array([[1000.0]]), "quic": np.array([[900.0]])})
    (row,) = sensitivity(campaign, declared(("tcp", "quic"))).to_dict("records")
    assert row["gain"] == row["median_gain"] == pytest.approx(-0.1)
    assert np.isnan([row[name] for name in ("paper_bias", "without_low", "without_high")]).all()
    assert row["weightiest_site"] == ""
    assert sensitivity(campaign, declared(("tcp", "tcp+"))).empty


def test_an_outlying_site_is_named() -> None:
    """The example of a review: 37 sites are 36 % faster, one is 120 % slower."""
    centres = np.append(np.full(37, np.log(0.64)), np.log(2.2))
    names = tuple(f"s{number}" for number in range(38))
    result = leave_one_out(centres, np.full(38, 0.01), names, 0.95)
    assert result["weightiest_site"] == "s37"
    assert result["without_weightiest"] == pytest.approx(-0.36)


def test_the_interval_of_the_other_sites_by_hand() -> None:
    """The four other sites have the log ratios ±0.1 and ±0.2, whose variance between sites is 1/30. The error of each
    has the variance 0.01 or 0.1. The interval uses the larger of the two variances."""
    centres, names = np.array([-0.2, -0.1, 0.1, 0.2, 2.0]), tuple("abcde")
    for of_runs, variance in ((0.01, 0.1 / 3), (0.1, 0.1)):
        result = leave_one_out(centres, np.append(np.full(4, of_runs), np.nan), names, 0.95)
        reach = stats.t.ppf(0.975, 3) * np.sqrt(variance / 4)
        assert (result["others_low"], result["others_high"]) == pytest.approx((np.expm1(-reach), np.expm1(reach)))
    # First the scatter of the runs is unknown, then that of the other sites, of which there is only one.
    for part, variances in ((slice(5), np.full(5, np.nan)), (slice(3, 5), np.full(2, 0.01))):
        result = leave_one_out(centres[part], variances, names[part], 0.95)
        assert result["weightiest_site"] and np.isnan(float(result["others_low"]))


@pytest.mark.parametrize(("runs", "scatter", "shared"), [(3, 0.3, 0.0), (5, 0.3, 0.0), (5, 0.1, 0.3), (31, 0.3, 0.0)])
def test_the_bias_is_what_simulation_shows(runs: int, scatter: float, shared: float) -> None:
    """No effect; runs scatter by `scatter`, blocks by `shared`, which is common to both protocols."""
    draw = np.random.default_rng(runs)
    cells = 40_000

    def normal(deviation: float, columns: int = runs) -> Array:
        return np.maximum(0.05, 1 + draw.normal(0, deviation, (cells, columns)))

    block = normal(shared)
    a, b = 1000 * block * normal(scatter), 1000 * block * normal(scatter)
    seen = (b.mean(axis=1) / a.mean(axis=1) - 1).mean()
    error = (b.mean(axis=1) / a.mean(axis=1)).std() / np.sqrt(cells)
    assert bias(a, b).mean() == pytest.approx(seen, abs=4 * error + 0.15 * scatter**2 / runs)


def test_the_bias_needs_two_runs_and_counts_blocks_that_lack_one() -> None:
    a, b = np.array([1000.0, 1100, 900]), np.array([1000.0, np.nan, np.nan])
    # The variance of `a` is 10000, so its squared coefficient of variation is 0.01. Only one block has both runs, from
    # which no shared part can be computed.
    assert bias(a, b) == pytest.approx(0.01 / 3)
    assert np.isnan(bias(np.array([1000.0, np.nan]), np.array([1.0, 2.0])))
