"""How many blocks the declared family needs, with the same test and threshold as its verdicts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import Samples, by_metric, counts

# The differences (shares) to plan for, and the probability with which the test should find such a difference.
DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2)
POWER = 0.9
MOST_BLOCKS = 2**20
NEEDED = {share: f"blocks_{share:.0%}".replace("%", "pct") for share in DIFFERENCES}
COLUMNS = ["reference", "compared", "network", "metric", "sites", "blocks", "scatter", *NEEDED.values()]


def blocks_needed(
    samples: Samples, hypotheses: Hypotheses, interim: Sequence[int] = (), networks: Sequence[str] = ()
) -> pd.DataFrame:
    """The number of blocks of each site that each of DIFFERENCES needs, for every contrast of the family.

    `interim` and `networks` are as in `analysis.statistics.confirmatory`. Leaves out contrasts for which no site has a
    block. Columns: reference, compared, network, metric, sites, blocks (of a site, on average), scatter (the error of
    the mean over sites if each site had one block), and blocks_1pct, blocks_2pct, … (NaN if the scatter is unknown or
    0; inf for more than a million).
    """
    all_networks = {*samples.networks, *networks}
    rows = []
    for pair in samples.measured(hypotheses.family):
        ratios = by_metric(block_ratios(samples, pair))
        ratio, sizes = mean_over_sites(ratios), counts(ratios)
        for n, network in enumerate(samples.networks):
            family = hypotheses.family_size(len(hypotheses.declared_with(network, all_networks)))
            level = hypotheses.significant_p / max(1, family * max(1, len(interim)))
            for m, metric in enumerate(samples.metrics):
                sites = int((sizes[n, m] > 0).sum())
                if metric not in hypotheses.family_metrics or not sites:
                    continue
                blocks = float(sizes[n, m].sum() / sites)
                error, freedom = float(ratio.error[n, m]), float(ratio.freedom[n, m])
                scatter = error * np.sqrt(blocks)
                row = {**pair._asdict(), "network": network, "metric": metric, "sites": sites, "blocks": blocks}
                needed = {
                    column: needed_for(np.log1p(share), scatter, freedom / max(blocks - 1, 1), level)
                    for share, column in NEEDED.items()
                }
                rows.append({**row, "scatter": scatter, **needed})
    return pd.DataFrame(rows, columns=COLUMNS)


def needed_for(
    difference: float, scatter: float, freedom_per_block: float, level: float, power: float = POWER
) -> float:
    """The smallest number of blocks with which a t test at `level` (two-sided) finds a mean log ratio of `difference`.

    `scatter` is the error with one block of each site; `freedom_per_block` is the number of degrees of freedom that
    each block after the first adds. NaN for a scatter that is unknown or 0; inf for more than MOST_BLOCKS.
    """
    if not (np.isfinite(scatter) and scatter > 0 and freedom_per_block > 0):
        return float("nan")

    def is_enough(blocks: int) -> bool:
        freedom = freedom_per_block * (blocks - 1)
        bound = stats.t.isf(level / 2, freedom)
        shift = difference * np.sqrt(blocks) / scatter
        achieved = stats.nct.sf(bound, freedom, shift)
        # The noncentral t cannot be computed far out; there it equals the normal distribution.
        return bool((achieved if np.isfinite(achieved) else stats.norm.sf(bound - shift)) >= power)

    low, high = 1, 2
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST_BLOCKS:
            return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return float(high)
