"""The exchange of the two protocols within blocks: the test of a plan with few blocks at several sites.

The plan draws the order of the protocols within each block at random. If the protocols do not differ, each block could
as well have had its two times exchanged, which changes the sign of its log ratio. The p value is the share of all such
exchanges whose mean over sites, divided by its own error, is as large as the measured one (a studentised permutation
test: Janssen 1997, Studentized permutation tests for non-i.i.d. hypotheses). With few blocks it finds more than
Student's t, whose degrees of freedom are few, and needs no normal scatter.
"""

import numpy as np

from analysis.statistics.samples import Array

# With fewer blocks over all sites there are too few exchanges for a small p value.
LEAST_BLOCKS = 15
# Up to this many exchanges, all are made; of more, samples of these sizes are drawn until MANY are as extreme. The
# largest resolves the level of a family of 200 contrasts.
MOST_EXCHANGES = 2**20
SAMPLES = (2**12, 2**16, MOST_EXCHANGES)
MANY = 30
SEED = 20
# Scores that differ by less are equal.
SAME = 1e-9


def above_p(ratios: Array) -> float:
    """The one-sided p value of a mean over sites of `ratios` (sites x blocks, NaN where there is none) of 0 or less.

    A mean above some other limit is tested by subtracting the limit from the ratios. NaN if no site has two blocks. At
    most nine blocks of a site take part, so that all their exchanges fit into a table.
    """
    sites = [site[np.isfinite(site)] for site in ratios]
    sites = [site for site in sites if len(site)]
    if not any(len(site) > 1 for site in sites):
        return float("nan")
    tables = [_means(site) for site in sites]
    score = _Score(sites)
    measured = float(score([table[:1] for table in tables])[0]) - SAME
    blocks = sum(len(site) for site in sites)
    if 2**blocks <= MOST_EXCHANGES:
        return float((score(_all(tables)) >= measured).mean())
    draw = np.random.default_rng(SEED)
    for size in SAMPLES:
        drawn = [table[draw.integers(0, len(table), size, dtype=np.uint16)] for table in tables]
        extreme = int((score(drawn) >= measured).sum())
        if extreme >= MANY:
            break
    # The measured exchange is one of all.
    return (extreme + 1) / (size + 1)


def difference_p(ratios: Array) -> float:
    """The two-sided p value of a mean over sites of 0."""
    return min(1.0, 2 * above_p(ratios * _sign(ratios)))


def equivalence_p(ratios: Array, margin: float) -> float:
    """The p value of a mean over sites that is `margin` or more from 0 (two one-sided tests; Schuirmann 1987)."""
    return above_p(margin - ratios * _sign(ratios))


def _sign(ratios: Array) -> float:
    centres = [site[np.isfinite(site)].mean() for site in ratios if np.isfinite(site).any()]
    return -1.0 if np.sum(centres) < 0 else 1.0


def _means(site: Array) -> Array:
    """The mean of a site's ratios for each exchange of its blocks; the first is that without any."""
    signs = 1 - 2 * (np.arange(2 ** len(site))[:, None] >> np.arange(len(site)) & 1)
    return np.asarray(signs @ site / len(site))


def _all(tables: list[Array]) -> list[Array]:
    """All combinations of the sites' exchanges: for each site an array over the combinations."""
    grid = np.meshgrid(*(np.arange(len(table)) for table in tables), indexing="ij", copy=False)
    return [table[places.ravel()] for table, places in zip(tables, grid, strict=True)]


class _Score:
    """The mean over sites, divided by its own error, up to a constant factor. A site with one block has the error of a
    block at the other sites, as in `analysis.statistics.ratios.mean_over_sites`."""

    def __init__(self, sites: list[Array]) -> None:
        self.blocks = [len(site) for site in sites]
        self.squares = [float((site**2).mean()) for site in sites]

    def __call__(self, means: list[Array]) -> Array:
        total, variance, of_block = (np.zeros(len(means[0])) for _ in range(3))
        several = sum(blocks > 1 for blocks in self.blocks)
        for mean, blocks, square in zip(means, self.blocks, self.squares, strict=True):
            total += mean
            if blocks > 1:
                # Rounding may make a variance of 0 negative.
                one = np.maximum(0, square - mean**2) / (blocks - 1)
                variance += one
                of_block += one * (blocks / several)
        variance += of_block * (len(self.blocks) - several)
        with np.errstate(divide="ignore", invalid="ignore"):
            constant = np.where(np.abs(total) < SAME, 0, np.inf * total)
            return np.asarray(np.where(variance > SAME**2, total / np.sqrt(variance), constant))
