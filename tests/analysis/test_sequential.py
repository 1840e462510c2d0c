"""The stopping rule: its bounds, its decisions, and that looking often does not find what is not there."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.signal import fftconvolve

from analysis.outcomes import EQUIVALENT, FASTER, OPEN, SLOWER
from analysis.sequential import BOUNDS, LOOKS, Rule, decide, sequential_test
from base.places import PROJECT

SIGNIFICANT_P = 0.01


def test_the_bounds_spend_one_percent_in_proportion_to_the_runs() -> None:
    """Armitage, McPherson and Rowe's recursion: the density of a random walk that no look has stopped yet."""
    shares = np.array(LOOKS) / LOOKS[-1]
    grid = np.linspace(-10, 10, 8001)
    step = grid[1] - grid[0]
    going = stats.norm.pdf(grid, scale=np.sqrt(shares[0]))
    for place, (before, now) in enumerate(pairwise([0, *shares])):
        if before:
            going = fftconvolve(going, stats.norm.pdf(grid, scale=np.sqrt(now - before)), mode="same") * step
        edge = -stats.norm.ppf(BOUNDS[place] / 2) * np.sqrt(now)
        spent = going[np.abs(grid) > edge].sum() * step
        assert spent == pytest.approx(SIGNIFICANT_P * (now - before), rel=0.02)
        going = np.where(np.abs(grid) > edge, 0, going)


def test_a_clear_difference_is_decided_at_the_first_look() -> None:
    draw = np.random.default_rng(1)
    slow, fast = draw.normal(1000, 20, 31).tolist(), draw.normal(800, 20, 31).tolist()
    decision = sequential_test(slow, fast)
    assert (decision.outcome, decision.runs) == (FASTER, LOOKS[0])
    assert decision.high < 1
    assert decision.ratio == pytest.approx(0.8, rel=0.05)
    assert sequential_test(fast, slow).outcome == SLOWER


def test_no_difference_is_a_decision_too() -> None:
    draw = np.random.default_rng(2)
    decision = sequential_test(draw.normal(1000, 10, 31).tolist(), draw.normal(1000, 10, 31).tolist())
    assert decision.outcome == EQUIVALENT
    assert 1 / 1.05 < decision.low < 1 < decision.high < 1.05


def test_what_a_look_decided_stands() -> None:
    draw = np.random.default_rng(3)
    slow, fast = draw.normal(1000, 20, 5).tolist(), draw.normal(800, 20, 5).tolist()
    later = draw.normal(1000, 20, 10).tolist()
    assert sequential_test(slow + later, fast + later) == sequential_test(slow, fast)


def test_nothing_is_decided_between_looks() -> None:
    draw = np.random.default_rng(4)
    a, b = draw.normal(1000, 300, 9).tolist(), draw.normal(1000, 300, 9).tolist()
    assert sequential_test(a[:4], b[:4]).runs == 0
    assert sequential_test(a[:8], b[:6]) == sequential_test(a[:5], b[:5])


def test_measuring_goes_on_until_every_pair_is_decided() -> None:
    draw = np.random.default_rng(5)
    clear, vague = draw.normal(500, 5, 31), draw.normal(1000, 300, 31)
    runs = {
        "tcp": {"si": vague.tolist(), "plt": vague.tolist()},
        "quic": {"si": clear.tolist(), "plt": draw.normal(1000, 300, 31).tolist()},
    }

    def first(count: int) -> dict[str, dict[str, list[float]]]:
        return {name: {metric: values[:count] for metric, values in of.items()} for name, of in runs.items()}

    alone = decide(first(5), [("tcp", "quic")], ["si"])
    assert (alone.go_on, alone.next_look) == (False, 5)
    both = decide(first(6), [("tcp", "quic")], ["si", "plt"])
    assert (both.go_on, both.next_look) == (True, 10)
    end = decide(runs, [("tcp", "quic")], ["si", "plt"])
    assert (end.go_on, end.next_look) == (False, 31)
    assert end.decisions["tcp", "quic", "plt"].outcome == OPEN


def test_a_protocol_without_a_run_is_waited_for() -> None:
    verdict = decide({"tcp": {"si": [1.0] * 9}}, [("tcp", "quic")], ["si"])
    assert (verdict.go_on, verdict.next_look) == (True, 5)


def test_times_without_variance_are_decided() -> None:
    assert sequential_test([100.0] * 5, [100.0] * 5).outcome == EQUIVALENT
    assert sequential_test([100.0] * 5, [90.0] * 5).outcome == FASTER
    assert sequential_test([0.0] * 5, [90.0] * 5).outcome == OPEN


@pytest.mark.parametrize("looks", [(5,), (10, 5), (1, 5)])
def test_a_rule_that_makes_no_sense_is_refused(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="looks"):
        Rule(looks, (0.001, 0.002))


def test_looking_often_finds_nothing_where_there_is_nothing() -> None:
    """1200 pairs of settings without a difference, looked at up to six times; beyond 32 only once in 10 000."""
    draw = np.random.default_rng(6)
    tables = draw.lognormal(7, 0.3, (1200, 2, LOOKS[-1]))
    differences = sum(sequential_test(a, b).outcome in (FASTER, SLOWER) for a, b in tables)
    assert differences <= stats.binom.ppf(1 - 1e-4, len(tables), SIGNIFICANT_P)


def test_it_loads_neither_tables_nor_plots() -> None:
    code = (
        "import sys, analysis.sequential; "
        "print([name for name in ('pandas', 'matplotlib', 'statsmodels') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"
