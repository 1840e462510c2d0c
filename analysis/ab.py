"""Compares setting B with setting A of one campaign, whose blocks have one run of each.

A setting is a protocol, in a browser, of some sites. The two differ in one of these, and blocks pair their runs in any
case: so what blocks pair is analysed as if A and B were the campaign's two protocols, by the test of the declared
family (`analysis.statistics.confirmatory`). Slow and lost loads are counted as in `analysis.campaign_changes`.
Changes are shares: 0.1 is 10 % more time in B than in A; negative means that B is faster.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.attempts import exclusions
from analysis.campaign_changes import LOST, SLOW, aligned, judged_loads, lost_loads, share_changes, slow_loads
from analysis.runs import BROWSER, CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.contrast_table import CHANGE, GAIN
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER
from analysis.statistics.planning import detectable_difference
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import Samples, by_metric, frame
from analysis.statistics.spending import Looks
from analysis.stopping import looks_of
from base.errors import EyelevelError
from record.names import original_of

A, B = PAIR = Pair("A", "B")
CONTRASTS = ["network", "metric", "sites", "blocks", *CHANGE, "p", "p_corrected", "equivalence_p_corrected", "margin"]
CONTRASTS += ["verdict", "worse", "within", "detectable"]
SHARES = ["kind", "network", "sites", "loads_a", "loads_b", "found_a", "found_b", *CHANGE, "worse_p"]
SHARES += ["worse_p_corrected", "worse"]
EXCLUDED = ["network", "setting", "kind", "gate", "excluded", "runs", "example"]


@dataclass(frozen=True)
class Side:
    """A setting of the campaign: the names of its protocol, browser and sites. `text`: what the user wrote."""

    text: str
    protocol: str
    browser: str
    sites: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SettingsChange:
    """The comparison of setting B with setting A of `campaign`.

    `both`: the campaign's runs with A and B in place of their protocols. `worse_than`: how much slower B may be, as a
    share; without it, B is worse where its verdict is slower. `contrasts`, `shares`, `excluded`: tables with the
    columns of this module; within means that B is shown to be slower by less than `worse_than` (None without it), and
    detectable is the slowdown (a share) that so many blocks with this scatter would show to be worse with the
    probability `analysis.statistics.planning.POWER`.
    """

    campaign: CampaignTable
    both: CampaignTable
    a: Side
    b: Side
    hypotheses: Hypotheses
    worse_than: float | None
    contrasts: pd.DataFrame
    shares: pd.DataFrame
    excluded: pd.DataFrame

    @property
    def is_worse(self) -> bool:
        """Whether B is shown to be worse than A in any row of the tables."""
        return bool(self.contrasts["worse"].any() or self.shares["worse"].any())

    @property
    def answerable(self) -> pd.DataFrame:
        """The rows of `contrasts` without those of a metric that no block has on a network where blocks have others,
        such as one that a browser lacks."""
        is_measured = self.contrasts["blocks"] > 0
        return self.contrasts[is_measured | ~is_measured.groupby(self.contrasts["network"]).transform("any")]

    @property
    def is_decided(self) -> bool:
        """Whether each contrast is decided: by its verdict, or with a threshold by being worse or within it."""
        table = self.answerable
        is_shown = table["verdict"].isin([FASTER, EQUIVALENT]) | table["worse"]
        if self.worse_than is not None:
            is_shown |= table["within"]
        return bool(is_shown.all())

    @property
    def false_alarm_share(self) -> float:
        """The largest share of comparisons of equal settings in which B counts as worse. Typical loads, and slow and
        lost loads together, are a family each at the declared level."""
        return 2 * self.hypotheses.significant_p


def compare(
    campaign: CampaignTable, a: Side, b: Side, hypotheses: Hypotheses, worse_than: float | None = None
) -> SettingsChange:
    """Compare `b` with `a`, using the thresholds and the family's metrics of `hypotheses`.

    B is worse if its loads are shown to be slower, and not shown to be equivalent; with `worse_than`, if they are shown
    to be slower by more than that. It is worse, too, if a larger share of its loads is shown to be slow or lost. Raises
    EyelevelError if nothing can be compared.
    """
    both = as_protocols(campaign, a, b)
    declared = hypotheses.restricted_to(PAIR, both.metrics)
    samples = samples_of(both)
    looks = looks_of(both)
    tests = confirmatory(samples, declared, both.rtt_ms, looks, both.networks)
    contrasts = tests.rename(columns=dict(zip(GAIN, CHANGE, strict=True)))
    if worse_than is None:
        contrasts = contrasts.assign(worse=contrasts["verdict"] == SLOWER, within=None)
    else:
        # B is slower by more than the threshold if it would still be slower with all its times divided by it.
        shifted = confirmatory(_faster(samples, 1 + worse_than), declared, both.rtt_ms, looks, both.networks)
        is_shown = shifted["p_corrected"] < declared.significant_p
        contrasts = contrasts.assign(worse=is_shown & (shifted["gain"] > 0), within=is_shown & (shifted["gain"] < 0))
    detectable = _detectable(samples, declared, looks, both.networks, worse_than or 0.0)
    contrasts = contrasts.merge(detectable, how="left", on=["network", "metric"])[CONTRASTS]
    shares = _shares(both, samples, declared, worse_than or 0.0)
    if not contrasts["blocks"].any() and not shares["worse"].any():
        raise EyelevelError(
            f"there is nothing to compare: no block of {campaign.name} has a run of A and one of B that count; "
            f"'make status CAMPAIGN={campaign.name}' says why attempts do not count"
        )
    excluded = exclusions(both.runs).rename(columns={"protocol": "setting"})[EXCLUDED]
    return SettingsChange(campaign, both, a, b, declared, worse_than, contrasts, shares, excluded)


def as_protocols(campaign: CampaignTable, a: Side, b: Side) -> CampaignTable:
    """The runs of `campaign` in both settings, as a campaign over the protocols A and B, in one browser, of the
    originals of its sites."""
    settings, parts = campaign.settings, []
    # A site and its variant become one; if A and B have the same sites, variants are sites of their own.
    name_of = str if a.sites == b.sites else original_of
    networks = {name: client.network for name, client in campaign.clients.items()}
    for name, side in zip(PAIR, (a, b), strict=True):
        of_side = (campaign.runs["protocol"] == side.protocol) & (campaign.runs[BROWSER] == side.browser)
        runs = campaign.runs[of_side & campaign.runs["site"].isin(side.sites)]
        places = {"site": runs["site"].map(name_of), "network": runs["network"].map(networks)}
        parts.append(runs.assign(protocol=name, **places))
    settings = replace(
        settings,
        further_browsers={},
        protocols={A: settings.protocols.get(a.protocol, {}), B: settings.protocols.get(b.protocol, {})},
        sites={name_of(site): settings.sites.get(site, {}) for site in a.sites},
    )
    document = replace(campaign.document, settings=settings)
    return replace(campaign, runs=pd.concat(parts).sort_index(), document=document)


def _faster(samples: Samples, factor: float) -> Samples:
    """`samples` with the times of B divided by `factor`."""
    values = samples.values.copy()
    if B in samples.protocols:
        values[:, :, samples.protocols.index(B)] /= factor
    return replace(samples, values=values)


def _detectable(
    samples: Samples, declared: Hypotheses, looks: Looks | None, networks: Sequence[str], worse_than: float
) -> pd.DataFrame:
    """The columns network, metric and detectable (`SettingsChange`) of each contrast of the family that has runs."""
    columns = ["network", "metric", "detectable"]
    if not samples.measured([PAIR]):
        return pd.DataFrame(columns=columns)
    ratio = mean_over_sites(by_metric(block_ratios(samples, PAIR)))
    result = np.full(ratio.centre.shape, np.nan)
    for n, (network, rounds) in enumerate(zip(samples.networks, samples.rounds, strict=True)):
        level = declared.significant_p / declared.family_size(len(declared.declared_with(network, networks)))
        if looks:
            look = max(0, sum(blocks <= rounds for blocks in looks.blocks) - 1)
            level = 2 * looks.level(look, level / 2)
        for m in range(len(samples.metrics)):
            difference = detectable_difference(float(ratio.error[n, m]), float(ratio.freedom[n, m]), level)
            # With two blocks and many contrasts, no slowdown is large enough.
            with np.errstate(over="ignore"):
                result[n, m] = (1 + worse_than) * np.exp(difference) - 1
    return frame({"detectable": result}, network=samples.networks, metric=samples.metrics)[columns]


def _shares(both: CampaignTable, samples: Samples, declared: Hypotheses, worse_than: float) -> pd.DataFrame:
    """The table of slow and lost loads. Runs of a block are alike, so the exact tests of independent loads err less
    often than they say."""
    tried = judged_loads(both)
    names = {
        "networks": tuple(name for name in both.networks if name in set(tried["network"])),
        "sites": tuple(sorted(set(tried["site"]))),
        "protocols": PAIR,
        "metrics": declared.family_metrics,
    }
    times, lost = aligned(samples, names), lost_loads(tried, names)
    slow = slow_loads(times.values[:, :, [0]], times.values[:, :, [1]], 1 + worse_than)
    kinds = {SLOW: slow, LOST: (lost[..., [0]], lost[..., [1]])}
    return share_changes(kinds, times.networks, (B,), declared, worse_than)[SHARES]
