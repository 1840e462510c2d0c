"""The contribution of each rung of the ladder to the difference between its ends.

A contribution is the difference between a rung and the one below it, within blocks (`analysis.statistics.ratios`), as
the location of log ratios, and as the location of differences in ms. A network's contribution is the mean over its
sites, each of which counts once. One correction (Bonferroni's) is over all rungs, parts and changes on all networks in
METRICS: a contribution is shown if its corrected p value is below the declared threshold, and all their intervals hold
at once with the declared confidence. The interval of the direct comparison of both ends holds by itself.
Contributions in percent of stock TCP are steps from rung to rung: the share of stock TCP's time that remains at the
rung below, times this rung's gain. So their sum is the product of the rungs' ratios, less 1. It is not the direct
comparison if rungs come from different blocks because runs are missing, or if a few blocks are unusual: with many
blocks, locations are robust, and robust locations need not add up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.contrast_table import GAIN, contrast_columns
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, blocks_for_interval, locations, mean_over_sites
from analysis.statistics.samples import Array, Samples, frame
from studies.ladder.rungs import ABOVE, ARQ, BELOW, HIGHEST, RUNGS, SLOW, UNKNOWN, base_network, suffix_of

# The metrics in which contributions are judged, and which the section shows; the files of the tables have all metrics.
# FCP is not among them: with it, one site on two networks would need six blocks for an interval, and a ladder has five.
METRICS = ("si", "plt", "lcp")
# The kinds of rows of the tables: a rung; both ends compared directly; a part of the transport's own contribution; the
# change by a condition outside the ladder.
RUNG, WHOLE, PART, CHANGE = "rung", "whole", "part", "change"
# The names of the rows that are not rungs.
DIRECT = "all, measured directly"
HIDDEN_LOSSES, VISIBLE_LOSSES = "of it: losses hidden", "of it: visible losses"
SLOW_BROWSER, SLOW_PAGE = "slower browser: change", "slower browser: TCP"
UNKNOWN_SERVERS = "QUIC, servers unknown"

KEY = ["kind", "name", "below", "above"]
MS = ("ms", "ms_low", "ms_high")
NUMBERS = [*GAIN, "points", "points_low", "points_high", *MS, "start"]
COLUMNS = ["network", "metric", *KEY, "sites", "blocks", "blocks_needed", *NUMBERS, "p", "p_corrected", "is_shown"]
SITE_COLUMNS = ["network", "site", "metric", *KEY, "blocks", "gain", "points", "ms", "start"]


@dataclass(frozen=True, eq=False)
class Effect:
    """A comparison within blocks: log ratios and differences in ms on one network, each sites x metrics x blocks.

    `kind`, `name`: see above; `below`, `above`: the protocols; `before`: the effects that lead from stock TCP to the
    start of this one.
    """

    kind: str
    name: str
    below: str
    above: str
    ratios: Array
    differences_ms: Array
    before: tuple["Effect", ...] = ()

    def start(self, centres: Mapping["Effect", Array]) -> Array:
        """The share of stock TCP's time at which the effect begins; `centres` has the centres of log ratios."""
        return np.exp(sum((centres[effect] for effect in self.before), np.zeros_like(centres[self])))


def by_condition(campaign: CampaignTable) -> CampaignTable:
    """`campaign` with each condition as a protocol on the condition's base network: `tcp+lowat +slow`."""
    runs = campaign.runs
    suffixes = runs["network"].map(suffix_of)
    named = runs["protocol"].where(suffixes == "", runs["protocol"] + " " + suffixes)
    return replace(campaign, runs=runs.assign(network=runs["network"].map(base_network), protocol=named))


