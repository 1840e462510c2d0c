"""Whether loads waited for a processor: a machine with too few cores adds differences of its own between protocols.

A thread waits when it could run and no core is free. The waits of a load's threads add up to at least the delay that
they caused, and mostly to more, since threads wait in parallel. So the difference between two such sums is no estimate
of what a machine with more cores would change; it only says that the result there may be different.

Counters of waits may be wrong by any amount: until November 2026, some sleep of the servers counted as waiting
(`measure.instruments.processor`). So waits that no load can have had count as missing, and all statistics here are
medians and ranks, which the remaining wrong waits hardly move.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.attempts import cube, tried_in
from analysis.runs import CampaignTable, records
from analysis.stability import ALARM_P, LARGE_CHANGE
from analysis.statistics.contrast_table import corrected, holm
from analysis.statistics.gain import median
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.samples import OVER_SITES, Array
from analysis.statistics.signed_ranks import signed_ranks_p
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT

# Waits may explain a difference in times if the waits differ by more than this share of it, and by more than
# LARGE_CHANGE of the time. A smaller difference in waits, from threads that waited in parallel, cannot explain most of
# it.
EFFECT_SHARE = 0.5
# If threads wait for more than this share of the time in which they have work, all work takes more than twice as long.
BUSY_SHARE = 0.5
# The processor columns of the load itself. The film is made from the load's output, and the load does not wait for it.
OF_LOAD = tuple(name for name in PROCESSOR_COLUMNS if not name.startswith("film"))
# Waits of more than this many threads that wait during the whole load count as impossible. The table does not have the
# number of threads with work. In `data/reference`, whose two cores were saturated, it was 4.1 on average over the load
# of TCP+ or QUIC that waited most, and 2.8 of them waited. More load on the machine stretches a load's waits and its
# duration alike, so it hardly raises that number.
MOST_WAITING = 8
# The ends of a load, until which waits are counted.
ENDS = ("plt", "lvc")
DIFFERENT, BUSY = "waits differ", "saturated"
COLUMNS = [*OVER_SITES, "blocks", "wait_reference", "wait_compared", "difference_ms", "share_reference"]
COLUMNS += ["share_compared", "wait_gain", "gain", "p", "p_corrected", "warning"]


def waits(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """How long the loads of each contrast of the family waited for a processor; no rows if that is not known.

    `confirmatory` is the table of that name (`analysis.statistics.confirmatory`).
    Columns, all medians over the blocks of all sites in which both waits are known and possible:
    - reference, compared, network, metric
    - blocks: their number
    - wait_reference, wait_compared: in ms, all threads of a load together
    - difference_ms: compared - reference, within blocks
    - share_reference, share_compared: the share of waiting in the time in which threads had work,
      waits / (waits + processor time)
    - wait_gain: the difference within blocks as a share of the reference's median time at the site; gain: from
      `confirmatory`
    - p: of no difference within blocks (`analysis.statistics.signed_ranks`; alike for all metrics); p_corrected: Holm's
      over pairs and networks
    - warning: DIFFERENT, BUSY
    """
    tried = tried_in(campaign)
    if PROCESSOR_WAIT not in tried or not tried[PROCESSOR_WAIT].notna().any():
        return pd.DataFrame(columns=COLUMNS)
    tried = tried.assign(**{PROCESSOR_WAIT: possible_waits(tried), "wait_share": wait_shares(tried)})
    protocols, networks = list(campaign.protocols), list(campaign.networks)
    wait, wait_share = (cube(tried, name, protocols, networks) for name in (PROCESSOR_WAIT, "wait_share"))
    metrics = [name for name in hypotheses.family_metrics if name in tried]
    times = {metric: median(cube(tried, metric, protocols, networks)) for metric in metrics}
    tests, gains = [], []
    for pair in (pair for pair in hypotheses.family if pair.is_of(protocols)):
        one, other = (protocols.index(name) for name in pair)
        difference = wait[:, :, other] - wait[:, :, one]
        is_known = np.isfinite(difference)
        columns = {
            "blocks": is_known.sum(axis=(1, 2)),
            "difference_ms": _median(difference),
            "p": signed_ranks_p(difference),
        }
        for name, place in (("reference", one), ("compared", other)):
            columns[f"wait_{name}"] = _median(np.where(is_known, wait[:, :, place], np.nan))
            columns[f"share_{name}"] = _median(np.where(is_known, wait_share[:, :, place], np.nan))
        tests.append(pd.DataFrame({**pair._asdict(), "network": networks, **columns}))
        for metric, time in times.items():
            wait_gain = _median(difference / time[:, :, one, None])
            gains.append(
                pd.DataFrame({**pair._asdict(), "network": networks, "metric": metric, "wait_gain": wait_gain})
            )
    if not gains:
        return pd.DataFrame(columns=COLUMNS)
    test = pd.concat(tests, ignore_index=True).query("blocks > 0")
    table = pd.concat(gains, ignore_index=True).merge(corrected(test, holm, ("p",)), on=OVER_SITES[:3])
    table = table.merge(confirmatory[[*OVER_SITES, "gain"]], how="left", on=OVER_SITES)
    table["warning"] = [_warning(row) for row in records(table)]
    return table[COLUMNS]


def _median(values: Array) -> Array:
    """The median of each network's `values` (networks x sites x blocks)."""
    return median(values.reshape(len(values), -1))


def _warning(row: Mapping[str, Any]) -> str:
    is_large = abs(row["wait_gain"]) > max(LARGE_CHANGE, EFFECT_SHARE * abs(row["gain"]))
    is_busy = max(row["share_reference"], row["share_compared"]) > BUSY_SHARE
    faults = {DIFFERENT: is_large and row["p_corrected"] < ALARM_P, BUSY: is_busy}
    return "; ".join(name for name, applies in faults.items() if applies)


def possible_waits(runs: pd.DataFrame) -> "pd.Series[float]":
    """How long the threads of each run waited for a processor, in ms; NaN if it is not known, or if they cannot have
    waited for so long."""
    if PROCESSOR_WAIT not in runs:
        return pd.Series(np.nan, runs.index)
    ended_ms = runs[[name for name in ENDS if name in runs]].max(axis=1)
    return runs[PROCESSOR_WAIT].mask(runs[PROCESSOR_WAIT] > MOST_WAITING * ended_ms)


def wait_shares(runs: pd.DataFrame) -> "pd.Series[float]":
    """The share of waiting in the time in which the threads of each run had work; NaN if it is not known."""
    wait = possible_waits(runs)
    work = runs[[name for name in OF_LOAD if name in runs]].sum(axis=1, min_count=1)
    return wait / (wait + work)


def has_warning(table: pd.DataFrame, fault: str) -> "pd.Series[bool]":
    """Whether each row of the table of `waits` has the warning `fault`."""
    return pd.Series([fault in faults.split("; ") for faults in table["warning"]], table.index, dtype=bool)
