"""Whether loads waited for a processor: a machine with too few cores adds differences of its own between protocols.

A thread waits when it could run and no core is free. Threads wait in parallel, so the waits of a load's threads add up
to more than the delay that they caused. Their difference is no estimate of what a machine with more cores would change;
it only says that the result there may be different. Counters of waits may be wrong by any amount
(`measure.instruments.processor`). So waits that no load can have had count as missing, and all statistics here are
medians and ranks, which the remaining wrong waits hardly move.
"""

from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from analysis.attempts import cubes, tried_in
from analysis.runs import CampaignTable, records
from analysis.samples import starts_of
from analysis.stability import ALARM_P, LARGE_CHANGE
from analysis.statistics.contrast_table import holm
from analysis.statistics.dependence import signed_ranks_p
from analysis.statistics.gain import median
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.samples import OVER_SITES, Array
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT

# Waits may explain most of a difference in times if the waits differ by more than this share of it, and by more than
# LARGE_CHANGE of the time.
EFFECT_SHARE = 0.5
# If threads wait for more than this share of the time in which they have work, all work takes more than twice as long.
BUSY_SHARE = 0.5
# Waits of more than this many threads that wait during the whole load count as impossible. In `data/reference`, on two
# saturated cores, 2.8 of the 4.1 threads with work waited on average in the load of TCP+ or QUIC that waited most. More
# load on the machine stretches a load's waits and its duration alike, so it hardly raises that number.
MOST_WAITING = 8
DIFFERENT, BUSY = "waits differ", "saturated"
# In runs that began earlier, the servers' time and waits may lack uWSGI's (`measure.instruments.processor`).
UWSGI_COUNTS_FROM = pd.Timestamp("2026-12-01", tz="UTC")
WITHOUT_UWSGI = (
    "Until 30 November 2026, uWSGI, which answers behind all servers but quic_server and quinn, was not counted: loads "
    "over these other servers may have waited longer than these numbers say."
)
COLUMNS = [*OVER_SITES, "blocks", "wait_reference", "wait_compared", "difference_ms", "share_reference"]
COLUMNS += ["share_compared", "wait_gain", "gain", "p", "p_corrected", "warning"]


def waits(campaign: CampaignTable, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """How long the loads of each contrast of the family waited for a processor; no rows if that is not known.

    Columns: reference, compared, network, metric; blocks (of all sites, in which both waits are known and possible);
    medians over these: wait_reference and wait_compared (ms, all threads of a load together), difference_ms (compared -
    reference, within blocks), share_reference and share_compared (`wait_shares`), wait_gain (the difference within
    blocks as a share of the reference's median time at the site); gain (from `confirmatory`, the table of that name); p
    (`signed_ranks_p`; alike for all metrics), p_corrected (Holm's over pairs and networks); warning: DIFFERENT, BUSY.
    """
    tried = tried_in(campaign)
    tried = tried.assign(wait=possible_waits(tried), wait_share=wait_shares(tried))
    protocols, networks = list(campaign.protocols), list(campaign.networks)
    metrics = [name for name in hypotheses.family_metrics if name in tried]
    wait, wait_share, *times = cubes(tried, ["wait", "wait_share", *metrics], protocols, networks)
    tables = [pd.DataFrame(columns=COLUMNS)]
    for pair in (pair for pair in hypotheses.family if pair.is_of(protocols)):
        one, other = (protocols.index(name) for name in pair)
        difference = wait[:, :, other] - wait[:, :, one]
        is_known = np.isfinite(difference)
        columns = {"network": networks, "blocks": is_known.sum(axis=(1, 2)), "difference_ms": _median(difference)}
        columns |= {"p": signed_ranks_p(difference)}
        for name, place in (("reference", one), ("compared", other)):
            columns[f"wait_{name}"] = _median(np.where(is_known, wait[:, :, place], np.nan))
            columns[f"share_{name}"] = _median(np.where(is_known, wait_share[:, :, place], np.nan))
        for metric, times_ms in zip(metrics, times, strict=True):
            wait_gain = _median(difference / median(times_ms[:, :, one])[..., None])
            tables.append(pd.DataFrame({**pair._asdict(), "metric": metric, **columns, "wait_gain": wait_gain}))
    table = pd.concat(tables).query("blocks > 0")
    table["p_corrected"] = holm(table["p"].mask(table.duplicated(OVER_SITES[:3])).to_numpy(dtype=float))
    table["p_corrected"] = table.groupby(OVER_SITES[:3])["p_corrected"].transform("max")
    table = table.drop(columns="gain").merge(confirmatory[[*OVER_SITES, "gain"]], how="left", on=OVER_SITES)
    return table.assign(warning=[_warning(row) for row in records(table)])[COLUMNS]


def _median(values: Array) -> Array:
    """The median of each network's `values` (networks x sites x blocks)."""
    return median(values.reshape(len(values), -1))


def _warning(row: Mapping[str, Any]) -> str:
    is_large = abs(row["wait_gain"]) > max(LARGE_CHANGE, EFFECT_SHARE * abs(row["gain"]))
    is_busy = max(row["share_reference"], row["share_compared"]) > BUSY_SHARE
    return "; ".join(compress((DIFFERENT, BUSY), (is_large and row["p_corrected"] < ALARM_P, is_busy)))


def lacks_uwsgi(campaign: CampaignTable) -> bool:
    """Whether `campaign` has runs behind uWSGI that may lack its waits."""
    return "uwsgi" in campaign.document.versions and bool((starts_of(campaign.runs) < UWSGI_COUNTS_FROM).any())


def possible_waits(runs: pd.DataFrame) -> "pd.Series[float]":
    """How long the threads of each run waited for a processor, in ms; NaN if it is not known or is impossible."""
    waits_ms = runs.get(PROCESSOR_WAIT, pd.Series(np.nan, runs.index))
    # Waits are counted until the later of these ends of a load.
    return waits_ms.mask(waits_ms > MOST_WAITING * runs[[name for name in ("plt", "lvc") if name in runs]].max(axis=1))


def wait_shares(runs: pd.DataFrame) -> "pd.Series[float]":
    """The share of waiting in the time in which the threads of each run had work: waits / (waits + processor time); NaN
    if it is not known."""
    wait = possible_waits(runs)
    # The film is made from the load's output, and the load does not wait for it.
    work = runs[[name for name in PROCESSOR_COLUMNS if name in runs and not name.startswith("film")]]
    return wait / (wait + work.sum(axis=1, min_count=1))
