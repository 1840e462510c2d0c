"""Which sites behind which networks need no more runs, for a campaign of RUNS=auto.

The rule is that of `analysis.sequential`; it is asked for the declared family of hypotheses, in its metrics.
"""

from analysis.hypotheses import Hypotheses
from analysis.runs import CampaignTable
from analysis.sequential import decide


def decided(campaign: CampaignTable, declared: Hypotheses) -> list[tuple[str, str]]:
    """Site and network of all that are decided, as far as has been measured."""
    asked = declared.fitted(campaign.protocols)
    pairs = [(pair.reference, pair.compared) for pair in asked.family]
    found = []
    for (site, network), runs in campaign.valid.groupby(["site", "network"], sort=False):
        ordered = runs.sort_values("run", kind="stable")
        times = {
            str(name): {metric: own[metric].tolist() for metric in asked.family_metrics}
            for name, own in ordered.groupby("protocol", sort=False)
        }
        if not decide(times, pairs, asked.family_metrics).go_on:
            found.append((str(site), str(network)))
    return found
