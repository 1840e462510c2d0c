"""When a campaign with `RUNS=auto` has measured enough: a rule fixed beforehand, with the same test as the verdicts.

A network has enough blocks if each of its contrasts in the declared family is decided
(`analysis.statistics.confirmatory`), or after the last planned look. All its sites stop together, since a contrast is a
mean over them. A network ends at the first look at which the report, too, would give each of its contrasts a verdict.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.samples import Samples
from analysis.statistics.spending import Looks, looks_of_plan
from base.errors import EyelevelError
from dataset.declaration import declaration_of

# A site that was added to a decided network gets this many runs of each protocol.
FIRST_BLOCKS = 5


def planned_runs(campaign: CampaignTable) -> list[int]:
    """The numbers of runs of each setting that `campaign` has planned, the declared one first; empty without any."""
    runs = campaign.settings.runs
    return [*declaration_of(campaign.document, campaign.folder).runs, *([runs] if runs else [])]


def looks_of(campaign: CampaignTable) -> Looks | None:
    """The looks of `campaign`; None if it declared no number of runs."""
    planned, settings = planned_runs(campaign), campaign.settings
    return looks_of_plan(planned, len(settings.sites), may_end=settings.auto) if planned else None


def decided_cells(campaign: CampaignTable, declaration: Hypotheses) -> list[tuple[str, str]]:
    """Site and network of all cells that need no more runs. A network is decided if it is decided in all browsers.

    A site that was added to a decided network gets FIRST_BLOCKS runs of each protocol.
    """
    samples = samples_of(campaign)
    hypotheses = declaration.restricted_to(campaign.protocols, campaign.metrics)
    looks = looks_of(campaign)
    if not looks:
        raise EyelevelError(f"{campaign.folder} declares no number of runs, so nothing says when it has enough")
    table = confirmatory(samples, hypotheses, campaign.rtt_ms, looks, campaign.networks)
    # No further run decides a metric that no run of both protocols has, such as one that a browser does not give.
    has_others = table.groupby(["reference", "compared", "network"])["blocks"].transform("max") > 0
    is_settled = table["verdict"].ne(NOT_DECIDED) | (table["blocks"].eq(0) & has_others)
    decided = is_settled.groupby(table["network"]).all()
    networks = [
        network
        for network, rounds in zip(samples.networks, samples.rounds, strict=True)
        if rounds >= looks.blocks[-1] or decided.get(network, False)
    ]
    runs = campaign.runs.groupby(["site", "network", "protocol"])["run"].nunique().unstack("protocol")
    fewest = runs.reindex(columns=list(campaign.protocols)).fillna(0).min(axis=1)
    going_on = {campaign.clients[name].network for name in campaign.networks if name not in networks}
    is_enough: dict[tuple[str, str], list[bool]] = {}
    for name, site in product(networks, campaign.settings.sites):
        if (network := campaign.clients[name].network) not in going_on:
            is_enough.setdefault((site, network), []).append(fewest.get((site, name), 0) >= FIRST_BLOCKS)
    return [cell for cell, in_browsers in is_enough.items() if all(in_browsers)]


def stopping_table(samples: Samples, hypotheses: Hypotheses, campaign: CampaignTable) -> pd.DataFrame:
    """The number of blocks of every site after which `RUNS=auto` would have stopped, by Student's t.

    One row per network; columns: network, sites, blocks (the most of a site), enough (the blocks of every site after
    which the rule stops), decided and undecided (numbers of contrasts).
    """
    most = samples.values.shape[-1]
    looks = looks_of(campaign)
    looks = looks and replace(looks, exchanges=False)
    ends: dict[str, tuple[int, int]] = {}
    for blocks in (blocks for blocks in (looks.blocks if looks else ()) if blocks <= most):
        table = confirmatory(samples.first(blocks), hypotheses, campaign.rtt_ms, looks, campaign.networks)
        is_decided = table["verdict"].ne(NOT_DECIDED)
        for network, of_network in is_decided.groupby(table["network"]):
            if ends.get(str(network), (0, 0))[1] < len(of_network):
                ends[str(network)] = blocks, int(of_network.sum())
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
