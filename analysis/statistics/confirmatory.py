"""The declared family of hypotheses: for each pair, network and metric, is one protocol faster over all sites?

Planning (`analysis.statistics.planning`), stopping (`analysis.stopping`) and the verdict use the same test: Student's t
of the mean over sites of log ratios within blocks (`analysis.statistics.ratios`), or the exchange of the protocols
within blocks where the plan has few blocks of several sites (`analysis.statistics.exchange`). The chance that the
family has any wrong verdict, faster, slower or equivalent, is at most `significant_p`: p values are multiplied by the
number of contrasts (Bonferroni), including declared ones that turn out to have no runs. Differences and equivalences
need no correction for each other, since no contrast can have both wrong. A contrast that was added later belongs to a
family of its own, or to none (`analysis.statistics.hypotheses.Hypotheses`). A campaign is tested at each of its looks,
which a network reaches with all its sites together, and the looks share the error (`analysis.statistics.spending`). So
reading a report often, stopping early and raising the number of runs find nothing more by chance. Intervals hold for
the number of blocks that was planned; those of a campaign that may end early or has not ended are wider, and hold at
all looks at once (repeated confidence intervals: Jennison and Turnbull 1989). The gain of a contrast that ended early
is also shown shrunken, since chance is more likely to have made it larger than smaller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics import exchange
from analysis.statistics.contrast_table import GAIN, contrast_columns, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.ratios import ROBUST_BLOCKS, block_ratios, margins, mean_over_sites
from analysis.statistics.samples import OVER_SITES, Array, Samples, by_metric, counts, frame
from analysis.statistics.spending import Looks

# The columns of `report/tables/confirmatory.csv`.
CONFIRMATORY = [*OVER_SITES, "sites", "blocks", *GAIN, "p", "p_corrected", "verdict"]
COLUMNS = [*CONFIRMATORY, "equivalence_p", "equivalence_p_corrected", "margin", "is_in_reach", "gain_shrunken"]


def confirmatory(
    samples: Samples,
    hypotheses: Hypotheses,
    rtt_ms: Mapping[str, float],
    looks: Looks | None = None,
    networks: Sequence[str] = (),
) -> pd.DataFrame:
    """The verdict of each contrast of the family.

    `looks`: the campaign's; without them all blocks are tested once, by Student's t. `networks` are the campaign's; the
    family includes networks without runs. `rtt_ms`: network → RTT.
    One row for each pair, network and metric of the family. Columns: OVER_SITES, sites (with a block that has both
    protocols), blocks (that have both), gain (of the ratios within blocks, over sites; negative: faster) with its
    interval, p (of all looks) and p_corrected (Bonferroni's), verdict (`analysis.statistics.outcomes`), equivalence_p
    and equivalence_p_corrected, margin (the gain within which both count as equivalent), is_in_reach (whether so many
    blocks with this scatter would show that a gain of 0 is equivalent, by Student's t at the family's level), and
    gain_shrunken (for contrasts whose network stopped early because of them; otherwise NaN).
    """
    every = dict.fromkeys([*networks, *samples.networks])
    cells = product(hypotheses.family, every, hypotheses.family_metrics)
    table = pd.DataFrame([(*pair, *cell) for pair, *cell in cells], columns=OVER_SITES)
    if table.empty:
        return table.reindex(columns=COLUMNS)
    tables = [_contrasts(samples, pair, hypotheses, rtt_ms, looks) for pair in samples.measured(hypotheses.family)]
    measured = pd.concat(tables) if tables else pd.DataFrame(columns=OVER_SITES)
    table = table.merge(measured, how="left", on=OVER_SITES).reindex(columns=[*COLUMNS, "last_p", "zero_p"])
    table = table.fillna({"sites": 0, "blocks": 0}).astype({"sites": int, "blocks": int})
    # Contrasts that were declared at the same time form one family.
    declared_at = table["network"].map(lambda network: hypotheses.added_networks.get(network, ""))
    size = table["network"].groupby(declared_at).transform("size").to_numpy()
    # Tests that could not be made belong to the family, too; they are no evidence.
    table = judged(table, lambda p: np.minimum(1, np.where(np.isnan(p), 1, p) * size), hypotheses.significant_p)
    table["is_in_reach"] = table["zero_p"] * size < hypotheses.significant_p
    if looks and looks.may_end:
        errors = dict(zip(table["network"], hypotheses.significant_p / size, strict=True))
        level = table["network"].map(_level_of_early_end(samples, looks, errors))
        shrunken = np.expm1(without_selection(np.log1p(table["gain"]), table["last_p"], level))
        is_settled = table["verdict"].ne(NOT_DECIDED) | table["blocks"].eq(0)
        has_ended = is_settled.groupby(table["network"]).transform("all")
        table["gain_shrunken"] = shrunken.where(has_ended & (table["last_p"] < level))
    return table[COLUMNS]


def _level_of_early_end(samples: Samples, looks: Looks, errors: Mapping[str, float]) -> dict[str, float]:
    """Network → the level of the two-sided test at the look at which it ended, if that is not the last, from its error
    over all looks."""
    return {
        name: 2 * looks.level(looks.blocks.index(rounds), errors[name] / 2)
        for name, rounds in zip(samples.networks, samples.rounds, strict=True)
        if rounds in looks.blocks[:-1]
    }


def without_selection(
    centre: "pd.Series[float]", p: "pd.Series[float]", level: "pd.Series[float]"
) -> "pd.Series[float]":
    """`centre` without the bias of its selection: only estimates with a two-sided `p` below `level` were selected.

    The result is half way between the observed estimate and the conditional maximum likelihood estimate: the true value
    with which the mean of all selected estimates, if normal, would equal the observed one. The latter alone shrinks too
    much if nearly all estimates are selected (Zhong and Prentice 2008, Bias-reduced estimators and confidence intervals
    for odds ratios in genome-wide association studies).
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


def _contrasts(
    samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float], looks: Looks | None
) -> pd.DataFrame:
    """The family's contrasts of one pair, before correction."""
    metrics = hypotheses.family_metrics
    columns = [samples.metrics.index(metric) for metric in metrics]
    ratios = by_metric(block_ratios(samples, pair)[:, :, columns])
    margin = margins(samples, pair, hypotheses, rtt_ms)[:, columns]
    blocks = counts(ratios)
    ratio = mean_over_sites(ratios)
    confidence = confidences(hypotheses, looks, samples.rounds)[:, None]
    cells = {
        **pair._asdict(),
        "sites": (blocks > 0).sum(axis=-1),
        "blocks": blocks.sum(axis=-1),
        **contrast_columns(ratio, confidence, margin=margin),
        "last_p": ratio.difference_p(),
        "zero_p": replace(ratio, centre=np.zeros_like(ratio.centre)).equivalence_p(margin),
    }
    if looks:
        at_looks = first_blocks(ratios, samples.rounds, looks.blocks)
        tests = [_tests(first, margin, exchanges=looks.exchanges) for first in at_looks]
        # A look whose difference had the other sign is no evidence for the present difference.
        agrees = [np.sign(mean_over_sites(first).centre) == np.sign(ratio.centre) for first in at_looks]
        p_values = [np.where(same | np.isnan(p), p / 2, 0.5) for (p, _), same in zip(tests, agrees, strict=True)]
        # Likewise, one that showed equivalence is none for a mean that is beyond the margin now.
        equivalence_p = np.where(np.abs(ratio.centre) >= margin, 1.0, looks.p([p for _, p in tests]))
        cells |= {"p": np.minimum(1, 2 * looks.p(p_values)), "equivalence_p": equivalence_p}
    return frame(cells, network=samples.networks, metric=metrics)


