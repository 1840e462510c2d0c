"""The exchange of protocols within blocks: small cases by enumeration, level and power."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.exchange import above_p, difference_p, equivalence_p
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import Array


def by_enumeration(ratios: Array) -> float:
    """The share of all exchanges whose studentised mean is at least that of `ratios`."""
    is_known = np.isfinite(ratios)
    # The first row of signs changes nothing: it gives the observed mean.
    signs = np.array(list(product([1, -1], repeat=int(is_known.sum()))))
    exchanged = np.full((len(signs), *ratios.shape), np.nan)
    exchanged[:, is_known] = ratios[is_known] * signs
    mean = mean_over_sites(exchanged)
    scores = mean.centre / mean.error
    return float((scores >= scores[0] - 1e-9).mean())


@pytest.mark.parametrize(("sites", "blocks"), [(1, 6), (2, 4), (3, 3)])
def test_few_blocks_are_exchanged_in_all_ways(sites: int, blocks: int) -> None:
    ratios = np.random.default_rng([sites, blocks]).normal(0.5, 1, (sites, blocks))
    assert above_p(ratios) == pytest.approx(by_enumeration(ratios))
    assert above_p(-ratios) == pytest.approx(by_enumeration(-ratios))
    less = min(by_enumeration(ratios), by_enumeration(-ratios))
    assert difference_p(ratios) == difference_p(-ratios) == pytest.approx(min(1, 2 * less))


def test_a_site_of_one_block_and_one_without_any_take_part_as_in_the_mean_over_sites() -> None:
    ratios = np.array([[0.1, 0.3, -0.1], [0.5, 0.6, 0.7], [0.4, np.nan, np.nan], [np.nan] * 3])
    assert above_p(ratios) == pytest.approx(by_enumeration(ratios))


def test_many_exchanges_are_sampled_and_the_sample_agrees_with_students_test() -> None:
    for shift in (0.1, 0.2, 0.3):
        ratios = np.random.default_rng(5).normal(shift, 0.5, (12, 5))
        assert above_p(ratios) == pytest.approx(float(mean_over_sites(ratios).difference_p()) / 2, rel=0.5)
    assert above_p(np.full((12, 5), 0.1)) < 1e-5


def test_a_sample_is_drawn_whole_and_the_same_whatever_was_tested_before() -> None:
    ratios = np.random.default_rng(6).normal(0.2, 0.5, (12, 5))
    first = above_p(ratios)
    assert first == 78 / (2**20 + 1), "an odd number, 77, of the largest sample, and the measured exchange"
    above_p(ratios[:7])
    assert above_p(ratios) == first


def test_equal_ratios_are_a_sign_test_and_single_blocks_no_evidence() -> None:
    assert difference_p(np.full((2, 3), 0.2)) == pytest.approx(2 * 0.5**6)
    assert difference_p(np.zeros((2, 3))) == 1
    assert equivalence_p(np.zeros((2, 3)), 0.1) == pytest.approx(0.5**6)
    assert equivalence_p(np.full((2, 3), 0.2), 0.1) == 1
    assert np.isnan(above_p(np.array([[0.1], [0.2]])))


@pytest.mark.parametrize("is_uneven", [False, True])
def test_the_test_holds_its_level_where_sites_scatter_differently(is_uneven: bool) -> None:
    draw, campaigns = np.random.default_rng(3), 600
    scatter = np.exp(draw.normal(0, 0.6 * is_uneven, (campaigns, 5, 1)))
    p = np.array([difference_p(ratios) for ratios in scatter * draw.standard_normal((campaigns, 5, 3))])
    for level in (0.05, 0.01):
        assert (p < level).sum() <= stats.binom.isf(1e-4, campaigns, 1.1 * level)


def test_it_finds_more_than_students_test_where_blocks_are_few() -> None:
    draw, campaigns = np.random.default_rng(4), 60
    scatter = np.exp(draw.normal(0, 0.6, (campaigns, 11, 1)))
    ratios = 0.55 + scatter * draw.standard_normal((campaigns, 11, 3))
    exchanged = sum(difference_p(one) < 0.001 for one in ratios)
    assert exchanged > 1.2 * (mean_over_sites(ratios).difference_p() < 0.001).sum()
