"""Combines several campaigns (machines, years) on the same contrasts: how large is the gain, and do they agree?

A campaign's error says how its gain would vary if the same machine measured again at that time. It says nothing about
another machine or another year. So campaigns are combined with random effects: each has a true gain of its own, and the
combined gain is the mean of these. Its interval is Hartung and Knapp's (2001, Statistics in Medicine 20), whose error
comes from how the campaigns' gains differ. Plain, it is too short if campaigns with unequal errors, or only a few, are
close together by chance: 95 % intervals of simulated campaigns held in 89 % of cases. So the error is at least that
which the campaigns' own errors imply (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from statsmodels.stats.meta_analysis import combine_effects

from analysis.campaign_changes import differences
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confidences
from analysis.statistics.contrast_table import GAIN, TESTS, contrast_columns, judged
from analysis.statistics.heterogeneity import SiteRatios, alike_p
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.ratios import (
    MeanRatio,
    block_ratios,
    independent_difference,
    margins,
    mean_over_sites,
    of_numbers,
)
from analysis.statistics.samples import OVER_SITES, by_metric, counts, frame
from analysis.stopping import looks_of
from analysis.text import listing
from base.errors import EyelevelError

GAINS = [*OVER_SITES, "campaign", "sites", "blocks", *GAIN, "margin"]
CONTRASTS = [*OVER_SITES, "campaigns", *GAIN, "p", "p_corrected", "equivalence_p_corrected", "margin", "verdict"]
CONTRASTS += ["tau", "i_squared", "q", "q_p_corrected", "same_p_corrected", "agreement"]
# AGREE: any two campaigns are shown to differ by less than the margin. NOT_DECIDED: neither is shown.
AGREE, DISAGREE = "agree", "do not agree"
# An error (of a log ratio) that is smaller counts as this one: if times are whole frames, all ratios may be equal.
LEAST_ERROR = 1e-4


@dataclass(frozen=True)
class Combination:
    """Several campaigns on the same contrasts.

    `gains`: a row for each contrast and campaign (GAINS). `contrasts`: a row for each contrast that two campaigns have
    measured (CONTRASTS). `differences`: what differs between the first campaign's document and each other's (columns
    campaign, what, a, b). `notes`: which parts were left out or are not alike, in words.
    """

    campaigns: Mapping[str, CampaignTable]
    hypotheses: Hypotheses
    gains: pd.DataFrame
    contrasts: pd.DataFrame
    differences: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Effects:
    """The gains of one contrast's campaigns together.

    `mean`: of the campaigns' true log ratios. `tau`: the standard deviation of these, by Paule and Mandel's method.
    `i_squared`: the share of the variance of the campaigns' gains that their own errors do not explain. `q`: Cochran's
    statistic, and `q_p` the p value of equal true gains (`analysis.statistics.heterogeneity.alike_p`). `same_p`: the p
    value of two true gains that differ by the margin or more.
    """

    mean: MeanRatio
    tau: float
    i_squared: float
    q: float
    q_p: float
    same_p: float


def combined(campaigns: MeanRatio, margin: float) -> Effects:
    """The effects of at least two `campaigns`: arrays with a log ratio, error and degrees of freedom for each.

    `margin`: the log ratio below which two true gains count as alike.
    """
    number, errors = len(campaigns.centre), np.maximum(campaigns.error, LEAST_ERROR)
    with np.errstate(divide="ignore"):  # equal gains have a Q of 0
        effects = combine_effects(campaigns.centre, errors**2, method_re="iterated", use_t=True)
    error = max(effects.sd_eff_w_re, effects.sd_eff_w_re_hksj)
    q_p = alike_p(SiteRatios(campaigns.centre, errors**2, campaigns.freedom))
    first, second = (
        MeanRatio(*(values[places] for values in vars(campaigns).values())) for places in np.triu_indices(number, 1)
    )
    same_p = independent_difference(first, second).equivalence_p(margin).max()
    mean = of_numbers(effects.mean_effect_re, error, number)
    numbers = (np.sqrt(effects.tau2), max(0.0, effects.i2), effects.q, q_p, same_p)
    return Effects(mean, *map(float, numbers))


def combine(campaigns: Mapping[str, CampaignTable], hypotheses: Hypotheses) -> Combination:
    """Combine `campaigns`, by name, on the family of `hypotheses`, which are those on the first campaign.

    Raises EyelevelError if no two campaigns have measured the same contrast.
    """
    names = list(campaigns)
    first = campaigns[names[0]]
    tables = [table for name, one in campaigns.items() if len(table := _gains(name, one, hypotheses))]
    gains = pd.concat(tables or [pd.DataFrame(columns=[*GAINS, "error"])], ignore_index=True)
    unlike = {name: note for name in gains["network"].unique() if (note := _unlike("network", name, campaigns))}
    gains = gains[~gains["network"].isin(list(unlike)) & np.isfinite(gains["error"].astype(float))]
    gains = gains[gains.groupby(OVER_SITES)["campaign"].transform("size") > 1]
    if gains.empty:
        raise EyelevelError(
            f"{', '.join(names)} cannot be combined: no two have a contrast in common, which takes the same network, "
            f"and two blocks of a site with both protocols of a pair that {names[0]} declared"
            + "".join(f"; {note}" for note in unlike.values())
        )
    table = pd.DataFrame([_contrast(rows, hypotheses.confidence) for _, rows in gains.groupby(OVER_SITES, sort=False)])
    tests, size = [*TESTS, "q_p", "same_p"], len(table)
    table = judged(table, lambda p: np.minimum(1, p * size), hypotheses.significant_p, tests=tests)
    is_alike, is_unlike = (table[f"{name}_corrected"] < hypotheses.significant_p for name in ("same_p", "q_p"))
    table["agreement"] = np.select([is_alike, is_unlike], [AGREE, DISAGREE], NOT_DECIDED)
    compared = [differences(first, campaigns[name]).assign(campaign=name) for name in names[1:]]
    protocols = dict.fromkeys([*gains["reference"], *gains["compared"]])
    notes = (
        *(f"{note}: this network is left out" for note in unlike.values()),
        *filter(None, (_unlike("protocol", name, campaigns) for name in protocols)),
        *(f"{name} shares no contrast with another campaign" for name in names if name not in set(gains["campaign"])),
    )
    columns = ["campaign", "what", "a", "b"]
    return Combination(campaigns, hypotheses, gains[GAINS], table[CONTRASTS], pd.concat(compared)[columns], notes)


def _gains(name: str, campaign: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    """The gain of each contrast in one campaign: the columns of GAINS, and those of its MeanRatio."""
    metrics = [metric for metric in hypotheses.family_metrics if metric in campaign.metrics]
    samples = samples_of(campaign, metrics)
    confidence = confidences(hypotheses, looks_of(campaign), samples.rounds)[:, None]
    tables = [pd.DataFrame(columns=[*GAINS, "error"])]
    for pair in samples.measured(hypotheses.family) if metrics else ():
        ratios = by_metric(block_ratios(samples, pair))
        mean, blocks = mean_over_sites(ratios), counts(ratios)
        margin = margins(samples, pair, hypotheses, campaign.rtt_ms)
        cells = {**pair._asdict(), "campaign": name, **contrast_columns(mean, confidence, margin=margin), **vars(mean)}
        cells |= {"sites": (blocks > 0).sum(axis=-1), "blocks": blocks.sum(axis=-1)}
        tables.append(frame(cells, network=samples.networks, metric=metrics))
    return pd.concat(tables[1:] or tables)


def _contrast(gains: pd.DataFrame, confidence: float) -> dict[str, object]:
    """The row of one contrast, before Bonferroni's correction; `gains` are its campaigns'."""
    margin = float(np.log1p(gains["margin"]).mean())
    effects = vars(combined(MeanRatio(*(gains[one.name].to_numpy() for one in fields(MeanRatio))), margin))
    columns = contrast_columns(effects["mean"], confidence, margin=margin)
    numbers = {name: float(value) for name, value in (columns | effects).items() if name != "mean"}
    return {**gains.iloc[0][OVER_SITES], "campaigns": len(gains), **numbers}


def _unlike(kind: str, name: str, campaigns: Mapping[str, CampaignTable]) -> str:
    """Which campaigns have other settings of the network or protocol `name` than the first that has it, as a sentence
    without its full stop; empty if none has. A key that is missing counts as one without a value."""
    of_campaigns = {
        campaign: table.network_settings if kind == "network" else table.settings.protocols
        for campaign, table in campaigns.items()
    }
    known = {campaign: settings[name] for campaign, settings in of_campaigns.items() if name in settings}
    first = next(iter(known), "")
    texts = []
    for campaign, settings in known.items():
        keys = sorted({*known[first], *settings})
        if others := [key for key in keys if (known[first].get(key) or None) != (settings.get(key) or None)]:
            texts.append(f"{campaign} ({', '.join(others)})")
    return f"settings of the {kind} {name} differ between {first} and {listing(texts)}" if texts else ""
