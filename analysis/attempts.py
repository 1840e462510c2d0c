"""The outcome of each planned run: one row per run, computed from its attempts.

A load that never ended is repeated, and the second attempt may succeed. The run is then valid, and yet the protocol has
lost a load. So a run is lost if it was rejected at the first attempt that says anything about the page. Rejections for
the film or the machine, and those that were withdrawn, say nothing about the page and are skipped.
"""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pandas as pd

from analysis.runs import (
    CANARY_PREFIX,
    CONCURRENT_LOADS,
    LANE,
    MACHINE,
    CampaignTable,
    gates,
    metrics_in,
    processor_columns_in,
)
from analysis.samples import blocks_of, starts_of
from analysis.statistics.samples import Array
from dataset.gates import KIND_OF_GATE, LOAD, PAGE, SUPERSEDED

# A setting is a site on a network over a protocol.
SETTING = ["network", "site", "protocol"]
RUN = [*SETTING, "run"]


def rejections(runs: pd.DataFrame) -> pd.DataFrame:
    """`runs` (one row per attempt) with two further columns, gate and kind, both empty for attempts that count.

    Leaves out attempts that were superseded by another attempt at the same run. The attempts of a run are in the order
    in which they were made.
    """
    attempts = runs.assign(gate=gates(runs["reason"].where(~runs["valid"], "")))
    attempts = attempts[attempts["gate"] != SUPERSEDED]
    kinds = attempts["gate"].map(KIND_OF_GATE).fillna(LOAD).where(~attempts["valid"], "")
    attempts = attempts.assign(kind=kinds)
    return attempts.sort_values("attempt", kind="stable") if "attempt" in attempts else attempts


def tried_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each run that was tried, in the order of the runs' starts. `runs` has one row per attempt.

    Columns: network, site, protocol, run; block (`analysis.samples.blocks_of`); attempts (their number); valid (one
    attempt counts); judged (an attempt said something about the page); lost (the first such attempt was rejected); gate
    (that rejected it; else empty); started (when the attempt that counts started, else the last one; NaT if unknown);
    machine, lane, concurrent_loads and the canaries, if the campaign has them; the metrics and the processor's share of
    the attempt that counts.
    """
    number = runs.groupby(RUN).ngroup()
    attempts = rejections(runs.assign(block=blocks_of(runs), number=number))
    telling = attempts[attempts["kind"].isin(["", LOAD, PAGE])].drop_duplicates("number").set_index("number")
    # One attempt of each run: the attempt that counts, else the last one.
    table = attempts.sort_values("valid", kind="stable").drop_duplicates("number", keep="last").set_index("number")
    first = telling.reindex(table.index)
    metrics = [*metrics_in(runs), *processor_columns_in(runs)]
    table = table.assign(
        attempts=attempts.groupby("number").size(),
        judged=first["gate"].notna(),
        lost=first["kind"].isin([LOAD, PAGE]),
        gate=first["gate"].fillna(""),
        started=starts_of(table),
        **table[metrics].where(table["valid"]),
    )
    others = [name for name in table if name in (MACHINE, LANE, CONCURRENT_LOADS) or name.startswith(CANARY_PREFIX)]
    columns = [*RUN, "block", "attempts", "valid", "judged", "lost", "gate", "started", *others, *metrics]
    return table[columns].sort_values(["started", "block"], kind="stable", ignore_index=True)


@lru_cache(maxsize=1)
def tried_in(campaign: CampaignTable) -> pd.DataFrame:
    """`tried_runs` of `campaign`. All analyses of a campaign share this table, so do not change it."""
    return tried_runs(campaign.runs)


def cube(tried: pd.DataFrame, column: str, protocols: Iterable[str], networks: Iterable[str]) -> Array:
    """A column of `tried_runs` as an array: networks x sites x protocols x blocks; NaN where there is no run.

    Sites are in alphabetical order. The blocks of each network and site begin at index 0.
    """
    places = tried.groupby(["network", "site"])["block"].rank("dense").astype(int) - 1
    axes = [list(networks), sorted(set(tried["site"])), list(protocols)]
    names = ("network", "site", "protocol")
    index = [pd.Index(axis).get_indexer(tried[name]) for axis, name in zip(axes, names, strict=True)]
    values = np.full((*map(len, axes), int(places.max()) + 1 if len(places) else 0), np.nan)
    is_known = (np.stack(index) >= 0).all(axis=0)
    values[*(place[is_known] for place in index), places[is_known]] = tried[column].to_numpy(dtype=float)[is_known]
    return values


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """The mean of each metric over the valid runs of each setting, from a campaign's attempts.

    Returns columns network, site, protocol, valid and attempts (counts), and the metrics of `runs`. A setting without a
    valid run has NaN.
    """
    attempts = runs.groupby(SETTING, sort=False)["valid"].agg(valid="sum", attempts="size")
    averages = runs[runs["valid"]].groupby(SETTING, sort=False)[list(metrics_in(runs))].mean()
    return attempts.join(averages).reset_index()


def exclusions(runs: pd.DataFrame) -> pd.DataFrame:
    """The number of excluded attempts, by network, protocol and gate.

    Returns columns network, protocol, gate, excluded, and example (the full reason of one attempt).
    """
    excluded = runs[~runs["valid"]]
    excluded = excluded.assign(gate=gates(excluded["reason"]))
    groups = excluded.groupby(["network", "protocol", "gate"], sort=False)["reason"]
    return groups.agg(excluded="size", example="first").reset_index()
