"""The numbers that web developers use and that are no moments of a load, compared between protocols.

Some may be 0 (blocking time, layout shift), so they are compared by their differences within blocks instead of ratios.
No hypothesis can be declared of them. Times such as LCP are compared as all other times are.
"""

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.contrast_table import contrast_columns
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import OVER_SITES, by_metric, counts, frame
from dataset.metrics import REQUESTS, web_names

COLUMNS = [*OVER_SITES, "sites", "blocks", "mean_reference", "mean_compared", "difference", "low", "high"]


def web_metrics(campaign: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    """One row for each pair, network and metric of `dataset.metrics.web_names` that both protocols have in some block.

    Columns: reference, compared, network, metric; sites, blocks; mean_reference and mean_compared (over sites, of means
    over these blocks); difference (compared - reference within blocks; the mean over sites of
    `analysis.statistics.ratios`), with the ends of its interval, NaN with too few blocks. All in the metric's unit.
    Empty if no run has any of these metrics.
    """
    runs = campaign.valid
    names = [name for name in web_names() if name in runs and runs[name].notna().any()]
    # Requests are counted for every load, even if its network log is not read.
    if runs.empty or not set(names) - {REQUESTS}:
        return pd.DataFrame(columns=COLUMNS)
    samples, tables = samples_of(campaign, names), [pd.DataFrame(columns=COLUMNS)]
    for pair in samples.measured(hypotheses.comparisons):
        both = np.stack(samples.of_pair(pair))
        both = np.where(np.isfinite(both).all(axis=0), both, np.nan)
        differences = by_metric(both[1] - both[0])
        mean_reference, mean_compared = (mean(by_metric(mean(values))) for values in both)
        change, blocks = mean_over_sites(differences), counts(differences)
        columns = {
            **pair._asdict(),
            "sites": (blocks > 0).sum(axis=-1),
            "blocks": blocks.sum(axis=-1),
            "mean_reference": mean_reference,
            "mean_compared": mean_compared,
            **contrast_columns(change, hypotheses.confidence, COLUMNS[-3:], as_share=False, where_known=True),
        }
        tables.append(frame(columns, network=samples.networks, metric=samples.metrics))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    return table.loc[table["blocks"] > 0, COLUMNS].reset_index(drop=True)
