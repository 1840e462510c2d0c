"""Changes at each share of the processor, and extrapolated to loads that do not wait for it.

On each page, the log ratio of two protocols is a line in the share of waiting, the mean of both loads' shares. Shares
of waiting are measured with errors, and a moment in which the machine is busy changes times and waits alike. Both would
bias a regression of ratios on waits. So the slope comes from the order that was drawn: how ratios change from share to
share of the processor, over how waits change (an instrumental variable; Wald, "The fitting of straight lines if both
variables are subject to error", 1940). The error is that of the delta method, from the scatter of blocks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.processor import wait_shares
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.contrast_table import GAIN, contrast_columns
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import blocks_for_interval, locations, mean_over_sites
from analysis.statistics.samples import Array, Samples, by_metric, counts, logarithms
from studies.dose.shares import SHARES, base_network, share_of

METRICS = ("si", "plt", "fcp", "lcp")
WAIT_SHARE = "wait_share"
# Ratios that are not on a line at this p value are not extrapolated.
BENT_P = 0.01
# A slope is the change for so much more waiting.
SLOPE_STEP = 0.1
SLOPE = ("slope", "slope_low", "slope_high")
# Chosen after the reference campaign, where the changes on DSL are those of two groups of pages: 6 to 18 requests, and
# 43 to 169.
MANY_REQUESTS = 30
ALL_PAGES, FEW, MANY = "all", f"fewer than {MANY_REQUESTS} requests", f"{MANY_REQUESTS} requests or more"
KEY = ("reference", "compared", "network", "pages", "metric")
COLUMNS = [*KEY, "share", "waiting", "sites", "blocks", *GAIN, *SLOPE]
COLUMNS += ["p", "p_corrected", "is_shown", "changes_sign", "refusal"]


class Line(NamedTuple):
    """Values of each block (… x sites x blocks) whose locations are, on each page: the log ratio without waiting; the
    slope, in log ratio for a share of waiting of 1; and by how much the ratio of the middle share is off the line."""

    unwaited: Array
    slope: Array
    bend: Array


def line(ratios: Array, waits: Array) -> Line:
    """The line of log `ratios` over shares of waiting (… x sites x blocks x SHARES). Blocks that lack a value do not
    count."""
    is_whole = np.isfinite(ratios + waits).all(axis=-1, keepdims=True)
    ratios, waits = (np.where(is_whole, values, np.nan) for values in (ratios, waits))
    assigned = np.mean(SHARES) - np.array(SHARES)
    ratio, wait = ratios.mean(axis=-1), waits.mean(axis=-1)
    ratio_change, wait_change = ratios @ assigned, waits @ assigned
    middle = len(SHARES) // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = _of_site(ratio_change) / _of_site(wait_change)
        off = ratio_change - slope * wait_change
        slopes = slope + off / _of_site(wait_change)
        unwaited = ratio - slope * wait - _of_site(wait) * (slopes - slope)
        bend = ratios[..., middle] - slope * waits[..., middle] - unwaited
        bend = bend - _of_site(waits[..., middle]) * (slopes - slope)
    return Line(unwaited, slopes, bend)


def _of_site(values: Array) -> Array:
    return locations(values)[0][..., None]


def changes(campaign: CampaignTable, pairs: Iterable[Pair], hypotheses: Hypotheses) -> pd.DataFrame:
    """A row for each of `pairs`, network, group of pages, metric of METRICS and share of the processor that has a
    block, and one for loads that do not wait.

    Columns: KEY (`network` is the network itself, `pages` the group); share (NaN without waiting); waiting (the mean
    share of waiting: 0 without); sites and blocks; gain (of log ratios within blocks, the mean over pages) with its
    interval, NaN with too few blocks; slope (the change for SLOPE_STEP more waiting; only without waiting) with its
    interval; p (of no difference); p_corrected (Bonferroni, over all rows); is_shown (p_corrected is below the declared
    threshold); changes_sign (of all rows of one KEY: both a faster and a slower one are shown); refusal (why there is
    no extrapolation; empty where there is one).
    """
    runs = campaign.runs
    by_share = replace(
        campaign,
        runs=runs.assign(
            network=runs["network"].map(base_network),
            protocol=[_under(*of) for of in zip(runs["protocol"], runs["network"].map(share_of), strict=True)],
            **{WAIT_SHARE: wait_shares(runs)},
        ),
    )
    names = [name for name in METRICS if name in runs and runs[name].notna().any()]
    rows: list[Mapping[str, object]] = []
    if names and len(campaign.valid):
        samples = samples_of(by_share, [*names, WAIT_SHARE])
        groups = page_groups(samples.sites, campaign.site_facts)
        for pair in pairs:
            ratios, waits = _cubes(samples, pair)
            for place, network in enumerate(samples.networks):
                for pages, sites in groups.items():
                    for metric, of_metric in zip(names, ratios[place], strict=True):
                        key = dict(zip(KEY, (*pair, network, pages, metric), strict=True))
                        within = of_metric[sites], waits[place][sites], [samples.sites[site] for site in sites]
                        rows += [{**key, **row} for row in _of_shares(*within, hypotheses.confidence)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    p_corrected = np.minimum(1, table["p"].astype(float) * table["p"].notna().sum())
    is_shown = (p_corrected < hypotheses.significant_p) & table["gain_low"].notna()
    table = table.assign(p_corrected=p_corrected, is_shown=is_shown)
    signs = np.sign(table["gain"].astype(float)).where(is_shown).groupby([table[name] for name in KEY])
    return table.assign(changes_sign=signs.transform("min") < signs.transform("max"))


def page_groups(sites: Sequence[str], facts: Mapping[str, Mapping[str, float]]) -> dict[str, list[int]]:
    """Group → the places of its pages in `sites`: all, and, where there are both, those of few and of many requests.
    `facts` are those of `CampaignTable.site_facts`."""
    requests = np.array([facts.get(site, {}).get("requests", np.nan) for site in sites], dtype=float)
    few, many = (np.flatnonzero(is_of).tolist() for is_of in (requests < MANY_REQUESTS, requests >= MANY_REQUESTS))
    return {ALL_PAGES: list(range(len(sites))), **({FEW: few, MANY: many} if few and many else {})}


def _under(protocol: str, share: float) -> str:
    return f"{protocol} {share:g}"


def _cubes(samples: Samples, pair: Pair) -> tuple[Array, Array]:
    """The log ratios of `pair` (networks x metrics x sites x blocks x SHARES), and the means of both shares of waiting
    (networks x sites x blocks x SHARES)."""
    ratios, waits = [], []
    for share in SHARES:
        both = [_of(samples, _under(protocol, share)) for protocol in pair]
        reference, compared = (logarithms(by_metric(values[:, :, :-1])) for values in both)
        ratios.append(compared - reference)
        waits.append((both[0][:, :, -1] + both[1][:, :, -1]) / 2)
    return np.stack(ratios, axis=-1), np.stack(waits, axis=-1)


def _of(samples: Samples, name: str) -> Array:
    """The values over the protocol `name`: networks x sites x metrics x blocks, NaN if it has no run."""
    return samples.of(name) if name in samples.protocols else np.full_like(samples.values[:, :, 0], np.nan)


def _of_shares(ratios: Array, waits: Array, sites: Collection[str], confidence: float) -> list[dict[str, object]]:
    """The rows of `changes` for `sites`, from their log `ratios` and `waits` (sites x blocks x SHARES)."""
    rows: list[dict[str, object]] = []
    for place, share in enumerate(SHARES):
        of_share = ratios[..., place]
        if counts(of_share).any():
            waiting = np.where(np.isfinite(of_share), waits[..., place], np.nan)
            columns = _floats(contrast_columns(mean_over_sites(of_share), confidence, where_known=True))
            mean_wait = float(_mean(_mean(waiting)))
            rows.append({"share": share, "waiting": mean_wait, **_size(of_share), **columns, "refusal": ""})
    if not rows:
        return []
    of_line = line(ratios, waits)
    unwaited, slope = mean_over_sites(of_line.unwaited), mean_over_sites(SLOPE_STEP * of_line.slope)
    columns = _floats(contrast_columns(unwaited, confidence, where_known=True))
    slopes = _floats(contrast_columns(slope, confidence, SLOPE, where_known=True))
    del slopes["p"]
    refusal = _refusal(np.where(np.isfinite(ratios), waits, np.nan), list(sites))
    if not refusal and not np.isfinite(columns["gain_low"]):
        needed = blocks_for_interval(confidence)
        refusal = (
            f"too few blocks for an interval: each page needs {needed} with every share, so at least RUNS={needed}"
        )
    if not refusal and (p := float(mean_over_sites(of_line.bend).difference_p())) < BENT_P:
        refusal = f"the changes at the shares of the processor are not on a line (p = {p:.2g})"
    if refusal:
        columns, slopes = dict.fromkeys(columns, np.nan), dict.fromkeys(slopes, np.nan)
    size = _size(of_line.unwaited)
    rows.append({"share": np.nan, "waiting": 0.0, **size, **slopes, **columns, "refusal": refusal})
    return rows


def _floats(columns: Mapping[str, Array]) -> dict[str, float]:
    return {name: float(value) for name, value in columns.items()}


def _size(values: Array) -> dict[str, object]:
    blocks = counts(values)
    return {"sites": int((blocks > 0).sum()), "blocks": int(blocks.sum())}


def _mean(values: Array) -> Array:
    """The mean along the last axis of the values that are known; NaN without."""
    number = counts(values)
    return np.asarray(np.nansum(values, axis=-1) / np.where(number > 0, number, np.nan))


def _refusal(waits: Array, sites: Sequence[str]) -> str:
    """Why an extrapolation from `waits` (sites x blocks x SHARES; NaN where the ratio is unknown) spans too much; empty
    if it does not: on no page more than the waits changed from the whole processor to the least share of it."""
    whole = np.where(np.isfinite(waits).all(axis=-1, keepdims=True), waits, np.nan)
    of_site = _mean(np.moveaxis(whole, 1, -1))
    known = np.flatnonzero(np.isfinite(of_site).all(axis=-1))
    if not len(known):
        return "no block has a known wait at every share of the processor"
    least, change = of_site[known].min(axis=-1), of_site[known, -1] - of_site[known, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        span = np.where(change > 0, least / np.maximum(change, 0), np.inf)
    worst = int(span.argmax())
    if span[worst] <= 1:
        return ""
    return (
        f"on {sites[known[worst]]} the least share of waiting is {100 * least[worst]:.0f} %, and it changes by "
        f"{100 * change[worst]:.1f} points with the processor; the extrapolation would span more than that"
    )