def contributions(campaign: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    """The contributions on each network, over its sites; `hypotheses` has the threshold and the confidence.

    One row for each network, metric and effect. Columns: network, metric; kind (RUNG, WHOLE, PART, CHANGE), name, below
    and above (the protocols); sites and blocks that have both; blocks_needed (of each site, for intervals); gain (of
    the log ratios: above against below), points (the same as a share of stock TCP's time) and ms (of the differences),
    with their intervals, which are NaN with too few blocks; start (the share of stock TCP's time at which the step
    begins); p (of no difference); p_corrected (NaN for WHOLE, and for metrics that are not judged); is_shown
    (p_corrected is below the threshold, and there are enough blocks for an interval).
    """
    samples = samples_of(by_condition(campaign))
    effects = {network: effects_of(samples, network) for network in samples.networks}
    judged = [metric in METRICS for metric in samples.metrics]
    tests = sum(
        int(np.isfinite(effect.ratios[:, judged]).any(axis=(0, 2)).sum())
        for of_network in effects.values()
        for effect in of_network
        if effect.kind != WHOLE
    )
    tables = [
        _over_sites(samples, network, of_network, hypotheses, max(1, tests))
        for network, of_network in effects.items()
        if of_network
    ]
    return pd.concat(tables, ignore_index=True)[COLUMNS] if tables else pd.DataFrame(columns=COLUMNS)


def _over_sites(
    samples: Samples, network: str, effects: Sequence[Effect], hypotheses: Hypotheses, tests: int
) -> pd.DataFrame:
    """The table of `contributions` for one network; `tests`: how many contributions the correction is over."""
    is_whole = np.array([effect.kind == WHOLE for effect in effects])[:, None]
    together = 1 - (1 - hypotheses.confidence) / tests
    level = np.where(is_whole, hypotheses.confidence, together)
    needed = np.where(is_whole, blocks_for_interval(hypotheses.confidence), blocks_for_interval(together))
    ratios = np.stack([_by_metric(effect.ratios) for effect in effects])
    ratio = mean_over_sites(ratios)
    difference = mean_over_sites(np.stack([_by_metric(effect.differences_ms) for effect in effects]))
    centre_of = dict(zip(effects, ratio.centre, strict=True))
    start, blocks = _starts(effects, centre_of), np.isfinite(ratios).sum(axis=-1)
    gains = contrast_columns(ratio, level, where_known=True)
    is_judged = np.isin(samples.metrics, METRICS) & ~is_whole
    p_corrected = np.where(is_judged, np.minimum(1, tests * gains["p"]), np.nan)
    columns = {
        "sites": (blocks > 0).sum(axis=-1),
        "blocks": blocks.sum(axis=-1),
        "blocks_needed": np.broadcast_to(needed, p_corrected.shape),
        **gains,
        **{name.replace("gain", "points"): start * gains[name] for name in GAIN},
        **contrast_columns(difference, level, MS, as_share=False, where_known=True),
        "start": start,
        "p": gains["p"],
        "p_corrected": p_corrected,
        "is_shown": (p_corrected < hypotheses.significant_p) & np.isfinite(gains["gain_low"]),
    }
    table = _frame(effects, columns, metric=samples.metrics)
    return table[table["sites"] > 0].assign(network=network)


def site_contributions(campaign: CampaignTable) -> pd.DataFrame:
    """The contributions for each site, without intervals, since a site's few blocks say little. Columns:
    SITE_COLUMNS."""
    samples = samples_of(by_condition(campaign))
    tables = []
    for network in samples.networks:
        effects = effects_of(samples, network)
        if not effects:
            continue
        ratios = np.stack([effect.ratios for effect in effects])
        logs = locations(ratios)[0]
        gains, starts = np.expm1(logs), _starts(effects, dict(zip(effects, logs, strict=True)))
        columns = {
            "blocks": np.isfinite(ratios).sum(axis=-1),
            "gain": gains,
            "points": starts * gains,
            "ms": locations(np.stack([effect.differences_ms for effect in effects]))[0],
            "start": starts,
        }
        table = _frame(effects, columns, site=samples.sites, metric=samples.metrics)
        tables.append(table[table["blocks"] > 0].assign(network=network))
    return pd.concat(tables, ignore_index=True)[SITE_COLUMNS] if tables else pd.DataFrame(columns=SITE_COLUMNS)


def effects_of(samples: Samples, network: str) -> list[Effect]:
    """Everything that is compared on `network`, with the rungs for which it has runs; empty with fewer than two
    rungs."""
    here = samples.networks.index(network)
    present = {name for name in samples.protocols if np.isfinite(samples.of(name)[here]).any()}
    order = [rung.protocol for rung in RUNGS if rung.protocol in present]
    if len(order) < 2:
        return []

    def effect(kind: str, name: str, below: str, above: str, before: Sequence[Effect] = ()) -> Effect:
        differences_ms = samples.of(above)[here] - samples.of(below)[here]
        return Effect(
            kind, name, below, above, block_ratios(samples, Pair(below, above))[here], differences_ms, tuple(before)
        )

    rungs: list[Effect] = []
    for below, above in pairwise(order):
        rungs.append(effect(RUNG, change_between(below, above), below, above, rungs))
    effects = [*rungs, effect(WHOLE, DIRECT, order[0], order[-1])]
    if order[-1] == HIGHEST and UNKNOWN in present:
        effects.append(effect(CHANGE, UNKNOWN_SERVERS, HIGHEST, UNKNOWN, rungs))
    transport = next((rung for rung in rungs if (rung.below, rung.above) == (BELOW, ABOVE)), None)
    if transport is None:
        return effects
    if present.issuperset(pair := (under(BELOW, ARQ), under(ABOVE, ARQ))):
        hidden = effect(PART, HIDDEN_LOSSES, *pair, transport.before)
        visible = _difference(PART, VISIBLE_LOSSES, transport, hidden, (*transport.before, hidden))
        place = rungs.index(transport) + 1
        effects[place:place] = [hidden, visible]
    if present.issuperset(pair := (under(BELOW, SLOW), under(ABOVE, SLOW))):
        slowed = effect(CHANGE, SLOW_BROWSER, *pair)
        effects.append(_difference(CHANGE, SLOW_BROWSER, slowed, transport, transport.before))
        effects.append(effect(CHANGE, SLOW_PAGE, BELOW, pair[0], transport.before))
    return effects


def under(protocol: str, suffix: str) -> str:
    """The name that `by_condition` gives to `protocol` under a condition."""
    return f"{protocol} {suffix}"


def change_between(below: str, above: str) -> str:
    """The changes from `below` to `above`; several if rungs between them are missing."""
    order = [rung.protocol for rung in RUNGS]
    return " + ".join(rung.change for rung in RUNGS[order.index(below) + 1 : order.index(above) + 1])


def _difference(kind: str, name: str, one: Effect, other: Effect, before: tuple[Effect, ...]) -> Effect:
    """The effect of `one` less that of `other`, in the blocks that have both."""
    ratios, differences_ms = one.ratios - other.ratios, one.differences_ms - other.differences_ms
    return Effect(kind, name, one.below, one.above, ratios, differences_ms, before)


def _starts(effects: Sequence[Effect], centres: Mapping[Effect, Array]) -> Array:
    """The share of stock TCP's time at which each of `effects` begins (`Effect.start`)."""
    return np.stack([effect.start(centres) for effect in effects])


def _frame(effects: Sequence[Effect], columns: Mapping[str, Array], **axes: Sequence[str]) -> pd.DataFrame:
    """A table with the columns KEY, from arrays whose axes are `effects` and `axes`."""
    cells = columns["start"][0].size
    keys = {key: np.repeat([getattr(effect, key) for effect in effects], cells) for key in ("kind", "below", "above")}
    return frame({**keys, **columns}, name=[effect.name for effect in effects], **axes)


def _by_metric(values: Array) -> Array:
    """`values` (sites x metrics x blocks) as metrics x sites x blocks."""
    return np.moveaxis(values, 0, 1)
