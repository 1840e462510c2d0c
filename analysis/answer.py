"""The answer for one site: how HTTP/3 in place of HTTP/2 changes its load on each network.

The verdicts are those of the declared family (`analysis.statistics.confirmatory`); nothing else is tested here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.attempts import exclusions
from analysis.losses import success_rates
from analysis.runs import CampaignTable, metrics_in, records, rows_of
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confidences, confirmatory
from analysis.statistics.contrast_table import GAIN, contrast_columns
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.planning import needed_after
from analysis.statistics.ratios import MeanRatio, block_ratios, mean_over_sites
from analysis.statistics.samples import Samples, frame, logarithms
from analysis.statistics.spending import levels, looks_of_plan
from analysis.stopping import looks_of, planned_runs
from analysis.text import label
from base.errors import EyelevelError

# The milestones of a page load, in order. A report shows those that the campaign measured.
MILESTONES = ("ttfb", "fcp", "si", "vc85", "lcp", "plt")
# Nobody waits for more runs than this to get a decision.
MOST_RUNS = 500
# A larger difference between the shares of lost runs is part of the answer.
LOST_SHARE = 0.05
# The pair that is compared, and the metric; `analysis/answer.toml` declares both.
PAIR, METRIC = Pair("tcp+", "quic"), "si"
MILESTONE_COLUMNS = ["network", "metric", "typical_reference", "typical_compared", "difference", "low", "high"]


@dataclass(frozen=True)
class NetworkAnswer:
    """The result on one network.

    `verdict`: the verdict on the compared protocol (`analysis.statistics.outcomes`). `attempts`: the number of
    attempts; `rejected`: how many of them do not count, and `excluded`: why. `lost`: the number of lost runs over the
    reference and over the compared protocol (`analysis.losses`), and `tried`: of how many. `pairs`: how many pairs of
    runs count; a pair is one run over each protocol, measured one after the other.
    NaN where unknown: `gain`: the compared protocol's time over the reference's, less 1 (negative: sooner), with its
    interval from `low` to `high`; a gain below `margin` counts as no difference. `shrunken`: on a network that ended
    early, the gain without the part that ending early adds. `reference_ms`: the typical time over the reference.
    `more_runs`: the further runs of each protocol that would probably show a difference of `margin` (inf: > MOST_RUNS).
    """

    network: str
    verdict: str
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    margin: float = math.nan
    reference_ms: float = math.nan
    pairs: int = 0
    attempts: int = 0
    rejected: int = 0
    excluded: tuple[str, ...] = ()
    more_runs: float = math.nan
    shrunken: float = math.nan
    lost: tuple[int, ...] = (0, 0)
    tried: tuple[int, ...] = (0, 0)

    @property
    def difference_ms(self) -> float:
        """The gain as a time in ms: negative is sooner."""
        return self.gain * self.reference_ms

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict."""
        return self.pairs > 0 and self.verdict != NOT_DECIDED

    @property
    def direction(self) -> str:
        """Sooner or later, if all of the interval is; otherwise empty."""
        return "" if not self.low * self.high > 0 else "sooner" if self.low < 0 else "later"

    @property
    def loses_unequally(self) -> bool:
        """Whether the share of lost runs differs by more than LOST_SHARE between the protocols."""
        reference, compared = (lost / max(1, tried) for lost, tried in zip(self.lost, self.tried, strict=True))
        return abs(compared - reference) > LOST_SHARE

    @property
    def place(self) -> str:
        """The network of this result, for a sentence."""
        return f"on {label(self.network)}"

    @property
    def heading(self) -> str:
        """The network of this result, for the beginning of a sentence."""
        return f"On {label(self.network)}"


def require_question(question: Hypotheses, campaign: str) -> None:
    """Raises EyelevelError unless one sentence on the Speed Index can answer `question`, which the campaign named
    `campaign` declared."""
    is_answered = question.family == (PAIR,) and question.family_metrics == (METRIC,)
    if not is_answered or question.equivalence_round_trips:
        raise EyelevelError(
            f"the campaign {campaign} was begun with another question than that of 'make answer' (analysis/answer.toml)"
            f", so one sentence cannot answer it; 'make report CAMPAIGN={campaign}' does, or name another with CAMPAIGN"
        )


