"""The changes by an order of service, within blocks."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.contrast_table import GAIN, contrast_columns
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import by_metric, counts, frame

# The metrics that are judged; LCP first, since the order decides when a picture is complete.
METRICS = ("lcp", "fcp", "si")
MS = ("ms", "ms_low", "ms_high")
COLUMNS = [
    *("reference", "compared", "network", "metric", "sites", "blocks"),
    *(*GAIN, *MS, "p", "p_corrected", "is_shown"),
]


def changes(campaign: CampaignTable, pairs: Iterable[Pair], hypotheses: Hypotheses) -> pd.DataFrame:
    """A row for each of `pairs`, network and metric of METRICS with a block that has both.

    Columns: reference, compared, network, metric; sites and blocks; gain (the location of log ratios within blocks, the
    mean over sites, as a share) and ms (of differences), with their intervals, which hold at once for all rows, NaN
    with too few blocks; p (of no difference); p_corrected (Bonferroni, over all rows); is_shown (p_corrected is below
    the declared threshold).
    """
    names = [name for name in METRICS if name in campaign.runs and campaign.runs[name].notna().any()]
    tables = [pd.DataFrame(columns=COLUMNS)]
    if names and len(campaign.valid):
        samples = samples_of(campaign, names)
        measured = samples.measured(pairs)
        together = 1 - (1 - hypotheses.confidence) / max(1, len(measured) * len(samples.networks) * len(names))
        for pair in measured:
            ratios = by_metric(block_ratios(samples, pair))
            reference, compared = samples.of_pair(pair)
            blocks = counts(ratios)
            columns = {
                **pair._asdict(),
                "sites": (blocks > 0).sum(axis=-1),
                "blocks": blocks.sum(axis=-1),
                **contrast_columns(mean_over_sites(ratios), together, where_known=True),
                **contrast_columns(
                    mean_over_sites(by_metric(compared - reference)), together, MS, as_share=False, where_known=True
                ),
                "p": mean_over_sites(ratios).difference_p(),
            }
            tables.append(frame(columns, network=samples.networks, metric=samples.metrics))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    table = table[table["blocks"] > 0]
    p_corrected = np.minimum(1, table["p"].astype(float) * len(table))
    is_shown = (p_corrected < hypotheses.significant_p) & table["gain_low"].notna()
    return table.assign(p_corrected=p_corrected, is_shown=is_shown)[COLUMNS].reset_index(drop=True)


def typical_runs(campaign: CampaignTable, within: Path, file: str) -> pd.DataFrame:
    """One valid run of each setting: that with the median LCP of those that have `file` in their folder `within`; the
    rows of `campaign.valid`. Empty if there are none."""
    runs = campaign.valid
    if not {"lcp", "folder"} <= set(runs):
        return runs.iloc[:0]
    has_file = np.array([(within / str(folder) / file).is_file() for folder in runs["folder"]], dtype=bool)
    runs = runs[runs["lcp"].notna() & has_file]
    groups = runs.groupby(["network", "site", "protocol"])["lcp"]
    return runs[groups.rank("first") == (groups.transform("size") + 1) // 2]
