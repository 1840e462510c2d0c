"""The prediction interval for a replication: exact repetitions of the paper agree as often as it claims."""

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import consistent

from analysis.paper.replication import count_chance, number_chance, paper_error, standard_error

REPETITIONS = 2000


def test_by_hand() -> None:
    """Errors of 3 and 4 combine to 5; the interval is 1.96 of these on each side."""
    assert number_chance(-100, -109, (3, 4), np.inf, 0) == pytest.approx(2 * stats.norm.sf(9 / 5))
    for end in (-109.8, -90.2):
        assert number_chance(-100, end, (3, 4), np.inf, 0) == pytest.approx(0.05, abs=1e-3)


def test_the_errors_of_both() -> None:
    assert standard_error(-1.96, 1.96, np.inf, 0.95) == pytest.approx(1, abs=1e-4)
    assert paper_error(2.0, size=38 / 4, paper_size=38) == pytest.approx(1)


def test_without_any_error_only_the_same_number_agrees() -> None:
    assert number_chance(3, 3, (0, 0), 5, 0) == 1
    assert number_chance(3, 3.1, (0, 0), 5, 0) == 0


def gains(seed: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean gains of many campaigns with this many sites, and the standard errors that they report."""
    values = np.random.default_rng(seed).normal(-0.14, 0.05, (REPETITIONS, sites))
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(sites)


@pytest.mark.parametrize("sites", [10, 38])
def test_exact_repetitions_agree_as_often_as_the_interval_says(sites: int) -> None:
    paper, _ = gains(1, 38)
    ours, errors = gains(2, sites)
    chances = [
        number_chance(theirs, value, (paper_error(error, sites, 38), error), sites - 1, 0)
        for theirs, value, error in zip(paper, ours, errors, strict=True)
    ]
    assert consistent(sum(chance >= 0.05 for chance in chances), REPETITIONS, 0.95, slack=0.005)
    # A reported probability below 0.2 must itself have the probability 0.2.
    assert consistent(sum(chance < 0.2 for chance in chances), REPETITIONS, 0.2, slack=0.01)


def test_that_the_campaigns_interval_holds_the_papers_number_is_rarer() -> None:
    paper, _ = gains(1, 38)
    ours, errors = gains(2, 38)
    held = np.abs(ours - paper) <= stats.t.ppf(0.975, 37) * errors
    assert 0.80 < held.mean() < 0.86


def test_rounding_does_not_make_repetitions_disagree() -> None:
    draw = np.random.default_rng(3)
    repetitions = 1000
    truth = draw.uniform(-0.2, 0, repetitions)
    for error in (0.0001, 0.002):
        paper = np.round(truth + draw.normal(0, error, repetitions), 2)
        ours = truth + draw.normal(0, error, repetitions)
        chances = {
            rounding: [number_chance(a, b, (error, error), np.inf, rounding) for a, b in zip(paper, ours, strict=True)]
            for rounding in (0.005, 0)
        }
        assert np.mean(np.array(chances[0.005]) >= 0.05) >= 0.93
        assert np.mean(np.array(chances[0]) >= 0.05) < 0.9


@pytest.mark.parametrize("share", [0.05, 0.5, 0.85])
def test_counts_of_other_sites_agree_at_least_as_often(share: float) -> None:
    draw = np.random.default_rng(4)
    paper, ours = draw.binomial(38, share, 300), draw.binomial(20, share, 300)
    chances = [count_chance(int(a), 38, int(b), 20) for a, b in zip(paper, ours, strict=True)]
    assert np.mean(np.array(chances) >= 0.05) >= 0.92


def test_a_count_agrees_exactly_where_as_much_chance_is_left() -> None:
    """The distribution of a count is asymmetric, and so is the prediction interval. A chance that added up all rarer
    outcomes would be large enough for some counts outside the interval."""
    for paper, sites in [(38, 38), (28, 38), (10, 38), (30, 8), (1, 9)]:
        prediction = stats.betabinom(sites, paper + 0.5, 38 - paper + 0.5)
        for confidence in (0.8, 0.95):
            low, high = prediction.interval(confidence)
            for ours in range(sites + 1):
                is_within = low <= ours <= high
                assert is_within == (count_chance(paper, 38, ours, sites) >= 1 - confidence), (paper, ours, sites)


def test_a_part_of_the_papers_own_sites_is_no_sample_of_them() -> None:
    """Each site gives the same result again. So a repetition with only those 8 of the 38 sites that are not faster
    gives the count 0, which disagrees; a repetition with all 38 sites gives exactly the paper's count."""
    assert count_chance(30, 38, 0, 8) < 0.05
    assert count_chance(30, 38, 30, 38) == 1


def test_a_count_that_cannot_be_chance() -> None:
    assert count_chance(30, 38, 3, 38) < 1e-6
    assert count_chance(30, 38, 30, 38) > 0.8
