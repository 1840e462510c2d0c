"""Variants of sites compared with their originals, in the same way as protocols: by ratios of runs measured side by
side.

A site and its variants share their blocks (`measure.campaign.plan`), so everything that changes from block to block
cancels in the ratio of two runs of one block. A variant that is added later is measured long after the blocks that its
original already has; runs of these blocks are not paired.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import blocks_of
from analysis.statistics.contrast_table import CHANGE, TESTS, contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import logarithms
from record.names import original_of

RUN = ["network", "protocol", "run"]
COLUMNS = ["variant", "original", "network", "protocol", "metric", "pairs", "change", "low", "high", "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "verdict"]


def variants(campaign: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    """The change from each original to its variant: one row for each variant, network, protocol and metric.

    There is a row only if, for at least one run number, the original's run and the variant's run both count. Columns:
    variant, original, network, protocol, metric, pairs (two such runs are a pair if they were measured in one block),
    change (of the variant's time, as a share) with low and high, p and equivalence_p (for
    `hypotheses.equivalence_margin`), both also corrected by Benjamini and Hochberg's false discovery rate over the
    table, and verdict. Without pairs all statistics are NaN, and the verdict is not decided.
    """
    margin = float(np.log1p(hypotheses.equivalence_margin))
    rows = []
    for names, pairs in _pairs(campaign):
        for metric in campaign.metrics:
            logs = logarithms(pairs[[f"{metric}_original", f"{metric}_variant"]].to_numpy(dtype=float))
            ratios = logs[:, 1] - logs[:, 0]
            if not (has_both := np.isfinite(ratios)).any():
                continue
            is_pair = has_both & pairs["is_one_block"].to_numpy()
            change = mean_over_sites(np.where(is_pair, ratios, np.nan)[None])
            columns = contrast_columns(change, hypotheses.confidence, CHANGE, margin)
            numbers = [float(columns[name]) for name in (*CHANGE, *TESTS)]
            rows.append([*names, metric, int(is_pair.sum()), *numbers])
    table = pd.DataFrame(rows, columns=[name for name in COLUMNS if not name.endswith(("_corrected", "verdict"))])
    return judged(table, false_discovery_rate, hypotheses.significant_p, CHANGE[0])[COLUMNS]


def _pairs(campaign: CampaignTable) -> Iterator[tuple[tuple[str, str, str, str], pd.DataFrame]]:
    """Variant, original, network and protocol, with a row for each run number that counts for both: the times of both
    runs, and whether they were measured in one block (is_one_block)."""
    runs = campaign.runs.assign(block=blocks_of(campaign.runs))
    runs = runs[runs["valid"]]
    known = [*campaign.networks, *sorted(set(runs["network"]) - set(campaign.networks))]
    sites = sorted(set(runs["site"]))
    for variant in (name for name in sites if original_of(name) != name and original_of(name) in sites):
        original = original_of(variant)
        one, other = (
            runs.loc[runs["site"] == name, [*RUN, "block", *campaign.metrics]] for name in (original, variant)
        )
        both = one.merge(other, on=RUN, suffixes=("_original", "_variant"))
        both = both.assign(is_one_block=both["block_original"] == both["block_variant"])
        for network, protocol in product(known, campaign.protocols):
            rows = both[(both["network"] == network) & (both["protocol"] == protocol)]
            if len(rows):
                yield (variant, original, network, protocol), rows
