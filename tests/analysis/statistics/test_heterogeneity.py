"""Differences between sites: cases computed by hand, and simulated sites with known truth."""

import numpy as np
import pytest
from scipy import stats
from support.analysis_truth import consistent
from support.samples_truth import declared, samples

from analysis.report.warnings import of_single_sites
from analysis.statistics.contrasts import contrasts
from analysis.statistics.heterogeneity import (
    SiteRatios,
    alike_p,
    between,
    heterogeneity,
    new_site,
    shrink,
    shrunken,
    site_ratios,
)
from analysis.statistics.samples import Array
from analysis.statistics.sensitivity import sensitivity

CAMPAIGNS = 250


def known(centres: list[float], variances: list[float]) -> SiteRatios:
    """Sites whose errors are known exactly, as if from very many blocks."""
    return SiteRatios(np.array(centres), np.array(variances), np.full(len(centres), 1e9))


def test_tau_and_i_squared_by_hand() -> None:
    """If all sites have the same error, Paule and Mandel's tau squared is the variance of the sites' centres minus the
    variance of that error."""
    tau_squared, i_squared = between(known([0.0, 0.1, 0.2], [0.004] * 3))
    assert tau_squared == pytest.approx(0.01 - 0.004, rel=1e-6)
    # Q = 0.02 / 0.004 = 5 with 2 degrees of freedom.
    assert i_squared == pytest.approx(1 - 2 / 5)


def test_sites_that_scatter_less_than_their_runs_do_not_differ() -> None:
    assert between(known([0.0, 0.01, 0.02], [0.004] * 3)) == (0, 0)


def test_paule_and_mandels_equation_holds_with_unequal_errors() -> None:
    sites = known([-0.3, -0.1, 0.0, 0.25], [0.001, 0.01, 0.002, 0.02])
    weights = 1 / (sites.variances + between(sites)[0])
    mean = (weights * sites.centres).sum() / weights.sum()
    assert (weights * (sites.centres - mean) ** 2).sum() == pytest.approx(3, abs=1e-4)


def test_whether_sites_are_alike_by_hand() -> None:
    """With errors that are known, the test is Cochran's: here Q = 5 with 2 degrees of freedom. With equal errors of
    five degrees of freedom together, it is the analysis of variance."""
    assert alike_p(known([0.0, 0.1, 0.2], [0.004] * 3)) == pytest.approx(stats.chi2.sf(5, 2), rel=1e-4)
    blocks = np.random.default_rng(2).normal(0, 0.1, (4, 6)) + np.array([[0.0], [0.0], [0.2], [0.2]])
    pooled = SiteRatios(blocks.mean(axis=1), np.full(4, blocks.var(axis=1, ddof=1).mean() / 6), np.full(4, 1e9), 20)
    assert alike_p(pooled) == pytest.approx(stats.f_oneway(*blocks).pvalue, rel=1e-3)
    assert alike_p(known([0.1, 0.1, 0.1], [0.0] * 3)) == 1
    assert alike_p(known([0.1, 0.2, 0.1], [0.0] * 3)) == 0


@pytest.mark.parametrize(("sites", "blocks"), [(10, 3), (5, 2), (14, 5)])
def test_sites_that_are_alike_differ_in_one_of_100_campaigns(sites: int, blocks: int) -> None:
    """A chi-squared distribution of Q would find a difference in 5 of 100 (ten sites, three blocks)."""
    ratios = np.random.default_rng(sites).normal(0, 0.07, (CAMPAIGNS, sites, blocks))
    rejections = sum(alike_p(site_ratios(campaign)) < 0.01 for campaign in ratios)
    assert rejections <= 0.01 * CAMPAIGNS + 3 * np.sqrt(0.01 * CAMPAIGNS)


@pytest.mark.parametrize("sites", [3, 10, 38])
def test_a_new_site_without_noise_of_runs_is_students_t(sites: int) -> None:
    """The next normally distributed value is within t (k - 1 degrees) times s sqrt(1 + 1/k) of the mean."""
    centres = np.random.default_rng(sites).normal(-0.1, 0.05, sites)
    low, high = new_site(known(centres.tolist(), [0.0] * sites), 0.95)
    reach = stats.t.ppf(0.975, sites - 1) * centres.std(ddof=1) * np.sqrt(1 + 1 / sites)
    assert (low + high) / 2 == pytest.approx(centres.mean())
    assert (high - low) / 2 == pytest.approx(reach, rel=0.02)


def test_no_variance_at_all_has_a_point_as_interval() -> None:
    sites = known([-0.1] * 4, [0.0] * 4)
    assert between(sites) == (0, 0)
    assert new_site(sites, 0.95) == (-0.1, -0.1)
    for numbers in shrink(sites, 0.95):
        assert numbers == pytest.approx([-0.1] * 4)


