"""How the looks at a campaign share its error."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.spending import Looks, last_level, levels, looks_of_plan, spent

ERROR = 0.005


@pytest.mark.parametrize(
    ("planned", "sites", "may_end", "blocks"),
    [
        ([31], 5, True, (5, 10, 15, 20, 25, 31)),
        ([31], 5, False, (5, 10, 15, 20, 25, 31)),
        ([5], 11, False, (2, 3, 4, 5)),
        ([6], 11, True, (5, 6)),
        ([5, 12], 11, False, (2, 3, 4, 5, 10, 12)),
        ([40], 5, False, (5, 10, 15, 20, 25, 40)),
        ([3], 1, True, (3,)),
    ],
)
def test_looks_are_fixed_by_the_plan(planned: list[int], sites: int, may_end: bool, blocks: tuple[int, ...]) -> None:
    looks = looks_of_plan(planned, sites, may_end=may_end)
    assert (looks.blocks, looks.planned) == (blocks, planned[0])
    assert looks.may_end == (may_end or len(planned) > 1)


def test_one_look_has_the_planned_part_of_the_error() -> None:
    assert levels((7,), 7, ERROR) == pytest.approx((0.8 * ERROR,))
    assert spent(1) == pytest.approx(0.8)
    assert spent(1e9) == pytest.approx(1)


@pytest.mark.parametrize(
    ("blocks", "planned"), [((2, 3, 4, 5), 5), ((5, 10, 15, 20, 25, 31, 62), 31), ((5, 10, 40), 5)]
)
def test_all_looks_together_err_as_often_as_was_spent(blocks: tuple[int, ...], planned: int) -> None:
    draw, campaigns, error = np.random.default_rng(1), 200_000, 0.05
    steps = np.diff([0, *blocks])
    scores = np.cumsum(draw.standard_normal((campaigns, len(blocks))) * np.sqrt(steps), axis=1) / np.sqrt(blocks)
    crossed = (scores > stats.norm.isf(levels(blocks, planned, error))).any(axis=1).sum()
    expected = error * spent(blocks[-1] / planned)
    low, high = stats.binom.ppf([1e-5, 1 - 1e-5], campaigns, expected)
    assert low <= crossed <= high


@pytest.mark.parametrize("planned", [2, 5, 10, 16, 21, 26, 27, 31])
def test_the_last_look_of_a_plan_keeps_most_of_what_is_planned(planned: int) -> None:
    for error in (1e-4, ERROR):
        assert 0.28 < last_level(planned, error) / error < 0.81


def test_the_level_of_a_last_look_that_is_far_hardly_changes() -> None:
    far = looks_of_plan([2000], 5)
    assert last_level(2000, ERROR) == pytest.approx(levels(far.blocks, 2000, ERROR)[-1], rel=0.03)


def test_the_p_value_is_the_error_whose_level_is_just_reached() -> None:
    looks = Looks((5, 10, 31), 31)
    at_levels = levels(looks.blocks, 31, 0.003)
    for look, level in enumerate(at_levels):
        p_values = [np.array([level if place == look else 0.9, np.nan]) for place in range(3)]
        p = looks.p(p_values)
        assert p[0] == pytest.approx(0.003, rel=0.02)
        assert np.isnan(p[1])
        assert looks.level(look, 0.003) == pytest.approx(level, rel=0.02)
    assert looks.p([np.array([0.8])] * 3) == [1]
    assert looks.p([np.array([np.nan]), np.array([0.0]), np.array([np.nan])]) < 1e-11
