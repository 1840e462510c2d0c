"""The valid runs of a campaign as samples: which runs were measured side by side, and in which order."""

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
import pandas as pd

from analysis.runs import MACHINE, SITTING, CampaignTable
from analysis.statistics.samples import Samples, logarithms
from base.errors import EyelevelError
from dataset.declaration import declaration_of
from dataset.table import EARLIER_MACHINE, RUNS

# Runs whose starts are further apart than this were not measured side by side.
SIDE_BY_SIDE = pd.Timedelta(hours=1)
# The first screen warns if at least this share of a protocol's loads that count on a network lack a metric. From the
# second share on, all of its times in this metric are left out there, since the loads that have it may be unlike those
# that lack it.
MANY_MISSING, TOO_MANY_MISSING = 0.01, 0.05
MISSING_COLUMNS = ["network", "protocol", "metric", "loads", "missing", "is_left_out"]
# Limits of the samples' array, since a table may come from a stranger. If no runs are missing, the array has about one
# cell for each row and metric of the table.
MOST_CELLS, MOST_CELLS_OF_A_ROW = 10_000_000, 300


def samples_of(campaign: CampaignTable, columns: Sequence[str] | None = None) -> Samples:
    """The valid runs of `campaign`, by its metrics or by these `columns`; sites are in alphabetical order.

    Blocks are in the order in which they were planned; those of each network and site begin at index 0. Blocks that
    have only protocols added after the first run come after all other blocks, and do not count as rounds. A protocol
    has no times in a metric on a network where too many of its loads lack one (`missing_times`). Raises EyelevelError
    if a run counts twice.
    """
    metrics = campaign.metrics if columns is None else tuple(columns)
    attempts = campaign.runs.assign(block=blocks_of(campaign.runs))
    runs = attempts[attempts["valid"]]
    if runs.empty:
        return Samples(np.empty((0, 0, 0, len(metrics), 0)), (), (), (), metrics)
    for number in ("run", "block"):
        key = ["network", "site", "protocol", number]
        if (is_second := runs.duplicated(key)).any():
            run = " ".join(str(value) for value in runs.loc[is_second, key].iloc[0])
            raise EyelevelError(f"{campaign.folder / RUNS} has the {number} {run} as valid more than once; keep one")
    orders = {"network": campaign.networks, "site": (), "protocol": campaign.protocols}
    networks, sites, protocols = names = [names_in_order(runs[name].unique(), order) for name, order in orders.items()]
    added = declaration_of(campaign.document, campaign.folder).protocols
    of_block = attempts["protocol"].isin(list(added)).groupby([attempts[name] for name in ("network", "site", "block")])
    is_added = of_block.transform("all")
    # A block without a run that counts keeps its place, so that the later blocks do not move.
    order = attempts["block"] + is_added * (attempts["block"].max() + 1)
    blocks = order.groupby([attempts["network"], attempts["site"]]).rank("dense").astype(int)[attempts["valid"]]
    shape = (*map(len, names), len(metrics), int(blocks.max()))
    if prod(shape) > max(MOST_CELLS, MOST_CELLS_OF_A_ROW * len(runs) * len(metrics)):
        raise EyelevelError(
            f"{campaign.folder / RUNS} has {len(runs):,} runs that count, of {len(sites):,} sites on {len(networks):,} "
            f"networks over {len(protocols):,} protocols, which have hardly anything in common; analyse parts of it"
        )
    values = np.full(shape, np.nan)
    places = [pd.Index(along).get_indexer(runs[column]) for along, column in zip(names, orders, strict=True)]
    values[*places, :, blocks - 1] = runs[list(metrics)].to_numpy(dtype=float)
    values[~np.isfinite(values)] = np.nan
    for row in missing_times(campaign, metrics).itertuples():
        if row.is_left_out:
            place = networks.index(row.network), slice(None), protocols.index(row.protocol), metrics.index(row.metric)
            values[place] = np.nan
    tried = attempts[~is_added].groupby(["network", "site"])["block"].nunique()
    return Samples(values, networks, sites, protocols, metrics, _rounds(campaign, networks, tried))


