"""The sequential test: false alarms at the declared rate without knowing level or scatter, and shifts found.

Seeds are fixed, so these tests cannot fail by chance; tests/proof/test_history_rates.py has more series.
"""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import cusum
from analysis.statistics.samples import Array

WEEKLY = 52
# Four metrics on a network, with a false alarm in five years.
BETWEEN = 4 * WEEKLY / 0.2


def between_alarms(limit: float, states: int = 300) -> float:
    """The mean number of scores between two alarms, from a Markov chain (Brook and Evans 1972, Biometrika 59)."""
    width = 2 * limit / (2 * states - 1)
    places = np.arange(states) * width
    steps = places[None, :] - places[:, None] + cusum.REFERENCE
    chances = stats.norm.cdf(steps + width / 2) - stats.norm.cdf(steps - width / 2)
    chances[:, 0] = stats.norm.cdf(steps[:, 0] + width / 2)
    return float(np.linalg.solve(np.eye(states) - chances, np.ones(states))[0])


def alarms(values: Array, limit: float) -> int:
    """The number of alarms in all series, if the sum begins anew after each."""
    count, total = 0, np.zeros(len(values))
    for scores in cusum.scores(values).T[cusum.BASELINE :]:
        total = np.maximum(0.0, total + scores - cusum.REFERENCE)
        count += int((total > limit).sum())
        total[total > limit] = 0.0
    return count


@pytest.mark.parametrize("values", [52.0, 208.0, BETWEEN, 1e4])
def test_the_limit_is_that_of_the_declared_number_of_values(values: float) -> None:
    assert between_alarms(cusum.limit(values)) == pytest.approx(values, rel=0.06)


@pytest.mark.parametrize("kind", ["normal", "heavy", "two kinds"])
def test_false_alarms_stay_at_the_declared_rate(kind: str) -> None:
    draw, size = np.random.default_rng(1), (1000, cusum.BASELINE + 5 * WEEKLY)
    scatter = {
        "normal": lambda: draw.normal(size=size),
        "heavy": lambda: draw.standard_t(3, size),
        "two kinds": lambda: draw.normal(size=size) * np.where(draw.random(size) < 0.1, 4, 1),
    }[kind]()
    # Weeks scatter by 2 %, around a level that differs between series.
    values = draw.normal(0, 0.3, (len(scatter), 1)) + 0.02 * scatter
    expected = len(values) * 5 * WEEKLY / BETWEEN
    assert alarms(values, cusum.limit(BETWEEN)) <= expected


@pytest.mark.parametrize(("correlation", "least", "most"), [(0.2, 2.3, 2.8), (0.4, 5.8, 6.8)])
def test_values_like_those_before_them_raise_more_alarms_as_documented(
    correlation: float, least: float, most: float
) -> None:
    values = np.random.default_rng(1).normal(size=(1000, cusum.BASELINE + 5 * WEEKLY))
    for week in range(1, values.shape[1]):
        values[:, week] = correlation * values[:, week - 1] + np.sqrt(1 - correlation**2) * values[:, week]
    expected = len(values) * 5 * WEEKLY / BETWEEN
    assert least < alarms(values, cusum.limit(BETWEEN)) / expected < most


@pytest.mark.parametrize(("before", "shift", "within", "share"), [(8, 2, 6, 0.25), (8, 1, 52, 0.16), (26, 1, 52, 0.55)])
def test_an_early_or_small_shift_is_often_missed_as_documented(
    before: int, shift: float, within: int, share: float
) -> None:
    values = np.random.default_rng(1).normal(size=(4000, before + within))
    values[:, before:] += shift
    has_alarm = (cusum.sums(cusum.scores(values)) > cusum.limit(BETWEEN)).any(axis=1)
    assert has_alarm.mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("between", [3.0, 52.0, BETWEEN, 1e6])
def test_no_series_raises_an_alarm_before_it_is_long_enough(between: float) -> None:
    limit = cusum.limit(between)
    least = cusum.least_values(limit)
    highest = np.full(least, cusum.MOST_SCORE)
    assert cusum.sums(highest)[-1] > limit >= cusum.sums(highest[:-1])[-1]


@pytest.mark.parametrize(
    ("before", "shift", "within", "share"), [(52, 2.5, 4, 0.85), (26, 3, 4, 0.9), (12, 3, 6, 0.85)]
)
def test_a_shift_is_found_within_weeks(before: int, shift: float, within: int, share: float) -> None:
    values = np.random.default_rng(1).normal(size=(2000, before + within))
    values[:, before:] += shift
    risen = cusum.sums(cusum.scores(0.1 + 0.02 * values))[:, before:] > cusum.limit(BETWEEN)
    assert risen.any(axis=1).mean() > share
    fallen = cusum.sums(cusum.scores(-values))[:, before:] > cusum.limit(BETWEEN)
    assert fallen.any(axis=1).mean() < 0.001


def test_neither_level_nor_scatter_matters_and_the_past_keeps_its_scores() -> None:
    values = np.random.default_rng(1).normal(size=30)
    scores = cusum.scores(values)
    np.testing.assert_allclose(cusum.scores(5 + 0.01 * values), scores, atol=1e-6)
    np.testing.assert_array_equal(cusum.scores(values[:20]), scores[:20])
    later = values[cusum.BASELINE]
    before = values[: cusum.BASELINE]
    t = (later - before.mean()) / before.std(ddof=1) / np.sqrt(1 + 1 / len(before))
    expected = stats.norm.ppf(stats.t.cdf(t, len(before) - 1))
    assert scores[cusum.BASELINE] == pytest.approx(expected) and not scores[: cusum.BASELINE].any()


def test_one_odd_value_or_equal_values_raise_no_alarm() -> None:
    odd = np.random.default_rng(1).normal(0, 0.01, 30)
    odd[20] = 3.0
    for values in (odd, np.zeros(30), np.array([0.1]), np.array([])):
        assert not (cusum.sums(cusum.scores(values)) > cusum.limit(BETWEEN)).any()