def test_a_shrunken_site_by_hand() -> None:
    """Tau squared is 0.25, and so is the variance of each of the five sites. So each site shrinks by
    0.25 / (0.25 + 0.25), times Morris's (k - 3) / (k - 1)."""
    centres = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * np.sqrt(0.5 / 0.625)
    estimate, low, high = shrink(known(centres.tolist(), [0.25] * 5), 0.95)
    assert estimate == pytest.approx(centres * (1 - 0.5 * 2 / 4), rel=1e-4)
    assert (high - low)[2] / 2 == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(0.25 * (1 - 0.8 * 0.25)), rel=1e-4)
    assert (high - low)[0] > (high - low)[2]


def test_three_sites_are_not_drawn() -> None:
    sites = known([-1.0, 0.0, 2.0], [0.5] * 3)
    assert shrink(sites, 0.95)[0] == pytest.approx(sites.centres)


def test_a_site_of_one_block_has_the_variance_of_the_others() -> None:
    """The blocks of two sites have the variances 2 and 8, each with one degree of freedom. Their average, 5, is added
    to each with the weight of four degrees of freedom; the third site, of one block, has only the average."""
    ratios = np.array([[1.0, 3.0], [0.0, 4.0], [2.0, np.nan]])
    sites = site_ratios(ratios)
    assert sites.centres == pytest.approx([2, 2, 2])
    assert sites.variances == pytest.approx([(2 + 4 * 5) / 5 / 2, (8 + 4 * 5) / 5 / 2, 5])


def simulated(sites: int, blocks: int, tau: float, seed: int) -> tuple[Array, Array, Array]:
    """The true log ratios of the sites, the true log ratio of one further site, and the measured log ratios of the
    sites' blocks (campaigns x sites x blocks). Blocks scatter more at some sites than at others."""
    draw = np.random.default_rng(seed)
    truth, further = draw.normal(-0.1, tau, (CAMPAIGNS, sites)), draw.normal(-0.1, tau, CAMPAIGNS)
    scatter = 0.1 * np.exp(draw.normal(0, 0.3, (CAMPAIGNS, sites, 1)))
    return truth, further, truth[..., None] + scatter * draw.standard_normal((CAMPAIGNS, sites, blocks))


@pytest.mark.slow
@pytest.mark.parametrize(("sites", "blocks", "tau"), [(4, 5, 0.1), (6, 10, 0.03), (10, 31, 0.02)])
def test_the_prediction_interval_holds_a_new_site(sites: int, blocks: int, tau: float) -> None:
    _, further, ratios = simulated(sites, blocks, tau, seed=sites)
    intervals = [new_site(site_ratios(campaign), 0.95) for campaign in ratios]
    held = sum(low <= truth <= high for (low, high), truth in zip(intervals, further, strict=True))
    assert consistent(held, CAMPAIGNS, 0.95, slack=0.01)


@pytest.mark.slow
def test_where_sites_do_not_differ_the_prediction_is_cautious() -> None:
    _, further, ratios = simulated(6, 10, 0, seed=1)
    intervals = [new_site(site_ratios(campaign), 0.95) for campaign in ratios]
    assert sum(low <= truth <= high for (low, high), truth in zip(intervals, further, strict=True)) >= 0.95 * CAMPAIGNS


@pytest.mark.slow
@pytest.mark.parametrize(("sites", "blocks", "tau"), [(5, 5, 0.03), (10, 5, 0.05), (12, 31, 0.02)])
def test_shrunken_sites_are_nearer_the_truth_and_their_intervals_hold(sites: int, blocks: int, tau: float) -> None:
    truth, _, ratios = simulated(sites, blocks, tau, seed=blocks)
    raw = shrunk = held = 0.0
    for of_sites, campaign in zip(truth, ratios, strict=True):
        estimated = site_ratios(campaign)
        estimate, low, high = shrink(estimated, 0.95)
        raw += ((estimated.centres - of_sites) ** 2).sum()
        shrunk += ((estimate - of_sites) ** 2).sum()
        held += ((low <= of_sites) & (of_sites <= high)).sum()
    assert shrunk < 0.9 * raw
    assert 0.94 <= held / truth.size <= 0.99


