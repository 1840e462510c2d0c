"""The stopping rule of `analysis.sequential`, applied to a campaign: which sites and networks need no more runs.

It decides on the declared family of hypotheses. A campaign of RUNS=auto uses it.
"""

import numpy as np
import pandas as pd

from analysis.hypotheses import Hypotheses
from analysis.outcomes import OPEN
from analysis.runs import CampaignTable
from analysis.samples import Samples
from analysis.sequential import decide


def decided_cells(campaign: CampaignTable, declaration: Hypotheses) -> list[tuple[str, str]]:
    """Site and network of all cells that are decided by the runs measured so far."""
    hypotheses = declaration.restricted_to(campaign.protocols, campaign.metrics)
    cells = []
    for (site, network), runs in campaign.valid.sort_values("run", kind="stable").groupby(["site", "network"]):
        times = {
            str(protocol): {metric: group[metric].tolist() for metric in hypotheses.family_metrics}
            for protocol, group in runs.groupby("protocol")
        }
        if not decide(times, hypotheses.family, hypotheses.family_metrics).go_on:
            cells.append((str(site), str(network)))
    return cells


def stopping_table(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """After how many runs `RUNS=auto` would have stopped.

    A row for each network and site that has all protocols; columns: network, site, runs (measured of each), enough
    (the runs after which the rule stops), decided and undecided (the number of pairs and metrics that are).
    """
    rows = []
    for n, network in enumerate(samples.networks):
        for s, site in enumerate(samples.sites):
            times = {}
            for protocol, values in zip(samples.protocols, samples.values[n, s], strict=True):
                complete = values[:, np.isfinite(values).all(axis=0)]
                times[protocol] = dict(zip(samples.metrics, complete.tolist(), strict=True))
            runs = min(len(metrics[samples.metrics[0]]) for metrics in times.values())
            if not runs or not hypotheses.family:
                continue
            decisions = decide(times, hypotheses.family, hypotheses.family_metrics).decisions.values()
            looks = [decision.runs for decision in decisions if decision.outcome != OPEN]
            undecided = len(decisions) - len(looks)
            enough = runs if undecided else max(looks, default=runs)
            rows.append((network, site, runs, enough, len(looks), undecided))
    return pd.DataFrame(rows, columns=["network", "site", "runs", "enough", "decided", "undecided"])
