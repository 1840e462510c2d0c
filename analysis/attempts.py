"""The outcome of each planned run: one row per run, computed from its attempts.

A load that never ended is repeated, and the second attempt may succeed. The run is then valid, and yet the protocol has
lost a load. So a run is lost if it was rejected at the first attempt that says anything about the page. Rejections for
the film or the machine, and those that were withdrawn, say nothing about the page and are skipped.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis.runs import LANE, MACHINE, CampaignTable, gates, metrics_in, processor_columns_in
from analysis.samples import blocks_of, sittings_of, starts_of
from analysis.statistics.samples import Array
from dataset.gates import KIND_OF_GATE, LOAD, PAGE, SUPERSEDED

# A setting is a site on a network over a protocol.
SETTING = ["network", "site", "protocol"]
RUN = [*SETTING, "run"]
BLOCK = ["network", "site", "block"]


def rejections(runs: pd.DataFrame) -> pd.DataFrame:
    """`runs` (one row per attempt) with two further columns, gate and kind, both empty for attempts that count.

    Leaves out attempts that were superseded by another attempt at the same run. The attempts of a run are in the order
    in which they were made.
    """
    attempts = _with_gates(runs)
    attempts = attempts[attempts["gate"] != SUPERSEDED]
    return attempts.sort_values("attempt", kind="stable") if "attempt" in attempts else attempts


def _with_gates(runs: pd.DataFrame) -> pd.DataFrame:
    gate = gates(runs["reason"].where(~runs["valid"], ""))
    kind = gate.map({**KIND_OF_GATE, SUPERSEDED: ""}).fillna(LOAD).where(~runs["valid"], "")
    return runs.assign(gate=gate, kind=kind)


def exclusions(runs: pd.DataFrame) -> pd.DataFrame:
    """Why attempts of `runs` do not count: columns network, protocol, kind (`dataset.gates.KINDS`; empty if another
    attempt superseded them), gate, excluded (attempts), runs, and example (the full reason of one attempt)."""
    excluded = _with_gates(runs.assign(number=runs.groupby(RUN).ngroup()))[~runs["valid"]]
    groups = excluded.groupby(["network", "protocol", "kind", "gate"], sort=False)
    return groups.agg(excluded=("gate", "size"), runs=("number", "nunique"), example=("reason", "first")).reset_index()


def tried_in(campaign: CampaignTable) -> pd.DataFrame:
    """The `tried_runs` of `campaign`. All analyses share this table, so do not change it."""
    if "tried" not in campaign.kept:
        campaign.kept["tried"] = tried_runs(campaign.runs)
    return campaign.kept["tried"]


def tried_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each run that was tried, in the order of the runs' starts. `runs` has one row per attempt.

    Columns: attempts (their number); judged (an attempt said something about the page); lost (the first such attempt
    was rejected); gate (that rejected it; else empty). The columns of `runs` are those of the attempt that counts, else
    of the last one, which has no metrics and no processor's share. So are block (`analysis.samples.blocks_of`), started
    (NaT if unknown), sitting (`analysis.samples.sittings_of`) and previous (the protocol of the attempt before it,
    valid or not, in the same lane and sitting; missing if unknown).
    """
    runs = runs.assign(started=starts_of(runs), sitting=sittings_of(runs), block=blocks_of(runs))
    in_lane = [name for name in (MACHINE, LANE, "sitting") if name in runs]
    in_order = runs[runs["started"].notna()].sort_values("started", kind="stable")
    previous = in_order.groupby(in_lane, dropna=False)["protocol"].shift()
    attempts = rejections(runs.assign(previous=previous, number=runs.groupby(RUN).ngroup()))
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
        **table[metrics].where(table["valid"]),
    )
    return table.sort_values(["started", "block"], kind="stable", ignore_index=True)


def in_places(tried: pd.DataFrame) -> pd.DataFrame:
    """The rows of `tried_runs` with a known start, and their place in the block (1, …) as column place."""
    known = tried[tried["started"].notna()]
    return known.assign(place=known.groupby(BLOCK).cumcount() + 1)


def cubes(tried: pd.DataFrame, columns: Sequence[str], protocols: Iterable[str], networks: Iterable[str]) -> Array:
    """The `columns` of `tried_runs` as arrays: columns x networks x sites (by name) x protocols x blocks
    (from index 0 on at each network and site); NaN where there is no run."""
    named = tried[SETTING].assign(place=tried.groupby(["network", "site"])["block"].rank("dense").astype(int))
    blocks = named["place"].max() if len(named) else 0
    axes = (list(networks), sorted(tried["site"].unique()), list(protocols), range(1, blocks + 1))
    index = np.stack([pd.Index(axis).get_indexer(named[name]) for axis, name in zip(axes, named, strict=True)])
    result = np.full([len(columns), *map(len, axes)], np.nan)
    for cells, column in zip(result, columns, strict=True):
        values = tried[column].to_numpy(dtype=float)
        is_known = (index >= 0).all(axis=0) & ~np.isnan(values)
        cells[*index[:, is_known]] = values[is_known]
    return result


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """The mean of each metric over the valid runs of each setting, from a campaign's attempts: columns network, site,
    protocol, valid and attempts (counts), and the metrics of `runs`; NaN without a valid run."""
    attempts = runs.groupby(SETTING, sort=False)["valid"].agg(valid="sum", attempts="size")
    averages = runs[runs["valid"]].groupby(SETTING, sort=False)[list(metrics_in(runs))].mean()
    return attempts.join(averages).reset_index()
