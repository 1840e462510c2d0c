"""Signed ranks within sites: the published test, its level, and its power where a few differences are impossible."""

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import consistent

from analysis.stability import ALARM_P
from analysis.statistics.dependence import signed_ranks_p


def test_signed_ranks_of_one_site_are_wilcoxons_and_infinite_differences_are_the_largest() -> None:
    site = np.random.default_rng(1).normal(0.3, 1, 40)
    expected = stats.wilcoxon(site, method="asymptotic").pvalue
    assert signed_ranks_p(site[None]) == pytest.approx(expected)
    lost = np.where(site > np.sort(site)[-4], np.inf, site)
    assert signed_ranks_p(lost[None]) == signed_ranks_p(np.where(np.isinf(lost), 1e6, site)[None])


def test_each_network_has_its_own_p_and_unknown_differences_do_not_count() -> None:
    draw = np.random.default_rng(2)
    known = draw.normal(0.5, 1, (3, 8))
    padded = np.concatenate([known, np.full((3, 2), np.nan)], axis=1)
    unknown, equal = np.full((3, 10), np.nan), np.zeros((3, 10))
    p = signed_ranks_p(np.stack([padded, -padded, unknown, equal]))
    assert p[0] == p[1] == pytest.approx(signed_ranks_p(known))
    assert np.isnan(p[2]) and p[3] == 1


def test_random_signs_have_these_p_values() -> None:
    """All 2^9 ways to sign the differences of three sites: their share is close to the p value of each."""
    sizes = np.array([[1.0, 2, 3], [1, 5, 9], [2, 3, 8]])
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 9)).reshape(9, -1).T.reshape(-1, 3, 3)
    p = signed_ranks_p(signs * sizes)
    for limit in (0.02, 0.05, 0.2):
        assert (p <= limit).mean() <= 1.1 * limit
    assert (p <= 0.05).mean() > 0.03


@pytest.mark.slow
def test_the_rank_test_holds_its_level_with_losses() -> None:
    draw = np.random.default_rng(5)
    values = draw.normal(0, 1, (1000, 6, 8))
    either = draw.random(values.shape)
    values[either < 0.05], values[either > 0.95] = np.inf, -np.inf
    assert consistent(int((signed_ranks_p(values) < 0.01).sum()), 1000, 0.01, slack=0.004)


@pytest.mark.parametrize(("every", "least"), [(40, 50), (15, 40)])
def test_a_few_impossible_waits_hide_no_difference(every: int, least: int) -> None:
    """Waits that are 0.78 s longer in every block, and one load in `every` whose counter is a minute off."""
    draw = np.random.default_rng(7)
    waits_s = draw.normal([0.78, 0.0], 0.4 / np.sqrt(2), (50, 11, 3, 2))
    waits_s += 60 * (draw.random(waits_s.shape) < 1 / every)
    p = signed_ranks_p(waits_s[..., 0] - waits_s[..., 1])
    assert (p < ALARM_P).sum() >= least