def _tests(ratios: Array, margin: Array, *, exchanges: bool) -> tuple[Array, Array]:
    """The p values of no difference (two-sided) and of no equivalence at one look: networks x metrics each."""
    if not exchanges or ratios.shape[-1] >= ROBUST_BLOCKS:
        ratio = mean_over_sites(ratios)
        return ratio.difference_p(), ratio.equivalence_p(margin)
    difference_p, equivalence_p = np.empty(margin.shape), np.empty(margin.shape)
    for cell in np.ndindex(margin.shape):
        difference_p[cell] = exchange.difference_p(ratios[cell])
        equivalence_p[cell] = exchange.equivalence_p(ratios[cell], float(margin[cell]))
    return difference_p, equivalence_p


def confidences(hypotheses: Hypotheses, looks: Looks | None, rounds: Sequence[int]) -> Array:
    """The confidence of the intervals of each network, of which `rounds` blocks were measured: the declared one; or if
    the network may end early or has not ended, one with which the intervals at all looks hold at once with that."""
    result = np.full(len(rounds), hypotheses.confidence)
    for place, measured in enumerate(rounds):
        if looks and (looks.may_end or measured < looks.planned):
            look = max(0, sum(blocks <= measured for blocks in looks.blocks) - 1)
            result[place] = 1 - 2 * looks.level(look, (1 - hypotheses.confidence) / 2)
    return result


def first_blocks(ratios: Array, rounds: Sequence[int], looks: Sequence[int]) -> list[Array]:
    """`ratios` (networks x metrics x sites x blocks) at each of `looks`; NaN if a network has fewer `rounds`."""
    reached = np.array(rounds)[:, None, None, None]
    return [np.where(reached >= blocks, ratios[..., :blocks], np.nan) for blocks in looks]
