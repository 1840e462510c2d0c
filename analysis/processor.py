"""Whether loads waited for a processor: a machine with too few cores adds differences of its own between protocols.

A thread waits when it could run and no core is free. The waits of a load's threads add up to at least the delay that
they caused, and mostly to more, since threads wait in parallel. So the difference between two such sums is no estimate
of what a machine with more cores would change; it only says that the result there may be different.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.attempts import cube, tried_in
from analysis.runs import CampaignTable, records
from analysis.stability import ALARM_P, LARGE_CHANGE
from analysis.statistics.contrast_table import contrast_columns, corrected, holm
from analysis.statistics.gain import mean, median
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import OVER_SITES
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT

# Waits may explain a difference in times if the waits differ by more than this share of it, and by more than
# LARGE_CHANGE of the time. A smaller difference in waits, from threads that waited in parallel, cannot explain most of
# it.
EFFECT_SHARE = 0.5
# If threads wait for more than this share of the time in which they have work, all work takes more than twice as long.
BUSY_SHARE = 0.5
# The processor columns of the load itself. The film is made from the load's output, and the load does not wait for it.
OF_LOAD = tuple(name for name in PROCESSOR_COLUMNS if not name.startswith("film"))
DIFFERENT, BUSY = "waits differ", "too few cores"
WAIT_GAIN = ("wait_gain", "wait_gain_low", "wait_gain_high")
COLUMNS = [*OVER_SITES, "blocks", "wait_reference", "wait_compared", "difference_ms", "share_reference"]
COLUMNS += ["share_compared", "wait_gain", "gain", "p", "p_corrected", "warning"]


def waits(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """How long the loads of each contrast of the family waited for a processor; no rows if that is not known.

    `confirmatory` is the table of that name (`analysis.statistics.confirmatory`).
    Columns:
    - reference, compared, network, metric
    - blocks: in which both waits are known
    - wait_reference, wait_compared: in ms, mean over sites of medians, all threads of a load together
    - difference_ms: compared - reference, within blocks, mean over sites
    - share_reference, share_compared: the share of waiting in the time in which threads had work, as the median over
      loads of waits / (waits + processor time)
    - wait_gain: the difference as a share of the reference's time; gain: from `confirmatory`
    - p: of a wait_gain of 0; p_corrected: Holm's
    - warning: DIFFERENT, BUSY
    """
    tried = tried_in(campaign)
    if PROCESSOR_WAIT not in tried or not tried[PROCESSOR_WAIT].notna().any():
        return pd.DataFrame(columns=COLUMNS)
    tried = tried.assign(wait_share=wait_shares(tried))
    protocols, networks = list(campaign.protocols), list(campaign.networks)
    wait, wait_share = (cube(tried, name, protocols, networks) for name in (PROCESSOR_WAIT, "wait_share"))
    tables = []
    for pair in (pair for pair in hypotheses.family if pair.is_of(protocols)):
        one, other = (protocols.index(name) for name in pair)
        difference = wait[:, :, other] - wait[:, :, one]
        columns = {
            "blocks": np.isfinite(difference).sum(axis=(1, 2)),
            "wait_reference": mean(median(wait[:, :, one])),
            "wait_compared": mean(median(wait[:, :, other])),
            "difference_ms": mean_over_sites(difference).centre,
            "share_reference": mean(median(wait_share[:, :, one])),
            "share_compared": mean(median(wait_share[:, :, other])),
        }
        for metric in (name for name in hypotheses.family_metrics if name in tried):
            times = median(cube(tried, metric, protocols, networks)[:, :, one])
            relative = mean_over_sites(difference / times[..., None])
            tests = contrast_columns(relative, hypotheses.confidence, WAIT_GAIN, as_share=False)
            tables.append(pd.DataFrame({"network": networks, "metric": metric, **pair._asdict(), **columns, **tests}))
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(tables, ignore_index=True).merge(confirmatory[[*OVER_SITES, "gain"]], how="left", on=OVER_SITES)
    table = table[table["blocks"] > 0].reset_index(drop=True)
    table = corrected(table, holm, ("p",))
    table["warning"] = [_warning(row) for row in records(table)]
    return table[COLUMNS]


def _warning(row: Mapping[str, Any]) -> str:
    is_large = abs(row["wait_gain"]) > max(LARGE_CHANGE, EFFECT_SHARE * abs(row["gain"]))
    is_busy = max(row["share_reference"], row["share_compared"]) > BUSY_SHARE
    faults = {DIFFERENT: is_large and row["p_corrected"] < ALARM_P, BUSY: is_busy}
    return "; ".join(name for name, applies in faults.items() if applies)


def wait_shares(runs: pd.DataFrame) -> "pd.Series[float]":
    """The share of waiting in the time in which the threads of each run had work; NaN if it is not known."""
    if PROCESSOR_WAIT not in runs:
        return pd.Series(np.nan, runs.index)
    work = runs[[name for name in OF_LOAD if name in runs]].sum(axis=1, min_count=1)
    return runs[PROCESSOR_WAIT] / (runs[PROCESSOR_WAIT] + work)


def has_warning(table: pd.DataFrame, fault: str) -> "pd.Series[bool]":
    """Whether each row of the table of `waits` has the warning `fault`."""
    return pd.Series([fault in faults.split("; ") for faults in table["warning"]], table.index, dtype=bool)
