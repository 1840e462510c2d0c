"""Variants are compared with their originals, round by round."""

import numpy as np
import pytest

from analysis import hypotheses
from analysis.outcomes import FASTER
from analysis.samples import Samples
from analysis.variants import variants


def test_a_variant_is_compared_with_its_own_original_alone() -> None:
    draw = np.random.default_rng(3)
    rounds = draw.normal(0, 0.3, (1, 1, 1, 1, 12))  # what all runs of a round share
    logs = np.log(1000) + rounds + draw.normal(0, 0.02, (1, 3, 2, 1, 12))
    logs[:, 2] += np.log(0.9)
    samples = Samples(np.exp(logs), ("lte",), ("news", "shop", "shop@small"), ("tcp", "quic"), ("si",))
    table = variants(samples, hypotheses.load())
    assert set(zip(table["variant"], table["original"], strict=True)) == {("shop@small", "shop")}
    assert table["protocol"].tolist() == ["tcp", "quic"]
    assert table["change"].to_numpy() == pytest.approx(-0.1, abs=0.03)
    assert (table["verdict"] == FASTER).all()
