"""The number of blocks that the declared family needs: textbook numbers, and the verdicts' own threshold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from analysis import hypotheses
from analysis.statistics.hypotheses import Pair
from analysis.statistics.planning import (
    COLUMNS,
    DIFFERENCES,
    MOST_BLOCKS,
    POWER,
    blocks_needed,
    needed_after,
    needed_for,
)
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import Array, Samples
from analysis.statistics.spending import levels, looks_of_plan

PAIR = Pair("tcp+", "quic")
DECLARED = replace(hypotheses.load(), comparisons=(PAIR,), family=(PAIR,), family_metrics=("si",))
NEEDED = [column for column in COLUMNS if column.startswith("blocks_")]


def samples(values: Array, networks: int = 1) -> Samples:
    """Samples with these `values` (sites x protocols x blocks), on each of `networks`."""
    sites = tuple(f"s{site}" for site in range(len(values)))
    repeated = np.repeat(values[None, :, :, None], networks, axis=0)
    return Samples(repeated, ("dsl", "lte", "mss")[:networks], sites, ("tcp+", "quic"), ("si",))


def drawn(sites: int = 4, blocks: int = 10, scatter: float = 0.05) -> Array:
    return np.exp(np.random.default_rng(1).normal(7, scatter, (sites, 2, blocks)))


@pytest.mark.parametrize("effect", [0.3, 0.5, 0.8, 1.5])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_one_site_needs_what_a_paired_t_test_needs(effect: float, level: float) -> None:
    exact = TTestPower().solve_power(effect, alpha=level, power=POWER)
    assert needed_for(effect, 1, 1, lambda _: level) == np.ceil(exact)


@pytest.mark.parametrize("difference", [0.001, 0.01])
def test_many_blocks_are_needed_where_the_power_can_only_be_that_of_a_normal_distribution(difference: float) -> None:
    """At thresholds of 1e-4 and less, scipy's noncentral t has no finite value far out. This must not count as a power
    of 1."""
    normal = ((stats.norm.isf(1e-5 / 2) + stats.norm.ppf(POWER)) / difference) ** 2
    assert needed_for(difference, 1, 1, lambda _: 1e-5) == pytest.approx(normal, rel=0.001) or normal > MOST_BLOCKS


def test_the_number_is_the_smallest_that_suffices() -> None:
    needed = needed_for(0.05, 0.05, 11, lambda _: 0.01 / 16)
    for blocks, suffices in ((needed, True), (needed - 1, False)):
        freedom = 11 * (blocks - 1)
        power = stats.nct.sf(stats.t.isf(0.01 / 32, freedom), freedom, np.sqrt(blocks))
        assert bool(power >= POWER) is suffices


def test_what_is_unknown_needs_an_unknown_number_and_what_is_tiny_more_than_a_million() -> None:
    for scatter, freedom in ((np.nan, 1), (0, 1), (1, np.nan), (1, 0)):
        assert np.isnan(needed_for(0.05, scatter, freedom, lambda _: 0.01))
    assert needed_for(1e-5, 1, 1, lambda _: 0.01) == np.inf
    assert needed_for(10, 0.01, 30, lambda _: 0.01) == 2


def test_the_scatter_is_the_error_of_the_mean_over_sites_with_one_block_of_each() -> None:
    """400 sites, whose ratios scatter by 0.05 x sqrt(2): the error is a twentieth of this, whatever the number of
    blocks."""
    for blocks in (4, 31):
        row = blocks_needed(samples(np.concatenate([drawn(400, blocks)])), DECLARED).iloc[0]
        assert row["scatter"] == pytest.approx(0.05 * np.sqrt(2 / 400), rel=0.06)
        assert (row["sites"], row["blocks"]) == (400, blocks)


def test_more_contrasts_need_more_blocks() -> None:
    one = blocks_needed(samples(drawn()), DECLARED).iloc[0]
    table = samples(drawn())
    for more in (
        blocks_needed(table, DECLARED, networks=("dsl", "lte", "da2gc", "mss")),
        blocks_needed(samples(drawn(), networks=3), DECLARED),
    ):
        assert (more.iloc[0][NEEDED] >= one[NEEDED]).all()
        assert more.iloc[0]["blocks_1pct"] > one["blocks_1pct"]


def test_the_level_is_that_of_a_contrast_at_the_last_look() -> None:
    row = blocks_needed(samples(drawn(), networks=3), DECLARED).iloc[0]
    ratios = drawn()[:, 1] / drawn()[:, 0]
    assert row["blocks"] == ratios.shape[1]
    freedom = float(mean_over_sites(np.log(ratios)).freedom)

    def level(blocks: int) -> float:
        return 2 * levels(looks_of_plan([blocks], 1).blocks, blocks, 0.01 / 3 / 2)[-1]

    direct = needed_for(np.log1p(0.02), row["scatter"], freedom / 9, level, freedom)
    assert row["blocks_2pct"] == direct


@pytest.mark.parametrize("first", [5, 10])
@pytest.mark.parametrize("scatter", [0.05, 0.2])
def test_a_test_has_its_power_with_the_number_that_was_named_for_it(first: int, scatter: float) -> None:
    """One site, a true difference of 5 %: campaigns that have not decided after the first blocks are continued to the
    number that is named for them."""
    draw, level, difference = np.random.default_rng([first, round(100 * scatter)]), 0.01, np.log1p(0.05)
    begun = draw.normal(difference, scatter, (400, 1, first))
    start, is_detected = mean_over_sites(begun), []
    for place in np.flatnonzero(start.difference_p() >= level):
        error, centre = start.error[place] * np.sqrt(first), start.centre[place]
        total = needed_after(difference, centre, first, error, start.freedom[place], lambda _: level)
        more = draw.normal(difference, scatter, (1, int(min(total, 100_000)) - first))
        is_detected.append(mean_over_sites(np.hstack([begun[place], more])).difference_p() < level)
    assert 0.85 < np.mean(is_detected) < 0.97


def test_larger_differences_need_fewer_blocks() -> None:
    row = blocks_needed(samples(drawn()), DECLARED).iloc[0]
    assert len(NEEDED) == len(DIFFERENCES)
    assert list(row[NEEDED]) == sorted(row[NEEDED], reverse=True)


def test_what_no_site_has_a_block_of_is_left_out() -> None:
    times = drawn()
    times[:, 1] = np.nan
    empty = blocks_needed(samples(times), DECLARED)
    assert empty.empty
    assert list(empty.columns) == COLUMNS
    absent = replace(DECLARED, family=(Pair("tcp+bbr", "quic+bbr"),))
    assert list(blocks_needed(samples(drawn()), absent).columns) == COLUMNS


def test_one_block_of_each_site_says_nothing_of_the_scatter() -> None:
    row = blocks_needed(samples(drawn(blocks=1)), DECLARED).iloc[0]
    assert np.isnan(row["scatter"])
    assert row[NEEDED].isna().all()
