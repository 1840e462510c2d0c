"""The mean over sites of log ratios within blocks: small cases computed by hand, and properties that must always
hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.hypotheses import Pair
from analysis.statistics.ratios import block_ratios, locations, mean_over_sites
from analysis.statistics.samples import Array, Samples

PAIR = Pair("tcp", "quic")
REPETITIONS = 40_000
FRAME_MS = 1000 / 30


def samples_of_times(tcp: Array, quic: Array) -> Samples:
    """Samples of one network and metric, from times (sites x blocks)."""
    values = np.stack([tcp, quic], axis=1)[None, :, :, None, :]
    sites = tuple(f"s{number}" for number in range(len(tcp)))
    return Samples(values, ("dsl",), sites, ("tcp", "quic"), ("si",))


def log_ratios() -> st.SearchStrategy[Array]:
    """Log ratios (sites x blocks), some of them NaN; multiples of 1/1024, so that sums and differences are exact."""
    value = st.one_of(st.just(np.nan), st.integers(-1000, 1000).map(lambda number: number / 1024))
    shapes = st.tuples(st.integers(1, 5), st.integers(1, 8))
    return shapes.flatmap(
        lambda shape: st.lists(value, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda values: np.array(values).reshape(shape)
        )
    )


def test_a_block_counts_when_it_has_both_times_and_both_are_positive() -> None:
    tcp = np.array([[100.0, 100, np.nan, 0, 100, 100]])
    quic = np.array([[50.0, np.nan, 100, 100, 0, -1]])
    ratios = block_ratios(samples_of_times(tcp, quic), PAIR)
    assert ratios.shape == (1, 1, 1, 6)
    assert ratios[0, 0, 0, 0] == pytest.approx(np.log(0.5))
    assert np.isnan(ratios[0, 0, 0, 1:]).all()


def test_few_blocks_have_their_mean_and_its_error() -> None:
    centre, variance = locations(np.array([[0.1, 0.2, 0.6, np.nan], [0.3, np.nan, np.nan, np.nan], [np.nan] * 4]))
    assert centre[:2] == pytest.approx([0.3, 0.3])
    assert variance[0] == pytest.approx(0.07 / 3)
    assert np.isnan([centre[2], variance[1], variance[2]]).all()


def test_many_blocks_have_hubers_estimate_one_step_from_the_median() -> None:
    """Ten ratios: the median is 0.5, and 70 % of ratios are within 3.5 of it, which is a scatter of 3.38 in a normal
    distribution. So 30 is drawn in to 0.5 + 2 * 3.38."""
    values = np.array([-4.0, -3, -2, -1, 0, 1, 2, 3, 4, 30])
    scatter = 3.5 / stats.norm.ppf(0.85)
    drawn_in = np.array([*values[:-1], 0.5 + 2 * scatter])
    (centre,), (variance,) = locations(values[None])
    assert centre == pytest.approx(0.5 + (drawn_in.mean() - 0.5) / 0.9)
    assert variance == pytest.approx(drawn_in.var(ddof=1) / 10 / 0.9**2)


def test_one_run_that_takes_ten_times_as_long_hardly_moves_the_location() -> None:
    quiet = np.random.default_rng(3).normal(0, 0.05, (1, 31))
    loud = quiet.copy()
    loud[0, 7] += np.log(10)
    (before, before_variance), (after, after_variance) = locations(quiet), locations(loud)
    assert abs(after - before) < 0.01
    assert after_variance < 1.5 * before_variance


def test_the_mean_over_sites_of_whole_blocks_is_students_for_one_site_of_four() -> None:
    ratios = np.array([[0.1, 0.3, 0.2, 0.5]])
    mean = mean_over_sites(ratios)
    expected = stats.ttest_1samp(ratios[0], 0)
    assert mean.difference_p() == pytest.approx(expected.pvalue)
    low, high = mean.interval(0.95)
    interval = expected.confidence_interval(0.95)
    assert [low, high] == pytest.approx([interval.low, interval.high])
    equivalent = stats.ttest_1samp(ratios[0], 0.4, alternative="less").pvalue
    assert mean.equivalence_p(0.4) == pytest.approx(equivalent)


def test_every_site_counts_once_with_satterthwaites_freedom() -> None:
    ratios = np.array([[0.1, 0.3, np.nan, np.nan], [0.5, 0.6, 0.7, 1.0], [np.nan] * 4])
    mean = mean_over_sites(ratios)
    variances = np.array([0.02 / 2, ratios[1].var(ddof=1) / 4])
    assert mean.centre == pytest.approx((0.2 + 0.7) / 2)
    assert mean.error == pytest.approx(np.sqrt(variances.sum()) / 2)
    assert mean.freedom == pytest.approx(variances.sum() ** 2 / (variances**2 / np.array([1, 3])).sum())
    assert mean.signs == 6


def test_a_site_of_one_block_takes_its_error_from_the_other_sites() -> None:
    two, one = [0.1, 0.3, np.nan], [0.4, np.nan, np.nan]
    mean = mean_over_sites(np.array([two, two, one]))
    assert mean.centre == pytest.approx((0.2 + 0.2 + 0.4) / 3)
    assert mean.error == pytest.approx(np.sqrt(0.01 + 0.01 + 0.02) / 3)
    assert mean.freedom == pytest.approx(2)


def test_one_block_of_each_site_tells_a_mean_but_no_error() -> None:
    mean = mean_over_sites(np.array([[0.1], [0.3]]))
    assert mean.centre == pytest.approx(0.2)
    assert np.isnan([mean.error, mean.difference_p(), mean.equivalence_p(1), *mean.interval(0.95)]).all()


def test_nothing_tells_nothing() -> None:
    mean = mean_over_sites(np.full((2, 3, 4), np.nan))
    assert mean.centre.shape == (2,)
    assert np.isnan([mean.centre, mean.error, mean.difference_p()]).all()
    assert (mean.signs == 0).all()


@pytest.mark.parametrize(("sites", "blocks"), [(1, 2), (1, 3), (1, 5), (1, 31), (3, 5)])
def test_what_is_constant_and_different_has_the_p_value_of_as_many_equal_signs(sites: int, blocks: int) -> None:
    """A film with a frame every 33 ms shows 267 ms against 300 ms in every block. This is a difference, but two blocks
    do not prove it."""
    mean = mean_over_sites(np.full((sites, blocks), np.log(300 / 267)))
    total = sites * blocks
    assert mean.error == 0
    assert mean.difference_p() == pytest.approx(stats.binomtest(total, total).pvalue)
    assert mean.equivalence_p(0.2) == pytest.approx(0.5**total)
    assert mean.equivalence_p(0.1) == 1


def test_sites_of_constant_ratios_that_disagree_are_as_good_as_the_one_of_the_fewest_blocks() -> None:
    ratios = np.repeat(np.log([[1.1], [0.99]]), 31, axis=1)
    ratios[1, 4:] = np.nan
    mean = mean_over_sites(ratios)
    assert mean.error == 0
    assert mean.difference_p() == pytest.approx(2 * 0.5**4)


def test_a_few_ratios_of_the_other_sign_among_many_that_are_the_same_are_not_overlooked() -> None:
    """Times are whole frames of a film: 26 of 31 blocks differ by one frame, and 5 by three in the other direction."""
    ratios = np.array([*[np.log(1033 / 1000)] * 26, *[np.log(900 / 1000)] * 5])
    mean = mean_over_sites(ratios[None])
    assert mean.centre == pytest.approx(ratios.mean())
    assert mean.error == pytest.approx(ratios.std(ddof=1) / np.sqrt(31))
    assert mean.difference_p() > stats.binomtest(5, 31).pvalue


def coarse_ratios(frames: float, cells: int, sites: int, blocks: int, seed: int) -> Array:
    """Log ratios (cells x sites x blocks) of two equal protocols, whose times come in whole frames of a film.

    Times are about 600 ms; runs scatter by this many `frames`; the frames' phase differs between sites.
    """
    draw = np.random.default_rng([seed, round(100 * frames), sites, blocks])
    begins_ms = draw.uniform(0, FRAME_MS, (1, cells, sites, 1))
    times = 600 + frames * FRAME_MS * draw.standard_normal((2, cells, sites, blocks))
    # A film's zero is not exactly a frame's beginning.
    logs = np.log(np.ceil((times + begins_ms) / FRAME_MS) * FRAME_MS + draw.normal(0, 0.5, times.shape))
    return np.asarray(logs[1] - logs[0])


@pytest.mark.slow
@pytest.mark.parametrize("frames", [0.2, 0.4, 0.7, 1.4])
@pytest.mark.parametrize(("sites", "blocks"), [(1, 5), (1, 10), (1, 31), (5, 10), (5, 31)])
def test_whole_frames_find_no_difference_where_there_is_none(frames: float, sites: int, blocks: int) -> None:
    rejections = int((mean_over_sites(coarse_ratios(frames, 4000, sites, blocks, 6)).difference_p() < 0.01).sum())
    assert rejections <= stats.binom.isf(1e-5, 4000, 0.01)


def test_one_coarse_ratio_that_is_far_off_hardly_moves_the_location() -> None:
    (quiet,) = coarse_ratios(0.7, 1, 1, 31, 7)
    loud = quiet.copy()
    loud[0, 7] += np.log(10)
    (before, before_variance), (after, after_variance) = locations(quiet), locations(loud)
    assert abs(after - before) < FRAME_MS / 600 / 5
    assert after_variance < 2 * before_variance


def test_what_is_constant_and_equal_does_not_differ_and_is_equivalent() -> None:
    mean = mean_over_sites(np.zeros((2, 31)))
    assert mean.difference_p() == 1
    assert mean.equivalence_p(0.01) < 1e-9


@pytest.mark.parametrize(("share", "factor"), [(0.1, 3.0), (0.1, 1.5), (0.05, 2.0)])
def test_loads_of_two_kinds_give_intervals_that_hold(share: float, factor: float) -> None:
    """Some loads take several times as long over both protocols alike: 12 sites, 31 blocks, else 4 % of scatter."""
    draw = np.random.default_rng([round(100 * share), round(10 * factor)])
    shape = (1000, 12, 31)
    logs = [draw.normal(0, 0.04, shape) + np.log(factor) * (draw.random(shape) < share) for _ in range(2)]
    low, high = mean_over_sites(logs[1] - logs[0]).interval(0.95)
    held = int(((low < 0) & (high > 0)).sum())
    assert stats.binom.ppf(1e-4, shape[0], 0.94) <= held <= stats.binom.ppf(1 - 1e-4, shape[0], 0.98)


@given(log_ratios(), st.randoms(use_true_random=False), st.integers(-512, 512))
def test_swapped_shuffled_and_shifted_ratios_give_the_matching_means_and_p_values(
    ratios: Array, random: object, shift: int
) -> None:
    mean = mean_over_sites(ratios)
    p = float(mean.difference_p())

    # Swapping the protocols negates the centre and keeps the p values.
    swapped = mean_over_sites(-ratios)
    assert mean.centre == pytest.approx(-swapped.centre, nan_ok=True)
    assert p == pytest.approx(swapped.difference_p(), nan_ok=True)
    assert mean.equivalence_p(0.1) == pytest.approx(swapped.equivalence_p(0.1), nan_ok=True)

    # The order of sites and blocks does not matter.
    draw = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    shuffled = mean_over_sites(draw.permuted(ratios[draw.permutation(len(ratios))], axis=1))
    for name in ("centre", "error", "freedom"):
        assert getattr(shuffled, name) == pytest.approx(getattr(mean, name), rel=1e-9, abs=1e-12, nan_ok=True)

    # The interval moves with the ratios.
    moved = mean_over_sites(ratios + shift / 1024)
    for one, other in zip(mean.interval(0.9), moved.interval(0.9), strict=True):
        assert other == pytest.approx(one + shift / 1024, abs=1e-6, nan_ok=True)

    # p values are probabilities, and agree with the interval.
    assert np.isnan(p) or (0 <= p <= 1 and 0 <= mean.equivalence_p(0.05) <= 1)
    low, high = mean.interval(0.95)
    if mean.error > 0 and abs(p - 0.05) > 1e-6:
        assert (p < 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize("factor", [1e-3, 1024.0])
def test_scaling_all_times_changes_nothing(factor: float) -> None:
    draw = np.random.default_rng(4)
    tcp, quic = draw.lognormal(7, 0.2, (2, 6, 10))
    one, other = (
        mean_over_sites(block_ratios(samples_of_times(scale * tcp, scale * quic), PAIR)[0, :, 0])
        for scale in (1, factor)
    )
    assert other.centre == pytest.approx(one.centre)
    assert other.difference_p() == pytest.approx(one.difference_p())


@pytest.mark.parametrize("blocks", [5, 9, 10, 15, 31, 40])
def test_the_error_of_a_location_is_neither_too_large_nor_too_small(blocks: int) -> None:
    """The error for normal ratios is right to 2.5 %, and its degrees of freedom are at most 20 % too high."""
    rows = max(4000, REPETITIONS // blocks * 4)
    centre, variance = locations(np.random.default_rng(blocks).standard_normal((rows, blocks)))
    assert np.sqrt(variance.mean()) / centre.std() == pytest.approx(1, abs=0.025 + 2 / np.sqrt(rows))
    freedom = 2 * variance.mean() ** 2 / variance.var()
    assert freedom > 0.8 * (blocks - 1)


@pytest.mark.parametrize(("sites", "blocks"), [(1, 5), (1, 31), (12, 5)])
@pytest.mark.parametrize("is_heavy", [False, True])
def test_p_is_below_a_level_no_more_often_than_the_level_says(sites: int, blocks: int, is_heavy: bool) -> None:
    draw = np.random.default_rng([sites, blocks])
    size = (max(2000, REPETITIONS // sites // max(1, blocks // 10)), sites, blocks)
    ratios = draw.standard_t(2.5, size) if is_heavy else draw.standard_normal(size)
    p = mean_over_sites(ratios).difference_p()
    for level in (0.05, 0.01):
        assert (p < level).sum() <= stats.binom.isf(1e-4, len(p), 1.05 * level)
