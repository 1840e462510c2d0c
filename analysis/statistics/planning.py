"""How many blocks the declared family needs, and the chances of its verdicts, at the level of the verdicts themselves.

The scatter of runs is known from few blocks, so power is averaged over the values that it may have (as in Julious and
Owen 2006, Sample size calculations for clinical studies allowing for uncertainty about the variance).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import block_ratios, chi_squared_quantiles, mean_over_sites
from analysis.statistics.samples import Array, Samples, by_metric, counts, frame
from analysis.statistics.spending import last_level

# The differences (shares) to plan for, and the probability with which the test should find such a difference.
DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2)
POWER = 0.9
MOST_BLOCKS = 2**20
NEEDED = {share: f"blocks_{share:.0%}".replace("%", "pct") for share in DIFFERENCES}
COLUMNS = ["reference", "compared", "network", "metric", "sites", "blocks", "scatter", *NEEDED.values()]
# How many equally likely values of the scatter power is averaged over.
SCATTERS = 16


def blocks_needed(samples: Samples, hypotheses: Hypotheses, networks: Sequence[str] = ()) -> pd.DataFrame:
    """The number of blocks of each site that each of DIFFERENCES needs, for every contrast of the family.

    `networks` are as in `analysis.statistics.confirmatory`. Leaves out contrasts for which no site has a block.
    Columns: reference, compared, network, metric, sites, blocks (of a site, on average), scatter (the error of the mean
    over sites if each site had one block), and blocks_1pct, blocks_2pct, … (NaN if the scatter is unknown or 0; inf for
    more than a million).
    """
    every = {*samples.networks, *networks}
    sizes = {name: hypotheses.family_size(len(hypotheses.declared_with(name, every))) for name in samples.networks}
    tables = [pd.DataFrame(columns=[*COLUMNS, "freedom"])]
    for pair in samples.measured(hypotheses.family):
        ratios = by_metric(block_ratios(samples, pair))
        ratio, numbers = mean_over_sites(ratios), counts(ratios)
        sites = (numbers > 0).sum(axis=-1)
        blocks = numbers.sum(axis=-1) / np.maximum(1, sites)
        cells = {**pair._asdict(), "sites": sites, "blocks": blocks, "scatter": ratio.error * np.sqrt(blocks)}
        tables.append(frame({**cells, "freedom": ratio.freedom}, network=samples.networks, metric=samples.metrics))
    table = pd.concat(tables[1:] or tables)
    table = table[(table["sites"] > 0) & table["metric"].isin(hypotheses.family_metrics)].reset_index(drop=True)
    for share, column in NEEDED.items():
        table[column] = [
            needed_for(
                np.log1p(share),
                row.scatter,
                row.freedom / max(row.blocks - 1, 1),
                partial(_last_level, hypotheses.significant_p / max(1, sizes[row.network])),
                row.freedom,
            )
            for row in table.itertuples()
        ]
    return table[COLUMNS]


def _last_level(error: float, blocks: int) -> float:
    """The two-sided level of the test at the end of a plan of this number of `blocks`."""
    return 2 * last_level(blocks, error / 2)


def needed_for(
    difference: float, scatter: float, freedom_per_block: float, level: Callable[[int], float], freedom: float = np.inf
) -> float:
    """The smallest number of blocks with which a t test finds a mean log ratio of `difference` with the probability
    POWER. `level`: that of the test (two-sided), from the number of blocks.

    `scatter` is the error with one block of each site, known with `freedom` degrees of freedom; `freedom_per_block` is
    the number of degrees of freedom that each block after the first adds. NaN for a scatter that is unknown or 0; inf
    for more than MOST_BLOCKS.
    """
    if not (np.isfinite(scatter) and scatter > 0 and freedom_per_block > 0):
        return float("nan")
    shift = difference / possible_scatters(scatter, freedom)
    return _least(
        lambda blocks: chance_of_difference(shift * np.sqrt(blocks), freedom_per_block * (blocks - 1), level(blocks)), 2
    )


def needed_after(
    difference: float,
    centre: float,
    blocks: float,
    scatter: float,
    freedom: float,
    level: Callable[[int], float],
    most: int = MOST_BLOCKS,
) -> float:
    """As `needed_for`, for a campaign that has measured `blocks` blocks with the mean `centre` and has not decided.

    The mean of all blocks at the end consists of the present one and of what follows, whose true mean is `difference`
    in the direction of `centre`. inf for more than `most` blocks.
    """
    if not (np.isfinite(scatter) and scatter > 0 and freedom > 0):
        return float("nan")
    scatters, freedom_per_block = possible_scatters(scatter, freedom), freedom / max(1, blocks - 1)

    def power(total: int) -> Array:
        more = total - blocks
        bound = _t_bound(level(total) / 2, freedom_per_block * (total - 1)) * scatters / np.sqrt(total)
        mean = (blocks * abs(centre) + more * difference) / total
        return np.asarray(special.ndtr((mean - bound) / (scatters * np.sqrt(more) / total)))

    return _least(power, int(blocks) + 1, most)


def chance_of_difference(shift: Array, freedom: float, level: float) -> Array:
    """The chance that a t test at the two-sided `level` finds a true mean that is `shift` times its error from 0."""
    bound = _t_bound(level / 2, freedom)
    exact = stats.nct.sf(bound, freedom, shift)
    # The noncentral t cannot be computed far out; there it equals the normal distribution.
    return np.asarray(np.where(np.isfinite(exact), exact, special.ndtr(shift - bound)))


def detectable_difference(error: float, freedom: float, level: float) -> float:
    """The smallest true mean log ratio that a t test at the two-sided `level` finds with the probability POWER, if the
    mean has this `error`, known with `freedom` degrees of freedom. NaN for an error that is unknown or 0."""
    if not (np.isfinite(error) and error > 0 and freedom > 0):
        return float("nan")
    errors = possible_scatters(error, freedom)

    def surplus(difference: float) -> float:
        return float(chance_of_difference(difference / errors, freedom, level).mean()) - POWER

    most = error
    while surplus(most) < 0:
        most *= 2
    return float(optimize.brentq(surplus, 0, most))


def chance_of_equivalence(margin: float, freedom: float, level: float) -> float:
    """The chance that two one-sided t tests at `level` show a true mean of 0 to be less than `margin` times its error
    from 0."""
    room = margin - _t_bound(level, freedom) / possible_scatters(1, freedom)
    return float(np.maximum(0, 2 * special.ndtr(room) - 1).mean())


def possible_scatters(scatter: float, freedom: float) -> Array:
    """Equally likely values of a standard deviation, estimated as `scatter` with `freedom` degrees of freedom."""
    if np.isinf(freedom):
        return np.array([scatter])
    places = (np.arange(SCATTERS) + 0.5) / SCATTERS
    return np.asarray(scatter * np.sqrt(freedom / chi_squared_quantiles(places, freedom)))


def _t_bound(level: float, freedom: float) -> float:
    """The value that Student's t exceeds with the probability `level`, which is above 0."""
    return float(-special.stdtrit(freedom, level))


def _least(power: Callable[[int], Array], first: int, most: int = MOST_BLOCKS) -> float:
    """The smallest number from `first` on whose `power`, of each possible scatter, is POWER on average; inf if there is
    none up to `most`."""
    low, high, step = first - 1, first, 1
    while power(high).mean() < POWER:
        low, high, step = high, high + step, 2 * step
        if high > most:
            return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle).mean() >= POWER else (middle, high)
    return float(high)