def answers(campaign: CampaignTable, question: Hypotheses) -> list[NetworkAnswer]:
    """The result on each network of `campaign`, which has one site, for the one contrast that `question` declares.

    Raises EyelevelError for any other kind of campaign.
    """
    require_question(question, campaign.name)
    if len(campaign.settings.sites) != 1 or not PAIR.is_of(campaign.protocols):
        raise EyelevelError(f"{campaign.name} does not ask one question of one site, so one sentence cannot answer it")
    declared = question.restricted_to(campaign.protocols, (METRIC,))
    samples, looks = samples_of(campaign, [METRIC]), looks_of(campaign)
    table = confirmatory(samples, declared, campaign.rtt_ms, looks, campaign.networks)
    confidence = dict(zip(samples.networks, confidences(declared, looks, samples.rounds), strict=True))
    excluded, rates = exclusions(campaign.runs), success_rates(campaign)
    by_network = []
    for row in records(table):
        network = row["network"]
        rejected = rows_of(excluded, network=network)
        reasons = tuple(f"{one['excluded']} x {one['example']}" for one in records(rejected))
        of_pair = [rows_of(rates, network=network, protocol=name).iloc[0] for name in PAIR]
        lost, tried = (tuple(int(one[column]) for one in of_pair) for column in ("lost", "tried"))
        counts = {"attempts": len(rows_of(campaign.runs, network=network)), "rejected": int(rejected["excluded"].sum())}
        numbers = {}
        if row["blocks"]:
            size = len(declared.declared_with(network, campaign.networks))
            level = partial(level_at_end, campaign, declared.significant_p / size, row["blocks"])
            numbers = _numbers(row, samples.on([network]), confidence[network], level)
        by_network.append(
            NetworkAnswer(network, row["verdict"], excluded=reasons, lost=lost, tried=tried, **counts, **numbers)
        )
    return by_network


def _numbers(
    row: Mapping[str, Any], samples: Samples, confidence: float, level: Callable[[int], float]
) -> dict[str, Any]:
    """The numbers of the answer on one network, from the `row` of its declared contrast and from its `samples`;
    `level` as in `more_runs`."""
    ratios, pairs = block_ratios(samples, PAIR)[0, :, 0], row["blocks"]
    ratio = mean_over_sites(ratios)
    more = more_runs(row["margin"], ratio, pairs, level)
    # A verdict is always shown with the interval that it rests on, however wide the interval is.
    has_interval = (row["verdict"] != NOT_DECIDED and ratio.error > 0) or bool(ratio.has_interval(confidence))
    times_ms = samples.of(PAIR.reference)[0, :, 0][np.isfinite(ratios)]
    numbers = {"gain": row["gain"], "margin": row["margin"], "shrunken": row["gain_shrunken"], "pairs": pairs}
    numbers |= {"reference_ms": float(np.exp(np.log(times_ms).mean()))}
    return numbers | ({"low": row["gain_low"], "high": row["gain_high"], "more_runs": more} if has_interval else {})


def more_runs(change: float, ratio: MeanRatio, blocks: float, level: Callable[[int], float]) -> float:
    """How many more runs of each setting would probably show a `change` if there is one (inf: more than MOST_RUNS;
    NaN: unknown), of a contrast with this `ratio` after `blocks` blocks. `level`: that of the test at the end, from its
    number of blocks."""
    centre, error, freedom = (float(value) for value in (ratio.centre, ratio.error, ratio.freedom))
    scatter, most = error * math.sqrt(blocks), int(blocks) + MOST_RUNS
    return needed_after(math.log1p(change), centre, blocks, scatter, freedom, level, most) - int(blocks)


def level_at_end(campaign: CampaignTable, error: float, now: int, pairs: int) -> float:
    """The level of the two-sided test at the end of `campaign` if that has `pairs` pairs of runs, and has `now`."""
    planned = planned_runs(campaign)
    # Runs that do not count are no pairs, but blocks all the same.
    runs = pairs + max(int(campaign.runs["run"].max()) - now, 0)
    ends = [*planned, runs] if planned and runs > max(planned) else [runs]
    looks = looks_of_plan(ends, 1, may_end=campaign.settings.auto)
    return 2 * levels(looks.blocks, looks.planned, error / 2)[-1]


def milestones(campaign: CampaignTable, question: Hypotheses) -> pd.DataFrame:
    """The milestones of the page over each protocol of the pair, from the pairs of loads that count.

    One row for each network and each of MILESTONES that was measured. Columns are MILESTONE_COLUMNS, in ms: the typical
    time over the reference (a geometric mean), the typical time over the compared protocol, and the difference with its
    interval (NaN with too few pairs). All values come from the ratios within blocks, as the answer does, so they agree
    with the answer on its metric.
    """
    runs = campaign.valid
    names = [name for name in MILESTONES if name in metrics_in(runs) and runs[name].notna().any()]
    samples = samples_of(campaign, names)
    if not names or not PAIR.is_of(samples.protocols):
        return pd.DataFrame(columns=MILESTONE_COLUMNS)
    ratios = block_ratios(samples, PAIR)[:, 0]
    typical_ms = np.exp(mean(np.where(np.isfinite(ratios), logarithms(samples.of(PAIR.reference)[:, 0]), np.nan)))
    confidence = confidences(question, looks_of(campaign), samples.rounds)[:, None]
    columns = contrast_columns(mean_over_sites(ratios[:, :, None]), confidence, where_known=True)
    differences = {name: typical_ms * columns[one] for name, one in zip(MILESTONE_COLUMNS[-3:], GAIN, strict=True)}
    times = {"typical_reference": typical_ms, "typical_compared": typical_ms + differences["difference"]}
    table = frame({**times, **differences}, network=samples.networks, metric=names)
    return table[np.isfinite(table["difference"])].reset_index(drop=True)
