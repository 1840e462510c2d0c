"""On simulated campaigns with known truth, the statistics are as reliable as they claim (more repetitions:
tests/proof)."""

import pytest
from support import analysis_truth as truth

from analysis.statistics.samples import t_test_p


@pytest.mark.parametrize("noise", [truth.normal, truth.lognormal])
def test_nothing_is_found_where_there_is_nothing(noise: truth.Noise) -> None:
    for name, count in truth.false_positives(noise, 2000, 31, 0.05, seed=1).items():
        assert truth.consistent(count, 2000, 0.05, slack=0.003), name


def test_a_simulated_effect_is_found() -> None:
    a, b = truth.two_samples(truth.normal, 500, 31, -0.05, seed=5)
    significant = (t_test_p(a, b, equal_var=True) < 0.01).sum()
    # With 5 % of noise, an effect of 5 % is one standard deviation. With 31 runs of each protocol, it is found with a
    # probability of about 0.9.
    assert truth.consistent(int(significant), 500, 0.885, slack=0.02)
