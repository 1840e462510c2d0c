"""A campaign: every site over every network and protocol, many times, in an order drawn from a seed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from base.clock import now_iso
from base.ownership import give_to_caller
from browsers.browsertime.configuration import QUIET_MS
from measure.campaign.attempt import Setting
from measure.campaign.block import Block, ReplayFailures, is_left, keep_films, measure_block
from measure.campaign.forecast import forecast, require_space
from measure.campaign.norms import Look, judged
from measure.campaign.plan import Block as PlannedBlock
from measure.campaign.plan import Run, plan, seed_of
from measure.campaign.progress import Watch
from measure.campaign.results import Results, Row, opened
from measure.campaign.slot import Slot, canaries_of, machine_name
from measure.campaign.verdicts import Verdict
from measure.completeness import digest
from measure.host import affinity
from measure.host.machine import machine, versions
from measure.run import browser
from measure.run.films import ALL_FILMS, FilmPolicy, read_last_frame
from record.site import Site
from tuning import protocols
from tuning.networks import Network

# A stop may have come between the rows of the last blocks and their comparison with others.
UNSETTLED_ROWS = 200

# How often an invalid run is repeated before it is given up.
REPEATS = 2


@dataclass(frozen=True)
class Campaign:
    """What is to be measured, and where the results go.

    `repeatable`: whether pages are made to ask for the same on every load (`replay.repeatable`).
    `films`: which films are kept. `auto`: whether `runs` is only how many there are at most.
    `repeats`: how often an invalid run is repeated before it is given up.
    `filmed`: whether loads are; without, a run has no visual metrics, and its film is not asked for.
    `quiet_ms`, `limit_s`: for how long a page must ask for nothing until it has finished, and how long (s) a load may
    take, if not what suits its size and network.
    `canary_s`: how old a canary may be when a block begins.
    `without`: sites and networks whose runs are not planned. `study`: what the study that it is of tells of itself.
    """

    folder: Path
    sites: Mapping[str, Site]
    networks: Mapping[str, Network]
    protocols: Mapping[str, protocols.Protocol]
    runs: int
    seed: int
    repeatable: bool = True
    films: FilmPolicy = ALL_FILMS
    repeats: int = REPEATS
    auto: bool = False
    filmed: bool = True
    quiet_ms: int = QUIET_MS
    limit_s: float | None = None
    canary_s: float = 0.0
    without: frozenset[tuple[str, str]] = frozenset()
    study: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """All of it that results depend on, as `campaign.json` keeps it."""
        return {
            "settings": {
                "seed": self.seed,
                "runs": self.runs,
                "auto": self.auto,
                "repeats": self.repeats,
                "repeatable": self.repeatable,
                "filmed": self.filmed,
                "limit_s": self.limit_s,
                "browser": browser.settings(self.quiet_ms),
                "sites": {name: {"url": site.url, "sha256": digest(site)} for name, site in self.sites.items()},
                "networks": {name: asdict(network) for name, network in self.networks.items()},
                "protocols": {name: asdict(protocol) for name, protocol in self.protocols.items()},
            },
            "versions": versions({protocol.server for protocol in self.protocols.values()}),
            "machine": {**machine(), "cores": affinity.described(affinity.layout())},
            "films": asdict(self.films),
            "begun_at": now_iso(),
            **({"study": dict(self.study)} if self.study else {}),
        }

    def setting(self, run: Run) -> Setting:
        """What `run` loads, behind what, over what."""
        return Setting(
            self.sites[run.site],
            self.networks[run.network],
            self.protocols[run.protocol],
            self.repeatable,
            seed_of(run, self.seed),
            self.filmed,
            self.quiet_ms,
            self.limit_s,
        )

    def block(self, number: int, runs: Iterable[Run]) -> Block:
        """The block of the plan with this number, or what is left of it."""
        return Block(number, {run: self.setting(run) for run in runs}, self.repeats, self.films)


# Which sites behind which networks need no more runs, told by what has been measured into a campaign's folder.
Enough = Callable[[Path], Collection[tuple[str, str]]]


class Workers(Protocol):
    """Those who measure blocks: this machine, or many."""

    def measure(self, blocks: Iterable[Block], results: Results, watch: Watch, done: Callable[[Block], None]) -> None:
        """Measure `blocks` into `results`, and call `done` after each."""


def measure(
    campaign: Campaign,
    watch: Callable[[Sequence[Run], int], Watch],
    workers: Workers | None = None,
    enough: Enough | None = None,
) -> None:
    """Measure what is left of `campaign`: each run until it is valid, or has been repeated often enough.

    `workers` are those who do it, by default this machine; `enough` ends sites before the planned number of runs.
    Raises EyelevelError when the disk is too small, or replays fail again and again.
    """
    wanted = plan(campaign.sites, campaign.networks, list(campaign.protocols), campaign.runs, campaign.seed)
    wanted = [block for block in wanted if (block[0].site, block[0].network) not in campaign.without]
    with opened(campaign.folder, campaign.document()) as results:
        blocks = list(enumerate(results.plan(wanted), start=1))
        give_to_caller(campaign.folder)
        settle_films(campaign, results)
        apply_norms(results, results.rows[-UNSETTLED_ROWS:])
        left = runs_left(campaign, blocks, results)
        known = (campaign.folder, campaign.sites, campaign.networks, campaign.films)
        expected = forecast(left, results.rows, *known, filmed=campaign.filmed)
        require_space(expected.bytes, campaign.folder)
        planned = sum(len(block) for _, block in blocks)
        with watch(left, planned - len(left)).shown(expected) as shown:

            def done(block: Block) -> None:
                results.follow_verdicts()
                shown.rejects(apply_norms(results, [row for row in results.rows if row.block == block.number]))
                hand_over(block, results)

            # A run may be rejected when later ones are known; then it is made again at the end.
            while left := runs_left(campaign, blocks, results):
                stopped = enough or (lambda _: ())
                todo = still_wanted(campaign, blocks, results, set(left), stopped)
                before = len(results.rows)
                (workers or Here(campaign.canary_s)).measure(todo, results, shown, done)
                if len(results.rows) == before:
                    break


class Here:
    """This machine measures, a block at a time; `canary_s` is how old a canary may be when a block begins."""

    def __init__(self, canary_s: float = 0.0) -> None:
        self._canary_s = canary_s

    def measure(self, blocks: Iterable[Block], results: Results, watch: Watch, done: Callable[[Block], None]) -> None:
        """See `Workers`."""
        slot, failures = Slot(canaries_of(machine_name(), results.rows), self._canary_s), ReplayFailures()
        for block in blocks:
            require_space(0, results.folder)
            circumstances = partial(slot.circumstances, block.number, watch.warns)
            measure_block(block, results, circumstances, failures, watch)
            done(block)


def runs_left(campaign: Campaign, blocks: Iterable[tuple[int, PlannedBlock]], results: Results) -> list[Run]:
    """All runs that are still to be measured."""
    return [run for _, block in blocks for run in block if is_left(run, results, campaign.repeats)]


def still_wanted(
    campaign: Campaign,
    blocks: Iterable[tuple[int, PlannedBlock]],
    results: Results,
    left: Collection[Run],
    enough: Enough,
) -> Iterable[Block]:
    """What is left of each block, one after another as they are asked for, but for what needs no more runs by then."""
    for number, block in blocks:
        runs = [run for run in block if run in left and is_left(run, results, campaign.repeats)]
        if runs and (runs[0].site, runs[0].network) not in enough(campaign.folder):
            yield campaign.block(number, runs)


def hand_over(block: Block, results: Results) -> None:
    """Make what `block` left belong to who ran the campaign with sudo."""
    for run in block.settings:
        for attempt in range(1, results.attempts(run) + 1):
            give_to_caller(results.run_folder(run, attempt), results.folder)
    for file in results.folder.glob("*.*"):
        give_to_caller(file)


def settle_films(campaign: Campaign, results: Results) -> None:
    """Do with every film what the campaign says; a stop may have come before."""
    keep_films(campaign.films, [(campaign.folder / row.folder, row.run, row.valid) for row in results.rows])


def apply_norms(results: Results, fresh: Sequence[Row]) -> list[tuple[Row, str]]:
    """Compare the runs in `fresh` with all of their site and network (`norms`); returns those rejected, and why."""
    rejected = []
    for site, network in dict.fromkeys((row.site, row.network) for row in fresh):
        own = [row for row in results.rows if (row.site, row.network) == (site, network)]
        # What was sound when it came stays among those that are compared, whatever was said of it later.
        verdicts = {row.folder: results.first_verdict(row.folder) for row in own}
        sound = [row for row in own if (said.was_valid if (said := verdicts[row.folder]) else row.valid)]
        looks = [look(row, results.folder) for row in sound]
        unsettled = {row.folder for row in fresh}
        first = next((place for place, row in enumerate(sound) if row.folder in unsettled), len(sound))
        for place, reason in judged(looks, first).items():
            row = sound[place]
            if verdicts[row.folder] is None:
                by = reason.partition(":")[0]
                results.decide(Verdict(row.folder, False, reason, by, now_iso(), row.valid, row.reason))
                rejected.append((row, reason))
    return rejected


def look(row: Row, folder: Path) -> Look:
    """What of an attempt of the campaign in `folder` is compared with others."""
    return Look(row.requests, row.missed, row.exchanges, read_last_frame(folder / row.folder))
