"""Campaigns with known truth, as folders for `eyelevel report`, and what the first screen must say about each.

They are made from the documented form of a campaign's files (docs/runs-csv.md, dataset/table.py) and share no code with
`eyelevel.simulate`, so that both do not have the same errors. A campaign is a table of attempts, in the order in which
they were made:

    segments of the campaign  →  blocks, in random order  →  the protocols of a block  →  attempts at each run

    PYTHONPATH=tests python -m support.known_campaigns late results/late

docs/contributors/known-campaigns.md shows the first screens of their reports (`support.first_screens`).
"""

import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.hypotheses import DECLARED
from analysis.runs import plain_texts
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from browsers.browsertime.configuration import QUIET_MS
from tuning import networks, protocols

Floats = NDArray[np.float64]

# The kinds of warnings that a first screen must contain.
EMPTY_SETTING = "a setting has no valid run"
NOT_TOGETHER = "runs that are compared were not measured together"
PLACE = "times depend on the place in the block"
FIXED_ORDER = "the protocols of a block always have the same order"
DRIFT = "times drift over the campaign"
LOSSES = "a protocol loses more runs than the others"
DISAGREEMENT = "sites disagree on the sign"
ONE_SITE = "one site lies far from the others"
ADDED = "something was added after the first run"
PROCESSOR = "loads waited for a processor"
IMPOSSIBLE = "loads waited for longer than is possible"
NO_TIME = "loads that count have no time"
CARRY_OVER = "times depend on the load before"
WANDER = "a ratio wanders while it is measured"
KINDS = (
    *(EMPTY_SETTING, NOT_TOGETHER, PLACE, FIXED_ORDER, DRIFT, LOSSES, DISAGREEMENT, ONE_SITE, ADDED, PROCESSOR),
    *(IMPOSSIBLE, NO_TIME, CARRY_OVER, WANDER),
)
# Facts that may appear among the warnings of a first screen, and that are no fault of a campaign.
NO_COLUMN = "a metric is missing"
FEW = "there are few sites or runs"
UNUSUAL = "some samples are unusual"

NO_CLAIM = frozenset({NOT_DECIDED, EQUIVALENT})
ANYTHING = frozenset({FASTER, SLOWER, EQUIVALENT, NOT_DECIDED})

# The Speed Index of a typical page on each network, and the other metrics as multiples of it.
SPEED_INDEX_MS = {"dsl": 850.0, "lte": 1400.0, "da2gc": 15000.0, "mss": 13000.0}
MULTIPLES = {"fvc": 0.55, "lvc": 2.1, "vc85": 1.3, "si": 1.0, "plt": 1.6}
# Shares of the page load time: how long each part of a load runs on a processor, and how long the load waits for one.
WORK = {
    "browser": 0.1,
    "renderer": 0.25,
    "network": 0.1,
    "gpu": 0.02,
    "servers": 0.02,
    "emulator": 0.02,
    "film": 0.2,
}
WAIT = 0.15
COLUMNS = (
    *("site", "network", "protocol", "run", "attempt", "valid", "reason", *MULTIPLES),
    *("requests", "served", "missed", "exchanges", "unrecorded", "started_at", "seconds", "folder"),
    *("block", "machine", "canary_cpu_ms", "canary_page_ms", "quiet_ms", "lane", "concurrent_loads"),
    *("sitting", "browser"),
    "next_prepared_ms",
    *("h3_request_share", "h3_byte_share", "cross_traffic_mbps", "processor_share"),
    *("film_thinned_out", "film_drawn_over"),
    *("device_share", "device_index", "device_index_after"),
    *(f"{part}_cpu_ms" for part in WORK),
    "processor_wait_ms",
)
FRAME_MS = 100 / 3
# Standard deviations of ln(time): between sites, blocks, runs, and metrics of one run.
SITE_SD, BLOCK_SD, RUN_SD, METRIC_SD = 0.5, 0.03, 0.05, 0.015
WORK_SD, WAIT_SD = 0.1, 0.3
# Settings with another server: each resembles a setting of the usual server.
OTHER_SERVERS = {"other-h2": ("tcp+", "other"), "other-h3": ("quic", "other")}
# The factor by which all pages take longer in other browsers.
BROWSER_LEVELS = {"chromium": 1.0, "firefox": 1.25}
WANDER_LOADS = 80
BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
WEEK_S = 7 * 24 * 3600.0
# The time of an attempt besides the load itself, and the time after which a load is cut off.
OVERHEAD_S, LIMIT_S = 8.0, 120.0
REPEATS = 2


