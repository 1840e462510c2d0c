"""The declared family of hypotheses: for each pair, network and metric, is one protocol faster over all sites?

Planning (`analysis.statistics.planning`), stopping (`analysis.stopping`) and the verdict use the same test: Student's t
of the mean over sites of log ratios within blocks (`analysis.statistics.ratios`), corrected for the size of the family.
The family is declared before anything is measured, so its size includes contrasts that turn out to have no runs. A
contrast that was added later belongs to a family of its own, or to none (`analysis.statistics.hypotheses.Hypotheses`).
A campaign that may stop early is tested at each of its interim analyses, which a network reaches with all its sites
together. The contrast's p value is the smallest p value of these analyses times their number (Bonferroni), so that
frequent testing does not find more by chance. Its intervals are wide enough that those of all interim analyses hold at
once with the declared confidence (repeated confidence intervals: Jennison and Turnbull 1989). If a contrast ended
early, its gain is also shown shrunken, since chance is more likely to have made it larger than smaller.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics.contrast_table import contrast_columns, holm_of_family, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, margins, mean_over_sites
from analysis.statistics.samples import Array, Samples, by_metric, counts, frame

# The numbers of blocks of every site after which interim analyses are made; the last is the paper's number of runs.
INTERIM_ANALYSES = (5, 10, 15, 20, 25, 31)
# The columns of `report/tables/confirmatory.csv`.
CONFIRMATORY = ["reference", "compared", "network", "metric", "sites", "blocks", "gain", "gain_low", "gain_high", "p"]
CONFIRMATORY += ["p_corrected", "verdict"]
COLUMNS = [*CONFIRMATORY, "equivalence_p", "equivalence_p_corrected", "margin", "gain_shrunken"]


def confirmatory(
    samples: Samples,
    hypotheses: Hypotheses,
    rtt_ms: Mapping[str, float],
    interim: Sequence[int] = (),
    networks: Sequence[str] = (),
) -> pd.DataFrame:
    """The verdict of each contrast of the family, in a campaign that might have stopped at each `interim` analysis.

    `networks` are the campaign's; the family includes networks without runs. `rtt_ms`: network → RTT.
    One row for each pair, network and metric of the family. Columns: reference, compared, network, metric, sites (with
    a block that has both protocols), blocks (that have both), gain (of the ratios within blocks, over sites; negative:
    faster) with gain_low and gain_high, p and p_corrected (Holm's), verdict (`analysis.statistics.outcomes`),
    equivalence_p and equivalence_p_corrected, margin (the gain within which both count as equivalent), and
    gain_shrunken (for contrasts whose network stopped early because of them; otherwise NaN).
    """
    every = [*networks, *(name for name in samples.networks if name not in networks)]
    key = ["reference", "compared", "network", "metric"]
    cells = product(hypotheses.family, every, hypotheses.family_metrics)
    table = pd.DataFrame([(*pair, *cell) for pair, *cell in cells], columns=key)
    if table.empty:
        return table.reindex(columns=COLUMNS)
    tables = [_contrasts(samples, pair, hypotheses, rtt_ms, interim) for pair in samples.measured(hypotheses.family)]
    measured = pd.concat(tables) if tables else pd.DataFrame(columns=key)
    table = table.merge(measured, how="left", on=key).reindex(columns=[*COLUMNS, "last_p"])
    numbers = ["sites", "blocks"]
    table[numbers] = table[numbers].fillna(0).astype(int)
    family = families(table, hypotheses)

    def correct(p_values: Array) -> Array:
        return np.asarray(pd.Series(p_values).groupby(family).transform(holm_of_family))

    table = judged(table, correct, hypotheses.significant_p)
    ended_early = table["network"].map(
        {name: rounds in interim[:-1] for name, rounds in zip(samples.networks, samples.rounds, strict=True)}
    )
    level = hypotheses.significant_p / table["p"].groupby(family).transform("size") / max(1, len(interim))
    shrunken = np.expm1(without_selection(np.log1p(table["gain"]), table["last_p"], level))
    table["gain_shrunken"] = shrunken.where(ended_early.eq(True) & (table["last_p"] < level))
    return table[COLUMNS]


def without_selection(
    centre: "pd.Series[float]", p: "pd.Series[float]", level: "pd.Series[float]"
) -> "pd.Series[float]":
    """`centre` without the bias of its selection: only estimates with a two-sided `p` below `level` were selected.

    The result is half way between the observed estimate and the conditional maximum likelihood estimate, if estimates
    are normal. If the true value were this maximum likelihood estimate, the mean of all selected estimates would equal
    the observed estimate. The maximum likelihood estimate alone shrinks too much if nearly all estimates are selected
    (Zhong and Prentice 2008, Bias-reduced estimators and confidence intervals for odds ratios in genome-wide
    association studies).
    """
    observed, bound = stats.norm.isf(p / 2), stats.norm.isf(level / 2)
    low, high = np.zeros(len(p)), np.where(np.isfinite(observed), observed, 0)
    # Bisection: the mean of the selected estimates grows with the true value.
    for _ in range(50):
        middle = (low + high) / 2
        above, below = stats.norm.sf(bound - middle), stats.norm.cdf(-bound - middle)
        surplus = (stats.norm.pdf(bound - middle) - stats.norm.pdf(bound + middle)) / (above + below)
        is_low = middle + surplus < observed
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    kept = np.where(np.isfinite(observed) & (observed > 0), low / np.where(observed > 0, observed, 1), 1)
    return centre * (1 + kept) / 2


def families(table: pd.DataFrame, hypotheses: Hypotheses) -> "pd.Series[str]":
    """The family of each contrast in `table`: contrasts that were declared at the same time form one family."""
    return table["network"].map(lambda network: hypotheses.added_networks.get(network, ""))


def _contrasts(
    samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float], interim: Sequence[int]
) -> pd.DataFrame:
    """The family's contrasts of one pair, before correction."""
    metrics = hypotheses.family_metrics
    columns = [samples.metrics.index(metric) for metric in metrics]
    ratios = by_metric(block_ratios(samples, pair)[:, :, columns])
    margin = margins(samples, pair, hypotheses, rtt_ms)[:, columns]
    blocks = counts(ratios)
    ratio = mean_over_sites(ratios)
    confidence = confidence_of_each(hypotheses, interim)
    at_analyses = first_blocks(ratios, samples.rounds, interim)
    tests = [mean_over_sites(first) for first in at_analyses] if interim else [ratio]
    cells = {
        **pair._asdict(),
        "sites": (blocks > 0).sum(axis=-1),
        "blocks": blocks.sum(axis=-1),
        **contrast_columns(ratio, confidence, margin=margin),
        # An analysis whose difference had the other sign is no evidence for the present difference.
        "p": least_p(
            [np.where(np.sign(test.centre) == np.sign(ratio.centre), test.difference_p(), 1) for test in tests]
        ),
        "equivalence_p": least_p([test.equivalence_p(margin) for test in tests]),
        "last_p": ratio.difference_p(),
    }
    return frame(cells, network=samples.networks, metric=metrics)


def confidence_of_each(hypotheses: Hypotheses, interim: Sequence[int]) -> float:
    """The confidence of each interval, so that the intervals of all `interim` analyses hold at once with the declared
    one."""
    return 1 - (1 - hypotheses.confidence) / max(1, len(interim))


def first_blocks(ratios: Array, rounds: Sequence[int], interim: Sequence[int]) -> list[Array]:
    """`ratios` (networks x metrics x sites x blocks) at each `interim` analysis; NaN if a network has fewer
    `rounds`."""
    reached = np.array(rounds)[:, None, None, None]
    return [np.where(reached >= blocks, ratios[..., :blocks], np.nan) for blocks in interim]


def least_p(p_values: Sequence[Array]) -> Array:
    """The smallest p value of several analyses, times their number; NaN if none has a p value."""
    stacked = np.stack(p_values)
    smallest = np.where(np.isnan(stacked), np.inf, stacked).min(axis=0)
    return np.where(np.isinf(smallest), np.nan, np.minimum(1, len(p_values) * smallest))
