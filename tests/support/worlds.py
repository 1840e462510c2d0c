"""Campaigns with known truth for the diagnostics, made without `eyelevel.simulate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.runs import CampaignTable
from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument

NETWORKS = ("dsl", "lte")
PROTOCOLS = ("tcp", "tcp+", "quic")
WANDER_LOADS = 80


@dataclass(frozen=True)
class World:
    """The truth of a campaign.

    `effects`: protocol → share by which it is slower. `lost`: protocol, or "protocol network" for one network only →
    share of loads that never end; these are not repeated unless `retried`. `unfit`: the same for films that are
    unusable; these are repeated. `busy`: share of loads that the machine rejects at random, or, by protocol, the
    multiple of the usual time from which it rejects a load; these are repeated until one is not. `scatter` applies to
    runs and `blocks` to blocks (ln). `heavy`: one run in ten takes several times as long. `drift`: the share by which
    times grow during the campaign. `late`: a protocol that is measured a week later. `waits`: scatter of the time for
    which loads wait for a processor (ln). `fixed`: the order is always the same. `carried`: protocol → share by which
    the load after it takes longer. `wander`: the scatter (ln) of QUIC's times between states of WANDER_LOADS loads
    each. `sittings`: the campaign is measured in so many sittings, a day apart; `between`: the scatter (ln) of QUIC's
    times between them.
    """

    sites: int = 12
    runs: int = 10
    effects: Mapping[str, float] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    retried: bool = False
    unfit: float = 0.0
    busy: float | Mapping[str, float] = 0.0
    scatter: float = 0.05
    blocks: float = 0.03
    heavy: bool = False
    drift: float = 0.0
    late: str = ""
    waits: float = 0.3
    fixed: bool = False
    protocols: tuple[str, ...] = PROTOCOLS
    carried: Mapping[str, float] = field(default_factory=dict)
    wander: float = 0.0
    sittings: int = 1
    between: float = 0.0


def campaign(world: World, seed: int) -> CampaignTable:
    """A campaign in this world."""
    draw = np.random.default_rng(seed)
    size = len(world.protocols)
    shape = (world.runs, world.sites, len(NETWORKS), size)
    run, site, network, protocol = (axis.ravel() for axis in np.indices(shape))
    block = np.ravel_multi_index((run, site, network), shape[:3]) + 1
    order = (
        np.arange(len(run)) % size
        if world.fixed
        else draw.permuted(np.arange(len(run)).reshape(-1, size) % size, axis=1).ravel()
    )
    seconds = 60.0 * block + 12.0 * order
    level = np.log(np.array([900.0, 1500.0]))[network] + draw.normal(0, 0.5, world.sites)[site]
    level += np.log1p([world.effects.get(name, 0.0) for name in world.protocols])[protocol]
    level += draw.normal(0, world.blocks, block.max())[block - 1] + np.log1p(world.drift) * block / block.max()
    body = np.exp(draw.normal(0, world.scatter, len(run)))
    if world.heavy:
        body *= np.where(draw.random(len(run)) < 0.1, 1 + draw.pareto(2.5, len(run)), 1)
    names = np.array(world.protocols)[protocol]
    # New draws come from a separate stream, so that earlier worlds stay as they were.
    later_draw, load = np.random.default_rng([seed, 2]), np.lexsort((order, block)).argsort()
    before = np.append("", names[load.argsort()])[load]
    level += np.log1p([world.carried.get(name, 0.0) for name in before])
    sitting = (block - 1) * world.sittings // block.max()
    states = later_draw.normal(0, world.wander, len(load))[load // WANDER_LOADS]
    states += later_draw.normal(0, world.between, world.sittings)[sitting]
    level += np.where(names == "quic", states, 0)
    seconds = seconds + 86400 * sitting
    is_late = names == world.late
    table = pd.DataFrame({
        "site": np.char.add("s", np.char.zfill(site.astype(str), 2)), "network": np.array(NETWORKS)[network],
        "protocol": names, "run": run + 1, "attempt": 1, "valid": True, "reason": "",
        "si": np.exp(level) * body, "plt": 1.7 * np.exp(level + draw.normal(0, 0.02, len(run))) * body,
        "block": np.where(is_late, block + block.max(), block), "at": seconds + 7 * 86400 * is_late,
        "canary_cpu_ms": draw.normal(50, 1, block.max())[block - 1], "body": body,
    })  # fmt: skip
    settings = table["protocol"] + " " + table["network"]
    # Work is half of the time and waiting a fifth. Both have separate random draws, so that everything else stays the
    # same.
    own_draw = np.random.default_rng([seed, 1])
    table["renderer_cpu_ms"] = 0.5 * table["plt"] * np.exp(own_draw.normal(0, 0.1, len(table)))
    table["processor_wait_ms"] = 0.2 * table["plt"] * np.exp(own_draw.normal(0, world.waits, len(table)))
    share_lost = settings.map(world.lost).fillna(table["protocol"].map(world.lost)).fillna(0).to_numpy(dtype=float)
    is_lost = draw.random(len(table)) < share_lost
    is_unfit = ~is_lost & (draw.random(len(table)) < world.unfit)
    missing = dict.fromkeys(("si", "plt", "renderer_cpu_ms", "processor_wait_ms"), np.nan)
    rejected = table[is_lost | is_unfit].assign(valid=False, **missing)
    rejected["reason"] = np.where(
        is_lost[is_lost | is_unfit], "load_unfinished: there was no load event", "film_unclean: no"
    )
    again = is_unfit | (is_lost & world.retried)
    kept = table[~is_lost | again].assign(attempt=np.where(again, 2, 1)[~is_lost | again])
    kept["at"] += 20 * (kept["attempt"] - 1)
    busy, kept = _busy(world, kept, np.random.default_rng([seed, 2]))
    protocols: dict[str, object] = {name: {} for name in world.protocols}
    table = pd.concat([rejected, *busy, kept], ignore_index=True).drop(columns="body")
    return table_of(table, world.runs, protocols=protocols)


def _busy(world: World, runs: pd.DataFrame, draw: np.random.Generator) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """The attempts that the machine rejected, with their times, and the attempts that replaced them and all others."""
    rejected: list[pd.DataFrame] = []
    while True:
        if isinstance(world.busy, Mapping):
            is_rejected = runs["body"] > runs["protocol"].map(world.busy).fillna(np.inf)
        else:
            is_rejected = pd.Series(draw.random(len(runs)) < world.busy, runs.index)
        # Only loads that were rejected are made again.
        if rejected:
            is_rejected &= runs.index.isin(rejected[-1].index)
        if not is_rejected.any():
            return rejected, runs
        rejected.append(runs[is_rejected].assign(valid=False, reason="machine_busy: 30 ms late"))
        body = runs["body"].where(~is_rejected, np.exp(draw.normal(0, world.scatter, len(runs))))
        times = {name: runs[name] * body / runs["body"] for name in ("si", "plt")}
        runs = runs.assign(**times, body=body, attempt=runs["attempt"] + is_rejected, at=runs["at"] + 15 * is_rejected)


def table_of(runs: pd.DataFrame, planned: int, **settings: object) -> CampaignTable:
    """A campaign with these attempts; `at` is their start in seconds."""
    starts = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(runs["at"], unit="s")
    runs = runs.drop(columns="at").assign(started_at=starts.dt.strftime("%Y-%m-%dT%H:%M:%S%z"))
    names: dict[str, dict[str, object]] = {
        key: {name: {} for name in sorted(set(runs[key[:-1]]))} for key in ("sites", "networks")
    }
    names["protocols"] = {name: {} for name in PROTOCOLS}
    return CampaignTable(
        runs, CampaignDocument(structured({"runs": planned, **names, **settings}, CampaignSettings, ""))
    )


def attempt(**cells: object) -> dict[str, object]:
    """A valid attempt with these cells; with a reason it is invalid."""
    row: dict[str, object] = {"site": "s", "network": "dsl", "protocol": "tcp", "run": 1, "attempt": 1, "reason": ""}
    row |= {"si": 1000.0, "plt": 1700.0, "at": 0.0, **cells}
    return {**row, "valid": not row["reason"]}