def missing_times(campaign: CampaignTable, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Where a protocol's loads count, but many of them (MANY_MISSING) lack a time: it is missing, or 0 or less, which
    has no logarithm and is no time of a page.

    Columns: network, protocol, metric (of `campaign.metrics`, limited to `metrics` if given), loads (that count, of
    sites where any load of this network has the metric), missing (how many of these lack it), is_left_out (they are too
    many for a verdict).
    """
    runs, key = campaign.valid, ["network", "protocol"]
    tables = [pd.DataFrame(columns=MISSING_COLUMNS)]
    for metric in (name for name in campaign.metrics if metrics is None or name in metrics):
        is_missing, has_value = np.isnan(logarithms(runs[metric].to_numpy(dtype=float))), runs[metric].notna()
        if not is_missing.any() or not has_value.any():
            continue
        is_measured = has_value.groupby([runs["network"], runs["site"]]).transform("any")
        lacks = pd.Series(is_missing, runs.index)[is_measured]
        numbers = lacks.groupby([runs[name] for name in key]).agg(loads="size", missing="sum")
        many = numbers[(numbers["missing"] > 0) & (numbers["missing"] >= MANY_MISSING * numbers["loads"])]
        if len(many):
            is_left_out = many["missing"] >= TOO_MANY_MISSING * many["loads"]
            tables.append(many.assign(metric=metric, is_left_out=is_left_out).reset_index())
    return pd.concat(tables[1:] or tables, ignore_index=True)[MISSING_COLUMNS]


def _rounds(campaign: CampaignTable, networks: Iterable[str], tried: "pd.Series[int]") -> tuple[int, ...]:
    """The `rounds` of the samples of `campaign`; `tried`: the number of blocks by network and site."""
    rounds, given_up = [], campaign.given_up
    for network in networks:
        numbers = tried[tried.index.get_level_values("network") == network].droplevel("network")
        going_on = [number for site, number in numbers.items() if (site, network) not in given_up]
        rounds.append(int(min(going_on or numbers, default=0)))
    return tuple(rounds)


def blocks_of(runs: pd.DataFrame) -> "pd.Series[int]":
    """The number of the block of each of `runs` (one row per attempt). Runs of one network and site with the same block
    were measured side by side.

    A run whose block is unknown (0) gets a block of its own. If no block is known at all, runs with the same number
    form a block. Such a block ends when two consecutive starts are more than SIDE_BY_SIDE apart; the later runs form
    another block. So a late second attempt at a run may be in another block than the first attempt.
    """
    block = runs.get("block", pd.Series(0, runs.index))
    if (block > 0).any():
        # The attempts at one run stay in one block.
        of_run = block.max() + 1 + runs.groupby(["network", "site", "protocol", "run"]).ngroup()
        return block.where(block > 0, of_run).astype(int)
    of_number = ["network", "site", "run"]
    table = runs[of_number].assign(start=starts_of(runs)).reset_index(drop=True)
    is_later = table.sort_values("start", kind="stable").groupby(of_number)["start"].diff() > SIDE_BY_SIDE
    part = is_later.groupby([table[name] for name in of_number]).cumsum()
    # The later parts of split blocks come after the first parts of all blocks, as an added protocol's blocks do.
    numbers = table.assign(part=part).groupby(["part", "run"]).ngroup() + 1
    return pd.Series(numbers.to_numpy(), runs.index)


def starts_of(runs: pd.DataFrame) -> "pd.Series[pd.Timestamp]":
    """When each attempt began; NaT if that is unknown."""
    texts = runs["started_at"] if "started_at" in runs else pd.Series("", runs.index)
    return pd.to_datetime(texts, utc=True, errors="coerce", format="ISO8601")


def sittings_of(runs: pd.DataFrame) -> "pd.Series[int]":
    """The number of the sitting (1, 2, …) in which each attempt was made; 0 if its start is unknown.

    A sitting is one uninterrupted stretch of measuring. A new one begins with each start of the campaign, which is
    recorded, and after a pause of more than SIDE_BY_SIDE. Earlier versions did not record starts; there, a new one
    begins when a campaign is resumed from its package (which numbers the machines of earlier runs).
    """
    started = starts_of(runs).dropna().sort_values(kind="stable")
    seconds = runs["seconds"][started.index].fillna(0) if "seconds" in runs else pd.Series(0.0, started.index)
    # Lanes overlap, so the end is that of the longest run so far.
    pauses = started - (started + pd.to_timedelta(seconds, unit="s")).cummax().shift()
    machines = runs[MACHINE][started.index].astype(str) if MACHINE in runs else pd.Series("", started.index)
    recorded = runs[SITTING][started.index].astype(str) if SITTING in runs else pd.Series("", started.index)
    start = recorded + machines.str.partition(EARLIER_MACHINE, expand=False).str[2]
    is_first = (pauses > SIDE_BY_SIDE) | (start.ne(start.shift()) & start.shift().notna())
    return (is_first.cumsum() + 1).reindex(runs.index, fill_value=0)


def names_in_order(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that are in `order`, in that order, followed by the others in alphabetical order."""
    names = set(names)
    return tuple(name for name in order if name in names) + tuple(sorted(names.difference(order)))
