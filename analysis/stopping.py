"""The stopping rule of `analysis.sequential`, applied to a campaign: which sites and networks need no more runs.

It decides on the declared family of hypotheses. A campaign of RUNS=auto uses it.
"""

from analysis.hypotheses import Hypotheses
from analysis.runs import CampaignTable
from analysis.sequential import decide


def decided_cells(campaign: CampaignTable, declaration: Hypotheses) -> list[tuple[str, str]]:
    """Site and network of all cells that are decided by the runs measured so far."""
    hypotheses = declaration.restricted_to(campaign.protocols, campaign.metrics)
    pairs = [(pair.reference, pair.compared) for pair in hypotheses.family]
    cells = []
    for (site, network), runs in campaign.valid.sort_values("run", kind="stable").groupby(["site", "network"]):
        times = {
            str(protocol): {metric: group[metric].tolist() for metric in hypotheses.family_metrics}
            for protocol, group in runs.groupby("protocol")
        }
        if not decide(times, pairs, hypotheses.family_metrics).go_on:
            cells.append((str(site), str(network)))
    return cells
