"""The exchange of the two protocols within blocks: the test of a plan with few blocks at several sites.

The plan draws the order of the protocols within each block at random. If the protocols do not differ, each block could
as well have had its two times exchanged, which changes the sign of its log ratio. The p value is the share of all such
exchanges whose mean over sites, divided by its own error, is as large as the measured one (a studentised permutation
test: Janssen 1997, Studentized permutation tests for non-i.i.d. hypotheses). With few blocks it finds more than
Student's t, whose degrees of freedom are few, and needs no normal scatter.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.gain import mean
from analysis.statistics.samples import Array

# With fewer blocks over all sites there are too few exchanges for a small p value.
LEAST_BLOCKS = 15
# Up to this many exchanges, all are made; of more, samples of these sizes are drawn until MANY are as extreme. The
# largest resolves the level of a family of 200 contrasts.
MOST_EXCHANGES = 2**20
SAMPLES = (2**12, 2**16, MOST_EXCHANGES)
MANY = 30
SEED = 20
# Sites are drawn together while their exchanges fit into a table of this length, which the processor's cache holds. For
# the same reason, at most this many exchanges are scored at once.
TABLE = 2**12
# Scores that differ by less are equal.
SAME = 1e-9


def above_p(ratios: Array) -> float:
    """The one-sided p value of a mean over sites of `ratios` (sites x blocks, NaN where there is none) of 0 or less.

    A mean above some other limit is tested by subtracting the limit from the ratios. NaN if no site has two blocks. At
    most nine blocks of a site take part, so that all their exchanges fit into a table.
    """
    sites = [site[np.isfinite(site)] for site in ratios]
    blocks = [len(site) for site in sites if len(site)]
    single = blocks.count(1)
    if single == len(blocks):
        return float("nan")
    tables = [_table(site, single / (len(blocks) - single)) for site in sites if len(site)]

    def score(sums: Array) -> Array:
        """The mean over sites divided by its own error, up to a constant factor."""
        total, variance = sums
        is_constant = variance <= SAME**2
        if not is_constant.any():
            return np.asarray(total / np.sqrt(variance))
        scores = total / np.sqrt(np.where(is_constant, 1, variance))
        scores[is_constant] = np.copysign(np.where(np.abs(total[is_constant]) < SAME, 0, np.inf), total[is_constant])
        return np.asarray(scores)

    measured = float(score(sum((table[:, :1] for table in tables), np.zeros((2, 1))))[0]) - SAME
    if 2 ** sum(blocks) <= MOST_EXCHANGES:
        # The exchange of all other blocks negates a score, so half of the exchanges have all scores.
        (half,) = _joined([tables[0][:, ::2], *tables[1:]], MOST_EXCHANGES)
        scores = score(half)
        return float((scores >= measured).mean() + (scores <= -measured).mean()) / 2
    tables = _joined(tables, TABLE)
    lengths = tuple(table.shape[1] for table in tables)
    for number, size in enumerate(SAMPLES):
        extreme = 0
        drawn = list(zip(tables, _drawn(lengths, number), strict=True))
        for begin in range(0, size, TABLE):
            parts = [table.take(places[begin : begin + TABLE], axis=1) for table, places in drawn]
            extreme += int((score(sum(parts, np.zeros((2, 1)))) >= measured).sum())
        if extreme >= MANY:
            break
    return (extreme + 1) / (size + 1)  # the measured exchange is one of all


def difference_p(ratios: Array) -> float:
    """The two-sided p value of a mean over sites of 0."""
    return min(1.0, 2 * above_p(ratios * _sign(ratios)))


def equivalence_p(ratios: Array, margin: float) -> float:
    """The p value of a mean over sites that is `margin` or more from 0 (two one-sided tests; Schuirmann 1987)."""
    return above_p(margin - ratios * _sign(ratios))


def _sign(ratios: Array) -> float:
    return -1.0 if np.nansum(mean(ratios)) < 0 else 1.0


def _table(site: Array, borrowers: float) -> Array:
    """For each exchange of a site's blocks, first that of none: the mean of its ratios, and the variance of this mean
    and of `borrowers` ratios, since sites with one block have no variance of their own (2 x exchanges)."""
    blocks = len(site)
    signs = 1 - 2 * (np.arange(2**blocks)[:, None] >> np.arange(blocks) & 1)
    mean = signs @ site / blocks
    # Rounding may make a variance of 0 negative.
    variance = np.maximum(0, (site**2).mean() - mean**2) / max(1, blocks - 1)
    return np.stack([mean, variance * (1 + borrowers * blocks)])


# The contrasts of a network have tables of the same lengths in most cases, and drawing takes longer than scoring.
@lru_cache(len(SAMPLES))
def _drawn(lengths: tuple[int, ...], number: int) -> list[NDArray[np.uint16]]:
    """A sample of SAMPLES from tables of these `lengths`: for each table, the place in it of each exchange."""
    draw = np.random.default_rng(SEED)
    samples = [
        [draw.integers(0, length, size, dtype=np.uint16) for length in lengths] for size in SAMPLES[: number + 1]
    ]
    return samples[-1]


def _joined(tables: list[Array], most: int) -> list[Array]:
    """`tables`, with several sites in one while that has at most `most` exchanges; sites add up."""
    joined = tables[:1]
    for table in tables[1:]:
        if joined[-1].shape[1] * table.shape[1] <= most:
            joined[-1] = (joined[-1][:, :, None] + table[:, None, :]).reshape(2, -1)
        else:
            joined.append(table)
    return joined