@dataclass(frozen=True)
class FirstScreen:
    """The required content of a report's first screen.

    `verdicts`: network → the allowed words for each contrast of the family; "" applies to all other networks.
    `warnings` must be present, `silent` must be absent. If `silent` is all KINDS, only `facts` may be present. `named`,
    `spared`: what the warnings must name, and must not name.
    """

    verdicts: Mapping[str, frozenset[str]]
    warnings: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset({NO_COLUMN})
    named: frozenset[str] = frozenset()
    spared: frozenset[str] = frozenset()

    def words(self, network: str) -> frozenset[str]:
        """The allowed words for the contrasts on `network`."""
        return self.verdicts.get(network, self.verdicts.get("", ANYTHING))

    @property
    def is_quiet(self) -> bool:
        """Whether the screen has no warnings except facts."""
        return self.silent == set(KINDS)


@dataclass(frozen=True)
class KnownCampaign:
    """A campaign, its `truth` in a sentence, and what its first screen must say.

    `gains`: network → the differences of QUIC's times from those of all TCPs, as shares, one for each site, repeated if
    there are more sites; "" applies to all other networks. `is_heavy`: one run in ten takes up to several times as
    long. `segments`: which protocols are measured together, in separate blocks, one segment after the other. `pause_s`
    is the pause after the first segment, and everything later takes `slower_later` longer. `additions`: protocols and
    networks that were added after the first segment, which contains none of them. `place_growth`: by which share each
    place in a block is slower than the place before; `drift`: the same for the last run compared with the first.
    `waits`: protocol → the share of the page load time for which its loads wait for a processor, in addition to WAIT.
    `sleeps`: protocol → the share of its loads that seem to wait for a minute more. `no_picture`: protocol → the share
    of its loads whose Speed Index is 0. `never_ends`: protocol → share of loads that are cut off. `unclean`: share of
    attempts that a gate rejects and that are repeated. `broken`: (site, protocol) whose loads all fail. `blocks`:
    network → the number of blocks of each site, for campaigns that may stop early. `browsers`: all of a block's
    protocols are loaded in each browser. `programs`: server or browser → the factor by which QUIC takes longer with it,
    in addition to `gains`. `carried`: protocol → the share by which the load after it takes longer. `wander`: the
    scatter (ln) of QUIC's times between states of WANDER_LOADS loads each.
    """

    truth: str
    screen: FirstScreen
    sites: int = 12
    networks: tuple[str, ...] = ("dsl", "lte")
    protocols: tuple[str, ...] = ("tcp", "tcp+", "quic")
    runs: int = 31
    gains: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"": (0.0,)})
    is_heavy: bool = False
    segments: tuple[tuple[str, ...], ...] = ()
    additions: tuple[str, ...] = ()
    pause_s: float = 0.0
    slower_later: float = 0.0
    is_in_fixed_order: bool = False
    place_growth: float = 0.0
    drift: float = 0.0
    waits: Mapping[str, float] = field(default_factory=dict)
    sleeps: Mapping[str, float] = field(default_factory=dict)
    no_picture: Mapping[str, float] = field(default_factory=dict)
    never_ends: Mapping[str, float] = field(default_factory=dict)
    unclean: float = 0.0
    broken: tuple[str, str] | None = None
    blocks: Mapping[str, int] = field(default_factory=dict)
    browsers: tuple[str, ...] = ("chromium",)
    programs: Mapping[str, float] = field(default_factory=dict)
    carried: Mapping[str, float] = field(default_factory=dict)
    wander: float = 0.0

    @property
    def site_names(self) -> tuple[str, ...]:
        """The names of the sites."""
        return tuple(f"known{number:02}.example" for number in range(1, self.sites + 1))

    @property
    def parts(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The networks of each segment, and the protocols that are measured together in it."""
        if not self.additions:
            return [(self.networks, together) for together in self.segments or (self.protocols,)]
        new_networks, new_protocols = self.additions_of(self.networks), self.additions_of(self.protocols)
        networks = tuple(name for name in self.networks if name not in new_networks)
        protocols = tuple(name for name in self.protocols if name not in new_protocols)
        return [(networks, protocols), (networks, new_protocols), (new_networks, self.protocols)]

    def additions_of(self, names: Sequence[str]) -> tuple[str, ...]:
        """The `names` that were added to the campaign after its first run."""
        return tuple(name for name in names if name in self.additions)


CAMPAIGNS: dict[str, KnownCampaign] = {
    "null": KnownCampaign(
        "No protocol differs from any other, on any site.",
        FirstScreen({"": NO_CLAIM}, silent=frozenset(KINDS)),
    ),
    "tenth": KnownCampaign(
        "QUIC takes 10 % less on every site and on every network.",
        FirstScreen({"": frozenset({FASTER})}, silent=frozenset(KINDS)),
        gains={"": (-0.1,)},
    ),
    "signs": KnownCampaign(
        "QUIC is 9.1 % faster on every other site and 10 % slower on the rest, so its mean log ratio is 0.",
        FirstScreen(
            {"": NO_CLAIM}, warnings=frozenset({DISAGREEMENT}), silent=frozenset({NOT_TOGETHER, DRIFT, LOSSES})
        ),
        gains={"": (1 / 1.1 - 1, 0.1)},
    ),
    "heavy": KnownCampaign(
        "QUIC takes 10 % less on every site, and one run in ten of each protocol takes up to several times as long.",
        FirstScreen({"": frozenset({FASTER})}, silent=frozenset({NOT_TOGETHER, DRIFT, LOSSES, DISAGREEMENT})),
        gains={"": (-0.1,)},
        is_heavy=True,
    ),
    "heavy-null": KnownCampaign(
        "No protocol differs, and one run in ten of each takes up to several times as long.",
        FirstScreen({"": NO_CLAIM}, silent=frozenset(KINDS), facts=frozenset({NO_COLUMN, UNUSUAL})),
        is_heavy=True,
    ),
    "outlier": KnownCampaign(
        "QUIC takes 36 % less on eleven sites and 120 % more on the twelfth.",
        FirstScreen(
            {"": frozenset({FASTER})},
            warnings=frozenset({ONE_SITE}),
            silent=frozenset({NOT_TOGETHER, DRIFT, LOSSES}),
            named=frozenset({"known12.example"}),
            spared=frozenset({"known01.example"}),
        ),
        gains={"": (*(-0.36,) * 11, 1.2)},
    ),
    "broken": KnownCampaign(
        "QUIC takes 10 % less on every site, but the third site never loads over QUIC.",
        FirstScreen(
            {"": frozenset({FASTER})},
            warnings=frozenset({EMPTY_SETTING}),
            silent=frozenset({PLACE, DRIFT, ONE_SITE, DISAGREEMENT}),
            named=frozenset({"known03.example", "quic"}),
            spared=frozenset({"known04.example"}),
        ),
        gains={"": (-0.1,)},
        broken=("known03.example", "quic"),
    ),
    "place": KnownCampaign(
        "No protocol differs; each place in a block takes 2 % longer than the one before, and their order is random.",
        FirstScreen({"": NO_CLAIM}, warnings=frozenset({PLACE}), silent=frozenset({NOT_TOGETHER, FIXED_ORDER, LOSSES})),
        place_growth=0.02,
    ),
    "order": KnownCampaign(
        "No protocol differs; each place in a block takes 2 % longer than the one before, and QUIC is always the last.",
        # A fixed order cannot be distinguished from an effect: any verdict is allowed, but never without the warning.
        FirstScreen({"": ANYTHING}, warnings=frozenset({FIXED_ORDER}), silent=frozenset({DRIFT, LOSSES})),
        place_growth=0.02,
        is_in_fixed_order=True,
    ),
    "drift": KnownCampaign(
        "No protocol differs; everything takes 30 % longer at the end of the campaign than at its beginning.",
        FirstScreen({"": NO_CLAIM}, warnings=frozenset({DRIFT}), silent=frozenset({NOT_TOGETHER, PLACE, LOSSES})),
        drift=0.3,
    ),
    "carry-over": KnownCampaign(
        "No protocol differs; every load that follows one over TCP+ takes 8 % longer.",
        # Half of the effect looks like a difference: any verdict is allowed, but never without the warning.
        FirstScreen(
            {"": ANYTHING},
            warnings=frozenset({CARRY_OVER}),
            silent=frozenset(KINDS) - {CARRY_OVER},
            named=frozenset({"tcp+", "quic"}),
        ),
        protocols=("tcp+", "quic"),
        runs=10,
        carried={"tcp+": 0.08},
    ),
    "wander": KnownCampaign(
        "No protocol differs on average; QUIC's times change by 6 % (standard deviation) every 80 loads.",
        FirstScreen(
            {"": ANYTHING},
            warnings=frozenset({WANDER}),
            silent=frozenset({NOT_TOGETHER, PLACE, FIXED_ORDER, LOSSES, CARRY_OVER}),
            named=frozenset({"tcp+", "quic"}),
        ),
        runs=10,
        wander=0.06,
    ),
    "apart": KnownCampaign(
        "No protocol differs; they were measured one after the other, while everything became 30 % slower.",
        FirstScreen({"": frozenset({NOT_DECIDED})}, warnings=frozenset({NOT_TOGETHER}), silent=frozenset({LOSSES})),
        segments=(("tcp",), ("tcp+",), ("quic",)),
        drift=0.3,
    ),
    "late": KnownCampaign(
        "No protocol differs; QUIC was measured a week later in blocks of its own, when the machine was 8 % slower.",
        FirstScreen(
            {"": frozenset({NOT_DECIDED})},
            warnings=frozenset({NOT_TOGETHER}),
            silent=frozenset({LOSSES}),
            named=frozenset({"quic"}),
        ),
        segments=(("tcp", "tcp+"), ("quic",)),
        pause_s=WEEK_S,
        slower_later=0.08,
    ),
    "late-stock": KnownCampaign(
        "No protocol differs; stock TCP was measured a week later in blocks of its own, when the machine was 8 % "
        "slower.",
        FirstScreen(
            {"": NO_CLAIM},
            warnings=frozenset({NOT_TOGETHER}),
            silent=frozenset({EMPTY_SETTING, FIXED_ORDER, LOSSES, DISAGREEMENT, ONE_SITE, ADDED}),
            named=frozenset({"tcp"}),
        ),
        segments=(("tcp+", "quic"), ("tcp",)),
        pause_s=WEEK_S,
        slower_later=0.08,
    ),
    "added": KnownCampaign(
        "QUIC takes 10 % less on every site; QUIC+BBR, which is no slower than QUIC, and LTE were added a week after "
        "the first run, when the machine was 8 % slower.",
        FirstScreen(
            {"": frozenset({FASTER})},
            warnings=frozenset({ADDED}),
            silent=frozenset({EMPTY_SETTING, PLACE, FIXED_ORDER, DRIFT, LOSSES, DISAGREEMENT, ONE_SITE}),
            named=frozenset({"quic+bbr", "lte"}),
            spared=frozenset({"quic", "dsl"}),
        ),
        protocols=("tcp", "tcp+", "quic", "quic+bbr"),
        gains={"": (-0.1,)},
        additions=("quic+bbr", "lte"),
        pause_s=WEEK_S,
        slower_later=0.08,
    ),
    "processor": KnownCampaign(
        "QUIC takes 10 % longer on every site, since its loads wait for a processor for 25 % of their time more than "
        "those of TCP.",
        FirstScreen(
            {"": frozenset({SLOWER})},
            warnings=frozenset({PROCESSOR}),
            silent=frozenset(KINDS) - {PROCESSOR},
            named=frozenset({"quic"}),
            spared=frozenset({"tcp"}),
        ),
        gains={"": (0.1,)},
        waits={"quic": 0.25},
    ),
    "sleeps": KnownCampaign(
        "QUIC takes 10 % longer on every site, since its loads wait for a processor for 25 % of their time more than "
        "those of TCP; one QUIC load in forty seems to wait for a minute more, which it cannot have done.",
        FirstScreen(
            {"": frozenset({SLOWER})},
            warnings=frozenset({PROCESSOR, IMPOSSIBLE}),
            silent=frozenset(KINDS) - {PROCESSOR, IMPOSSIBLE},
            named=frozenset({"quic"}),
            spared=frozenset({"tcp"}),
        ),
        sites=11,
        runs=3,
        gains={"": (0.1,)},
        waits={"quic": 0.25},
        sleeps={"quic": 1 / 40},
    ),
    "no-picture": KnownCampaign(
        "No protocol differs, but one QUIC load in four has a Speed Index of 0.",
        FirstScreen(
            {"": NO_CLAIM},
            warnings=frozenset({NO_TIME}),
            silent=frozenset(KINDS) - {NO_TIME},
            named=frozenset({"quic"}),
            spared=frozenset({"tcp", "tcp+"}),
        ),
        sites=8,
        runs=15,
        no_picture={"quic": 0.25},
    ),
    "losses": KnownCampaign(
        "One QUIC load in eight never ends; those that end take 5 % less.",
        FirstScreen(
            {"": frozenset({FASTER})},
            warnings=frozenset({LOSSES}),
            silent=frozenset({PLACE, DRIFT, DISAGREEMENT, ONE_SITE}),
            named=frozenset({"quic"}),
            spared=frozenset({"tcp", "tcp+"}),
        ),
        gains={"": (-0.05,)},
        never_ends={"quic": 1 / 8},
        unclean=0.01,
    ),
    "early": KnownCampaign(
        "With RUNS=auto, QUIC takes 10 % less on DSL, which ended after 5 blocks, 3 % less on LTE, after 20, and the "
        "same on DA2GC, which had all 31.",
        FirstScreen(
            {"dsl": frozenset({FASTER}), "lte": frozenset({FASTER}), "da2gc": NO_CLAIM},
            silent=frozenset({EMPTY_SETTING, NOT_TOGETHER, LOSSES, DISAGREEMENT}),
        ),
        networks=("dsl", "lte", "da2gc"),
        gains={"dsl": (-0.1,), "lte": (-0.03,), "da2gc": (0.0,)},
        blocks={"dsl": 5, "lte": 20, "da2gc": 31},
    ),
    "programs": KnownCampaign(
        "QUIC takes 10 % less on every site in Chromium, with the usual server and with another, and 2 % more in "
        "Firefox.",
        FirstScreen(
            {"dsl": frozenset({FASTER}), "lte": frozenset({FASTER}), "": ANYTHING - {FASTER}},
            silent=frozenset(KINDS),
            facts=frozenset({NO_COLUMN, UNUSUAL}),
        ),
        protocols=("tcp+", "quic", "other-h2", "other-h3"),
        gains={"": (-0.1,)},
        browsers=("chromium", "firefox"),
        programs={"firefox": 1.02 / 0.9},
    ),
    "programs-alike": KnownCampaign(
        "QUIC takes 10 % less on every site with each of two servers and in each of two browsers.",
        FirstScreen({"": frozenset({FASTER})}, silent=frozenset(KINDS), facts=frozenset({NO_COLUMN, UNUSUAL})),
        protocols=("tcp+", "quic", "other-h2", "other-h3"),
        gains={"": (-0.1,)},
        browsers=("chromium", "firefox"),
    ),
    "full": KnownCampaign(
        "The paper's size, 23,560 runs: both QUICs take 10 % less on every site and on every network.",
        # With this many samples, some are skewed by chance.
        FirstScreen({"": frozenset({FASTER})}, silent=frozenset(KINDS), facts=frozenset({NO_COLUMN, UNUSUAL})),
        sites=38,
        networks=("dsl", "lte", "da2gc", "mss"),
        protocols=("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr"),
        gains={"": (-0.1,)},
    ),
}


# Settings files are read once, not for each campaign.
all_networks, all_protocols = cache(networks.load), cache(protocols.load)


def attempts(campaign: KnownCampaign, draw: np.random.Generator) -> pd.DataFrame:
    """The rows of `runs.csv` of `campaign`, in the order in which the attempts ended."""
    table = pd.concat(_segments(campaign, draw), ignore_index=True)
    table = _repeated(campaign, table, draw)
    moment = np.arange(len(table)) / max(1, len(table) - 1)
    machine = (1 + campaign.drift * moment) * (1 + campaign.slower_later * (table["segment"].to_numpy() > 0))
    of_block, block = np.unique(table["block"], return_inverse=True)
    machine *= np.exp(draw.normal(0, BLOCK_SD, len(of_block)))[block]
    _add_times(campaign, table, machine, draw)
    seconds = OVERHEAD_S + np.where(table["ends"], table["plt"].fillna(0) / 1000, LIMIT_S)
    begin = np.cumsum(seconds) - seconds + campaign.pause_s * (table["segment"] > 0)
    endings = table["browser"].map({name: f"-{name}" for name in campaign.browsers} | {"chromium": ""})
    folder = [
        f"runs/{row.site}/{row.network}/{row.protocol}/{row.run}-{row.attempt}{ending}"
        for row, ending in zip(table.itertuples(), endings, strict=True)
    ]
    canary = np.round(50 * machine + draw.normal(0, 0.5, len(of_block))[block], 2)
    _add_processor(campaign, table, draw)
    return table.assign(
        valid=np.where(table["reason"] == "", "true", "false"),
        requests=60,
        served=60,
        missed=0,
        exchanges=60,
        unrecorded=0,
        started_at=pd.DatetimeIndex(BEGIN + pd.to_timedelta(begin, unit="s")).strftime("%Y-%m-%dT%H:%M:%S+0000"),
        seconds=np.round(seconds, 3),
        folder=folder,
        machine="bench",
        canary_cpu_ms=canary,
        canary_page_ms=np.round(12 * canary, 1),
        quiet_ms=table["network"].map({name: of.quiet_ms or QUIET_MS for name, of in all_networks().items()}),
        lane="",
        next_prepared_ms="",
        cross_traffic_mbps="",
        concurrent_loads="1",
        sitting=table["segment"] + 1,
        h3_request_share="",
        h3_byte_share="",
        film_thinned_out="",
        film_drawn_over="",
        processor_share="",
        device_share="",
        device_index="",
        device_index_after="",
    )[[*COLUMNS]]


def _segments(campaign: KnownCampaign, draw: np.random.Generator) -> list[pd.DataFrame]:
    """The runs in the planned order, a table for each segment of `campaign`.

    Columns: site, network, protocol, run, browser, block, place and segment.
    """
    tables, first = [], 1
    for number, (names, together) in enumerate(campaign.parts):
        cells = pd.MultiIndex.from_product([names, campaign.site_names, range(1, campaign.runs + 1)])
        blocks = pd.DataFrame(index=cells.set_names(["network", "site", "run"])).reset_index()
        blocks = blocks[blocks["run"] <= blocks["network"].map(campaign.blocks).fillna(campaign.runs)]
        # The first run of each setting comes before the second of any; otherwise the order is random.
        shuffled = blocks.iloc[np.lexsort((draw.random(len(blocks)), blocks["run"]))]
        size = len(together) * len(campaign.browsers)
        order = np.argsort(draw.random((len(blocks), size)), axis=1)
        if campaign.is_in_fixed_order:
            order = np.broadcast_to(np.arange(size), order.shape)
        table = shuffled.loc[shuffled.index.repeat(size)].assign(
            protocol=np.tile(together, len(campaign.browsers))[order].ravel(),
            browser=np.repeat(campaign.browsers, len(together))[order].ravel(),
            block=np.repeat(first + np.arange(len(blocks)), size),
            place=np.tile(np.arange(size), len(blocks)),
            segment=number,
        )
        tables.append(table)
        first += len(blocks)
    return tables


def _repeated(campaign: KnownCampaign, table: pd.DataFrame, draw: np.random.Generator) -> pd.DataFrame:
    """`table` with a row for each attempt, and the columns attempt, reason, and ends (whether the load ended)."""
    lost = draw.random(len(table)) < table["protocol"].map(campaign.never_ends).fillna(0)
    broken = (table["site"] + " " + table["protocol"]) == " ".join(campaign.broken or ())
    unclean = (draw.random(len(table)) < campaign.unclean) & ~lost & ~broken
    # A load that was cut off is not repeated; one that failed is repeated, until it is given up.
    number = np.where(broken, 1 + REPEATS, np.where(unclean, 2, 1))
    rows = np.repeat(np.arange(len(table)), number)
    attempt = np.arange(len(rows)) - np.repeat(np.cumsum(number) - number, number) + 1
    reasons = np.select(
        [lost.to_numpy()[rows], broken.to_numpy()[rows], unclean.to_numpy()[rows] & (attempt == 1)],
        ["over_time: the page took longer than 120 s", "load_failed: net::ERR_QUIC_PROTOCOL_ERROR", "film_unclean"],
        "",
    )
    repeated = table.iloc[rows].reset_index(drop=True)
    return repeated.assign(attempt=attempt, reason=reasons, ends=~lost.to_numpy()[rows])


def _add_times(campaign: KnownCampaign, table: pd.DataFrame, machine: Floats, draw: np.random.Generator) -> None:
    """Add the metrics to `table`; at each attempt, all times were `machine` times as long."""
    size = len(table)
    page = dict(zip(campaign.site_names, draw.normal(0, SITE_SD, campaign.sites), strict=True))
    level = np.log(table["network"].map(SPEED_INDEX_MS)) + table["site"].map(page) + np.log(machine)
    gains = {
        (network, site): np.log1p(shares[place % len(shares)])
        for network in campaign.networks
        for shares in [campaign.gains.get(network, campaign.gains.get("", (0.0,)))]
        for place, site in enumerate(campaign.site_names)
    }
    effect = np.array([gains[cell] for cell in zip(table["network"], table["site"], strict=True)])
    settings = {name: protocol_settings(name) for name in campaign.protocols}
    is_quic = table["protocol"].map({name: one["transport"] == "quic" for name, one in settings.items()})
    level += np.where(is_quic, effect, 0)
    level += np.log(table["browser"].map(BROWSER_LEVELS))
    of_server = table["protocol"].map({name: campaign.programs.get(one["server"], 1) for name, one in settings.items()})
    of_browser = table["browser"].map({name: campaign.programs.get(name, 1) for name in campaign.browsers})
    level += np.where(is_quic, np.log(of_server) + np.log(of_browser), 0)
    level += np.log1p(campaign.place_growth) * table["place"] + draw.normal(0, RUN_SD, size)
    if campaign.is_heavy:
        # The positive half of Student's distribution with 2.5 degrees of freedom: no third moment.
        level += np.where(draw.random(size) < 0.1, np.log1p(np.abs(draw.standard_t(2.5, size))), 0)
    level += np.log1p(table["protocol"].shift().map(campaign.carried).fillna(0).to_numpy(dtype=float))
    if campaign.wander:
        states = draw.normal(0, campaign.wander, size)[np.arange(size) // WANDER_LOADS]
        level += np.where(is_quic, states, 0)
    has_picture = np.ones(size, dtype=bool)
    if campaign.no_picture:
        has_picture = draw.random(size) >= table["protocol"].map(campaign.no_picture).fillna(0)
    for metric, multiple in MULTIPLES.items():
        times = multiple * np.exp(level + draw.normal(0, METRIC_SD, size))
        if metric in ("fvc", "lvc", "vc85"):
            times = np.round(np.maximum(1, np.round(times / FRAME_MS)) * FRAME_MS)
        if metric == "si":
            times = times.where(has_picture, 0.0)
        table[metric] = times.round(0 if metric == "plt" else 1).where(table["reason"] == "")


def _add_processor(campaign: KnownCampaign, table: pd.DataFrame, draw: np.random.Generator) -> None:
    """Add to `table` how long the parts of each load run on a processor, and wait for one."""
    for part, work in WORK.items():
        table[f"{part}_cpu_ms"] = (work * table["plt"] * np.exp(draw.normal(0, WORK_SD, len(table)))).round(1)
    wait = WAIT * np.exp(draw.normal(0, WAIT_SD, len(table))) + table["protocol"].map(campaign.waits).fillna(0)
    table["processor_wait_ms"] = (wait * table["plt"]).round(1)
    if campaign.sleeps:
        sleeps = draw.random(len(table)) < table["protocol"].map(campaign.sleeps).fillna(0)
        table["processor_wait_ms"] += np.where(sleeps, 60_000.0, 0.0)


def protocol_settings(name: str) -> dict[str, Any]:
    """The entry of `campaign.json` for a protocol setting."""
    like, server = OTHER_SERVERS.get(name, (name, ""))
    known = all_protocols()[like]
    return asdict(replace(known, name=name, server=server or known.server))


def document(campaign: KnownCampaign) -> dict[str, object]:
    """The `campaign.json` of `campaign`."""
    first, *further = campaign.browsers
    return {
        "settings": {
            "seed": 14,
            "runs": campaign.runs,
            "auto": bool(campaign.blocks),
            "repeats": REPEATS,
            "repeatable": False,
            "filmed": True,
            "limit_s": LIMIT_S,
            "browser": {"name": first},
            **({"further_browsers": {name: {} for name in further}} if further else {}),
            "sites": {
                name: {"url": f"https://{name}/", "sha256": sha256(name.encode()).hexdigest()}
                for name in campaign.site_names
            },
            "networks": {name: asdict(all_networks()[name]) for name in campaign.networks},
            "protocols": {name: protocol_settings(name) for name in campaign.protocols},
        },
        "versions": {"chromium": "0"},
        "machine": {"host": "bench", "cpus": 4},
        "begun_at": BEGIN.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "known": {"truth": campaign.truth},
    }


def declaration(campaign: KnownCampaign, digest: str) -> dict[str, object]:
    """The entry for its hypotheses in the `campaign.json` of `campaign`; `digest` is their SHA-256."""
    later = (BEGIN + timedelta(seconds=campaign.pause_s)).isoformat()
    groups = {"networks": campaign.networks, "protocols": campaign.protocols}
    additions = {
        group: dict.fromkeys(new, later) for group, names in groups.items() if (new := campaign.additions_of(names))
    }
    return {"sha256": digest, "declared_at": BEGIN.isoformat(), **additions, "runs": [campaign.runs]}


@plain_texts()
def write(folder: Path, name: str, seed: int = 14) -> KnownCampaign:
    """Write the campaign `name` of CAMPAIGNS as `folder`, and return it; another `seed` gives another campaign with the
    same truth."""
    campaign = CAMPAIGNS[name]
    table = attempts(campaign, np.random.default_rng([seed, zlib.crc32(name.encode())]))
    folder.mkdir(parents=True, exist_ok=True)
    hypotheses = DECLARED.read_bytes()
    (folder / "hypotheses.toml").write_bytes(hypotheses)
    described = document(campaign) | {"hypotheses": declaration(campaign, sha256(hypotheses).hexdigest())}
    (folder / "campaign.json").write_text(json.dumps(described, indent=1) + "\n")
    table.to_csv(folder / "runs.csv", index=False, lineterminator="\n")
    return campaign


if __name__ == "__main__":
    print(write(Path(sys.argv[2]), sys.argv[1]).truth)