def test_the_tables_of_a_campaign() -> None:
    draw = np.random.default_rng(3)
    a = 1000 * np.exp(draw.normal(0, 0.05, (6, 8)))
    b = 900 * np.exp(draw.normal(0, 0.05, (6, 8)) + draw.normal(0, 0.1, (6, 1)))
    b[5] = np.nan
    b[4, 1:] = np.nan
    campaign, hypotheses = samples({"tcp": a, "quic": b}), declared(("tcp", "quic"))
    (row,) = heterogeneity(campaign, hypotheses).to_dict("records")
    assert (row["reference"], row["compared"], row["network"], row["metric"]) == ("tcp", "quic", "dsl", "si")
    assert row["sites"] == 5
    assert row["new_low"] < -0.1 < row["new_high"]
    assert 0.01 < row["tau"] < 0.3
    table = shrunken(campaign, hypotheses)
    assert table["site"].tolist() == ["s01", "s02", "s03", "s04", "s05"]
    assert table["blocks"].tolist() == [8, 8, 8, 8, 1]
    assert ((table["shrunken_low"] < table["shrunken"]) & (table["shrunken"] < table["shrunken_high"])).all()
    # The site with one block is the least certain.
    widths = table["shrunken_high"] - table["shrunken_low"]
    assert widths.idxmax() == 4


def test_one_block_a_site_says_nothing_of_the_runs() -> None:
    times = {"tcp": np.full((5, 1), 1000.0), "quic": np.linspace(800, 900, 5)[:, None]}
    campaign, hypotheses = samples(times), declared(("tcp", "quic"))
    (row,) = heterogeneity(campaign, hypotheses).to_dict("records")
    assert np.isnan([row[name] for name in ("tau", "i_squared", "new_low", "new_high")]).all()
    table = shrunken(campaign, hypotheses)
    assert table["gain"].iloc[0] == pytest.approx(-0.2)
    assert table["shrunken"].isna().all()


def test_two_sites_say_nothing_of_a_third_and_an_absent_protocol_has_no_row() -> None:
    campaign = samples({"tcp": np.full((2, 3), 1000.0), "quic": np.full((2, 3), 900.0)})
    assert heterogeneity(campaign, declared(("tcp", "quic"))).empty
    assert shrunken(campaign, declared(("tcp", "quic+bbr"))).empty


def site_warnings(gains: Array, runs: int, noise: float, seed: int) -> list[str]:
    """The warnings about sites with these log ratios (networks x sites, the same in SI and PLT)."""
    draw = np.random.default_rng(seed)
    of_blocks = draw.normal(0, noise / 2, (*gains.shape, 1, runs))
    shape = (*gains.shape, 2, runs)
    effects = {"tcp+": np.zeros(gains.shape), "quic": gains}
    times = {
        name: 1000 * np.exp(of_blocks + effect[..., None, None] + draw.normal(0, noise, shape))
        for name, effect in effects.items()
    }
    campaign = samples(times, ("dsl", "lte")[: len(gains)], ("si", "plt"))
    hypotheses = declared(("tcp+", "quic"), metrics=("si", "plt"))
    return of_single_sites(contrasts(campaign, hypotheses, {}), sensitivity(campaign, hypotheses))


def test_an_answer_that_hangs_on_one_site_of_many() -> None:
    """A case from a review: one of 38 sites changes the mean by two percentage points. The report must name this site,
    but must not say that sites disagree."""
    gains = np.append(np.full(37, np.log(0.64)), np.log(2.2))[None]
    texts = site_warnings(gains, runs=10, noise=0.05, seed=1)
    assert texts == [
        "One site, s38, changes the mean of QUIC against TCP+. Over all sites, SI on DSL -33.8 %, without it -35.9 %; "
        "also PLT on DSL."
    ]


def test_sites_that_differ_are_no_answer_that_hangs_on_one() -> None:
    gains = np.random.default_rng(2).normal(-0.3, 0.08, (2, 38))
    assert site_warnings(gains, runs=10, noise=0.05, seed=2) == []


def test_a_few_sites_of_another_sign_are_exceptions() -> None:
    """If they are many, the verdict says so (tests/analysis/report/test_verdicts.py)."""
    halves = np.tile([-0.2, 0.2], 10)[None]
    assert site_warnings(halves, runs=10, noise=0.03, seed=3) == []
    few = np.append(np.full(36, -0.3), [0.2, 0.2])[None]
    texts = site_warnings(few, runs=10, noise=0.03, seed=4)
    assert texts[0] == (
        "QUIC against TCP+ in SI on DSL has exceptions: faster on 36 of 38 sites, but slower on s37 and s38."
    )


def test_the_same_ratio_in_every_block_hangs_on_no_site() -> None:
    """Times that are whole frames of a film can have the same ratio everywhere. Then the means with and without a site
    differ only by rounding errors."""
    assert site_warnings(np.full((2, 7), -0.1), runs=5, noise=0, seed=1) == []


@pytest.mark.slow
def test_few_noisy_runs_seldom_warn_of_sites() -> None:
    """Campaigns of six sites with three runs that scatter by 20 %, and without an effect: at most one in twenty may
    warn (`tests/proof` tests a thousand)."""
    alarms = sum(bool(site_warnings(np.zeros((2, 6)), runs=3, noise=0.2, seed=seed)) for seed in range(40))
    assert alarms <= 0.05 * 40
