"""Samples with known truth, without a campaign."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analysis.hypotheses import load
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.samples import Array, Samples


def samples(
    times: Mapping[str, Array], networks: tuple[str, ...] = ("dsl",), metrics: tuple[str, ...] = ("si",)
) -> Samples:
    """Samples made from each protocol's times: networks x sites x metrics x blocks.

    Leading axes of length 1 may be left out (sites x blocks for one network and metric).
    """
    arrays = {name: np.asarray(values, dtype=float) for name, values in times.items()}
    first = next(iter(arrays.values()))
    sites, blocks = first.shape[-3 if first.ndim == 4 else -2], first.shape[-1]
    shape = (len(networks), sites, len(metrics), blocks)
    values = np.stack([array.reshape(shape) for array in arrays.values()], axis=2)
    names = tuple(f"s{number:02}" for number in range(1, sites + 1))
    return Samples(values, networks, names, tuple(arrays), metrics)


def declared(*pairs: tuple[str, str], metrics: tuple[str, ...] = ("si",)) -> Hypotheses:
    """Hypotheses on these pairs, all of which are compared and are the family."""
    named = tuple(Pair(*pair) for pair in pairs)
    return replace(load(), comparisons=named, family=named, family_metrics=metrics)
