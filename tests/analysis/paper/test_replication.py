"""The prediction interval for a replication: exact repetitions of the paper agree as often as it claims."""

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import consistent

from analysis.paper.replication import of_count, of_number, paper_error, standard_error

REPETITIONS = 2000


def test_by_hand() -> None:
    """Errors of 3 and 4 combine to 5; the interval is 1.96 of these on each side."""
    result = of_number(-100, -109, (3, 4), np.inf, 0, 0.95)
    assert (result.low, result.high) == pytest.approx((-109.8, -90.2), abs=1e-2)
    assert result.agrees
    assert result.chance == pytest.approx(2 * stats.norm.sf(9 / 5))
    assert not of_number(-100, -110, (3, 4), np.inf, 0, 0.95).agrees


def test_the_errors_of_both() -> None:
    assert standard_error(-1.96, 1.96, np.inf, 0.95) == pytest.approx(1, abs=1e-4)
    assert paper_error(2.0, size=38 / 4, paper_size=38) == pytest.approx(1)


def test_without_any_error_only_the_same_number_agrees() -> None:
    assert of_number(3, 3, (0, 0), 5, 0, 0.95).agrees
    assert of_number(3, 3, (0, 0), 5, 0, 0.95).chance == 1
    assert not of_number(3, 3.1, (0, 0), 5, 0, 0.95).agrees


def gains(seed: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean gains of many campaigns with this many sites, and the standard errors that they report."""
    values = np.random.default_rng(seed).normal(-0.14, 0.05, (REPETITIONS, sites))
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(sites)


@pytest.mark.parametrize("sites", [10, 38])
def test_exact_repetitions_agree_as_often_as_the_interval_says(sites: int) -> None:
    paper, _ = gains(1, 38)
    ours, errors = gains(2, sites)
    results = [
        of_number(theirs, value, (paper_error(error, sites, 38), error), sites - 1, 0, 0.95)
        for theirs, value, error in zip(paper, ours, errors, strict=True)
    ]
    assert consistent(sum(result.agrees for result in results), REPETITIONS, 0.95, slack=0.005)
    # A reported probability below 0.2 must itself have the probability 0.2.
    assert consistent(sum(result.chance < 0.2 for result in results), REPETITIONS, 0.2, slack=0.01)


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
        agree = [of_number(a, b, (error, error), np.inf, 0.005, 0.95).agrees for a, b in zip(paper, ours, strict=True)]
        assert np.mean(agree) >= 0.93
        without = [of_number(a, b, (error, error), np.inf, 0, 0.95).agrees for a, b in zip(paper, ours, strict=True)]
        assert np.mean(without) < 0.9


@pytest.mark.parametrize("share", [0.05, 0.5, 0.85])
def test_counts_of_other_sites_agree_at_least_as_often(share: float) -> None:
    draw = np.random.default_rng(4)
    paper, ours = draw.binomial(38, share, 300), draw.binomial(20, share, 300)
    results = [of_count(int(a), 38, int(b), 20, 0.95) for a, b in zip(paper, ours, strict=True)]
    assert np.mean([result.agrees for result in results]) >= 0.92
    assert all(result.low <= result.high for result in results)


def test_a_count_agrees_exactly_where_as_much_chance_is_left() -> None:
    """The distribution of a count is asymmetric, and so is the interval. A `chance` that added up all rarer outcomes
    would be large enough for some counts outside the interval."""
    for paper, sites in [(38, 38), (28, 38), (10, 38), (30, 8), (1, 9)]:
        for confidence in (0.8, 0.95):
            for ours in range(sites + 1):
                result = of_count(paper, 38, ours, sites, confidence)
                assert result.agrees == (result.chance > 1 - confidence), (paper, ours, sites)


def test_a_part_of_the_papers_own_sites_is_no_sample_of_them() -> None:
    """Each site gives the same result again. So a repetition with only those 8 of the 38 sites that are not faster
    gives the count 0, which disagrees; a repetition with all 38 sites gives exactly the paper's count."""
    assert not of_count(30, 38, 0, 8, 0.95).agrees
    assert of_count(30, 38, 30, 38, 0.95).chance == 1


def test_a_count_that_cannot_be_chance() -> None:
    result = of_count(30, 38, 3, 38, 0.95)
    assert not result.agrees
    assert result.chance < 1e-6
    assert of_count(30, 38, 30, 38, 0.95).chance > 0.8
