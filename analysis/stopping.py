"""When a campaign with `RUNS=auto` has measured enough: a rule fixed beforehand, with the same test as the verdicts.

A network has enough blocks if each of its contrasts in the declared family is decided
(`analysis.statistics.confirmatory`), or after the last interim analysis. All its sites stop together, since a contrast
is a mean over them. The rule corrects by Bonferroni's method and the report's verdicts by Holm's, which decides
everything that Bonferroni's decides.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import INTERIM_ANALYSES, confirmatory, families
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.samples import Samples
from dataset.declaration import declaration_of


def interim_analyses_of(campaign: CampaignTable) -> tuple[int, ...]:
    """The numbers of blocks of every site after which `campaign` may stop; empty if it may not stop early.

    If the number of runs was raised after the first run, the old number is an interim analysis, too, since the campaign
    could have stopped there.
    """
    settings = campaign.settings
    ends = {*declaration_of(campaign.document, campaign.folder).runs, settings.runs or INTERIM_ANALYSES[-1]}
    interim = {blocks for end in ends for blocks in interim_analyses_until(end)} if settings.auto else ends
    return tuple(sorted(interim)) if len(interim) > 1 or settings.auto else ()


def interim_analyses_until(most: int) -> tuple[int, ...]:
    """The interim analyses of a campaign that measures at most `most` blocks of every site."""
    return (*(blocks for blocks in INTERIM_ANALYSES if blocks < most), most)


def decided_cells(campaign: CampaignTable, declaration: Hypotheses) -> list[tuple[str, str]]:
    """Site and network of all cells that need no more runs. A network is decided if it is decided in all browsers.

    A site that was added to a decided network gets as many runs of each protocol as the first interim analysis has.
    """
    samples = samples_of(campaign)
    hypotheses = declaration.restricted_to(campaign.protocols, campaign.metrics)
    interim = interim_analyses_of(campaign) or INTERIM_ANALYSES
    table = confirmatory(samples, hypotheses, campaign.rtt_ms, interim, campaign.networks)
    decided = is_decided(table, hypotheses).groupby(table["network"]).all()
    networks = [
        network
        for network, rounds in zip(samples.networks, samples.rounds, strict=True)
        if rounds >= interim[-1] or decided.get(network, False)
    ]
    runs = campaign.runs.groupby(["site", "network", "protocol"])["run"].nunique().unstack("protocol")
    fewest = runs.reindex(columns=list(campaign.protocols)).fillna(0).min(axis=1)
    going_on = {campaign.clients[name].network for name in campaign.networks if name not in networks}
    is_enough: dict[tuple[str, str], list[bool]] = {}
    for name, site in product(networks, campaign.settings.sites):
        if (network := campaign.clients[name].network) not in going_on:
            is_enough.setdefault((site, network), []).append(fewest.get((site, name), 0) >= interim[0])
    return [cell for cell, in_browsers in is_enough.items() if all(in_browsers)]


def is_decided(table: pd.DataFrame, hypotheses: Hypotheses) -> "pd.Series[bool]":
    """Whether each contrast in the table of `confirmatory` is decided, by Bonferroni's correction for their number."""
    level = hypotheses.significant_p / table["p"].groupby(families(table, hypotheses)).transform("size")
    return (table["p"] < level) | (table["equivalence_p"] < level)


def stopping_table(
    samples: Samples, hypotheses: Hypotheses, campaign: CampaignTable, interim: Sequence[int] = INTERIM_ANALYSES
) -> pd.DataFrame:
    """The number of blocks of every site after which `RUNS=auto` would have stopped.

    One row per network; columns: network, sites, blocks (the most of a site), enough (the blocks of every site after
    which the rule stops), decided and undecided (numbers of contrasts).
    """
    most = samples.values.shape[-1]
    ends: dict[str, tuple[int, int]] = {}
    for blocks in (blocks for blocks in interim if blocks <= most):
        table = confirmatory(samples.first(blocks), hypotheses, campaign.rtt_ms, interim, campaign.networks)
        decided = is_decided(table, hypotheses)
        for network, is_network_decided in decided.groupby(table["network"]):
            if ends.get(str(network), (0, 0))[1] < len(is_network_decided):
                ends[str(network)] = blocks, int(is_network_decided.sum())
    size = len(hypotheses.family) * len(hypotheses.family_metrics)
    rows = []
    for n, network in enumerate(samples.networks):
        blocks, decided_count = ends.get(network, (most, 0))
        measured = np.isfinite(samples.values[n]).any(axis=(1, 2)).sum(axis=-1)
        enough = blocks if decided_count == size else int(measured.max())
        rows.append(
            (network, int((measured > 0).sum()), int(measured.max()), enough, decided_count, size - decided_count)
        )
    return pd.DataFrame(rows, columns=["network", "sites", "blocks", "enough", "decided", "undecided"])
