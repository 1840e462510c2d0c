"""Variants of sites compared with their originals, as protocols are: by ratios of runs measured side by side.

A site and its variants share their blocks (`measure.campaign.plan`), so everything that changes from block to block
cancels in the ratio of two runs of one block. A variant that is added later is measured long after the blocks that its
original already has; runs of these blocks are not paired.
"""

from itertools import product

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import blocks_of
from analysis.statistics.contrast_table import CHANGE, TESTS, contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import counts, logarithms
from record.names import original_of

RUN = ["network", "protocol", "run"]
COLUMNS = ["variant", "original", "network", "protocol", "metric", "pairs", "change", "low", "high", "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "verdict"]


def variants(campaign: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    """The change from each original to its variant: one row for each variant, network, protocol and metric.

    There is a row only if, for at least one run number, the original's run and the variant's run both count. Columns:
    variant, original, network, protocol, metric, pairs (two such runs are a pair if they were measured in one block),
    change (of the variant's time, as a share) with low and high (NaN with too few pairs), p and equivalence_p (for
    `hypotheses.equivalence_margin`), both also corrected by Benjamini and Hochberg's false discovery rate over the
    table, and verdict. Without pairs all statistics are NaN, and the verdict is not decided.
    """
    margin = float(np.log1p(hypotheses.equivalence_margin))
    runs = campaign.runs.assign(block=blocks_of(campaign.runs))
    runs = runs[runs["valid"]]
    networks = [*campaign.networks, *sorted(set(runs["network"]) - set(campaign.networks))]
    of_site = {site: some[[*RUN, "block", *campaign.metrics]] for site, some in runs.groupby("site")}
    rows = []
    for variant, original in ((name, original_of(name)) for name in of_site):
        if variant == original or original not in of_site:
            continue
        both = of_site[original].merge(of_site[variant], on=RUN, suffixes=("_original", "_variant"))
        is_one_block = both["block_original"] == both["block_variant"]
        for network, protocol, metric in product(networks, campaign.protocols, campaign.metrics):
            is_here = (both["network"] == network) & (both["protocol"] == protocol)
            times = both.loc[is_here, [f"{metric}_original", f"{metric}_variant"]].to_numpy(dtype=float)
            ratios = np.diff(logarithms(times))[:, 0]
            if not np.isfinite(ratios).any():
                continue
            paired = np.where(is_one_block[is_here], ratios, np.nan)
            columns = contrast_columns(
                mean_over_sites(paired[None]), hypotheses.confidence, CHANGE, margin, where_known=True
            )
            numbers = [float(columns[name]) for name in (*CHANGE, *TESTS)]
            rows.append([variant, original, network, protocol, metric, int(counts(paired)), *numbers])
    table = pd.DataFrame(rows, columns=[name for name in COLUMNS if not name.endswith(("_corrected", "verdict"))])
    return judged(table, false_discovery_rate, hypotheses.significant_p, CHANGE[0])[COLUMNS]
