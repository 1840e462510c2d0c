"""Tests of what runs should not depend on have their level, find an effect, and agree with textbook formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.analysis_truth import consistent

from analysis.statistics.dependence import (
    Codes,
    carry_over_test,
    factor_test,
    normal_scores,
    wander_test,
)
from analysis.statistics.ratios import of_numbers
from analysis.statistics.samples import Array

CAMPAIGNS = 100
SD = 0.05


def noise(draw: np.random.Generator, size: int, is_heavy: bool) -> Array:
    """Scatter of ln(time); heavy: one run in ten takes up to several times as long."""
    tail = np.log1p(np.abs(draw.standard_t(2.5, size))) * (draw.random(size) < 0.1)
    return np.asarray(draw.normal(0, SD, size) + tail * is_heavy)


def carried(seed: int, protocols: int, carry: float = 0.0, is_heavy: bool = False, sites: int = 6) -> float:
    """The p value of carry-over in a campaign of ten blocks of each site, whose blocks, settings, and places differ.
    Loads after the first protocol take `carry` (ln) longer."""
    draw = np.random.default_rng(seed)
    site = np.concatenate([draw.permutation(sites) for _ in range(10)])
    block = np.repeat(np.arange(len(site)), protocols)
    place = np.tile(np.arange(protocols), len(site))
    protocol = np.argsort(draw.random((len(site), protocols)), axis=1).ravel()
    previous = np.append(0, protocol[:-1])
    setting = site[block] * protocols + protocol
    logs = noise(draw, len(block), is_heavy) * draw.choice([0.5, 2], sites)[site[block]]
    logs += draw.normal(0, 0.5, setting.max() + 1)[setting] + draw.normal(0, SD, len(site))[block] + 0.02 * place
    logs += carry * (previous == 0)
    return carry_over_test(logs, previous, site[block], setting, block, place)[0].p


def ratios(seed: int, wander: float = 0.0, is_heavy: bool = False, sites: int = 8) -> tuple[Array, Codes]:
    """The log ratios of the blocks of a campaign in the order of measuring, which wander in states of ten blocks each,
    and their sites."""
    draw = np.random.default_rng(seed)
    site = np.concatenate([draw.permutation(sites) for _ in range(12)])
    states = np.repeat(draw.normal(0, wander, len(site) // 10 + 1), 10)[: len(site)]
    scatter = noise(draw, len(site), is_heavy) - noise(draw, len(site), is_heavy)
    return scatter + states, site


def wandered(seed: int, wander: float = 0.0, is_heavy: bool = False) -> float:
    values, site = ratios(seed, wander, is_heavy)
    return wander_test(values, site)[2]


def test_one_factor_is_an_analysis_of_variance() -> None:
    draw = np.random.default_rng(1)
    groups = [draw.normal(size, 1, size) for size in (5, 9, 13)]
    factor = np.repeat([0, 1, 2], [5, 9, 13])
    test = factor_test(np.concatenate(groups), factor, [np.zeros(27, dtype=int)])
    expected = stats.f_oneway(*groups)
    assert (test.f, test.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (test.between, test.within) == (2, 24)
    means = [group.mean() for group in groups]
    assert np.diff(test.effects) == pytest.approx(np.diff(means))


def test_several_unbalanced_factors_are_the_additive_model_of_statsmodels() -> None:
    # Imported here, since that takes a quarter of a second, and every worker imports this module.
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    draw = np.random.default_rng(2)
    codes = {name: draw.integers(0, levels, 90) for name, levels in (("a", 3), ("b", 7), ("c", 20), ("d", 2))}
    values = draw.normal(0, 1, 90) + codes["a"] + 0.3 * codes["b"]
    test = factor_test(values, codes["a"], [codes["c"], codes["b"], codes["d"]])
    table = anova_lm(smf.ols("y ~ C(b) + C(c) + C(d) + C(a)", pd.DataFrame({**codes, "y": values})).fit(), typ=2)
    assert test.f == pytest.approx(table.loc["C(a)", "F"])
    assert (test.between, test.within) == (2, table.loc["Residual", "df"])


def test_a_factor_that_another_one_determines_counts_for_nothing() -> None:
    draw = np.random.default_rng(4)
    # Ten tenths do not add up to exactly 1, so rounding leaves small eigenvalues.
    site, place = np.repeat(np.arange(7), 10), np.arange(70) % 3
    values = draw.normal(size=70)
    one, other = (factor_test(values, place, others) for others in ([site], [site // 3, site, site // 2]))
    assert [other.f, other.p, other.within] == pytest.approx([one.f, one.p, one.within])


def test_a_factor_that_the_others_determine_has_no_p_value() -> None:
    draw = np.random.default_rng(3)
    site = np.repeat(np.arange(5), 8)
    assert np.isnan(factor_test(draw.normal(size=40), site // 2, [site]).p)
    assert np.isnan(factor_test(np.ones(40), np.tile([0, 1], 20), [site]).p)
    assert np.isnan(factor_test(np.empty(0), np.empty(0, dtype=int), [np.empty(0, dtype=int)]).p)


@pytest.mark.slow
@pytest.mark.parametrize(("protocols", "is_heavy"), [(2, False), (2, True), (4, True)])
def test_carry_over_has_its_level_although_sites_scatter_unequally(protocols: int, is_heavy: bool) -> None:
    p = np.array([carried(seed, protocols, is_heavy=is_heavy) for seed in range(CAMPAIGNS)])
    assert consistent(int((p < 0.05).sum()), CAMPAIGNS, 0.05)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("protocols", "sites", "least"), [(2, 12, 0.8), (4, 6, 0.9)])
def test_carry_over_is_found(protocols: int, sites: int, least: float) -> None:
    p = np.array([carried(seed, protocols, np.log(1.08), sites=sites) for seed in range(40)])
    assert (p < 0.01).mean() > least


@pytest.mark.slow
@pytest.mark.parametrize("is_heavy", [False, True])
def test_ratios_that_do_not_wander_are_found_to_wander_as_rarely_as_declared(is_heavy: bool) -> None:
    p = np.array([wandered(seed, is_heavy=is_heavy) for seed in range(2 * CAMPAIGNS)])
    assert stats.binom.sf((p < 0.05).sum() - 1, len(p), 0.05) > 1e-3
    assert stats.binom.sf((p < 0.01).sum() - 1, len(p), 0.01) > 1e-3


def test_ratios_that_wander_are_found() -> None:
    p = np.array([wandered(seed, wander=0.06) for seed in range(60)])
    assert (p < 0.01).mean() > 0.6


def test_the_error_from_batches_covers_a_ratio_that_wanders() -> None:
    usual = wide = 0
    for seed in range(CAMPAIGNS):
        values, site = ratios(seed, wander=0.06)
        error = float(values.std() / np.sqrt(len(values)))
        low, high = wander_test(values, site)[0].widened(of_numbers(values.mean(), error, len(values))).interval(0.95)
        usual += abs(values.mean()) < 1.98 * error
        wide += bool(low < 0 < high)
    assert usual / CAMPAIGNS < 0.65
    assert wide / CAMPAIGNS > 0.9


def test_the_error_is_not_widened_if_batches_are_alike() -> None:
    values, site = ratios(1)
    test = factor_test(normal_scores(values, site), np.arange(len(values)) % 3, [site])
    assert test.f < 1
    wide = test.widened(of_numbers(0.0, 0.01, len(values)))
    assert [float(wide.error), float(wide.freedom)] == [0.01, 2]
