"""A campaign: every site over every network and protocol, many times, in an order drawn from a seed.

How a run is made and judged is its `Method`'s; the campaigns of studies differ from that of pages in their method.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.ownership import give_to_caller
from browsers.browsertime import configuration
from browsers.browsertime.configuration import QUIET_MS
from browsers.registry import browser_named
from dataset.plan import Enough, PlannedBlock, never_enough
from dataset.reasons import Reason
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Cell, Condition, Row, Run
from dataset.verdicts import Verdict
from films.policy import ALL_FILMS, FilmPolicy
from measure.campaign.block import Block, ReplayFailures, apply_policy, measure_block
from measure.campaign.budget import Budget
from measure.campaign.forecast import Forecast, RunModel, forecast, require_space
from measure.campaign.giving_up import GivenUpSites
from measure.campaign.method import PAGES, Method
from measure.campaign.outcomes import RunOutcomes
from measure.campaign.plan import plan, seed_of
from measure.campaign.preparer import Preparer
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results, opened
from measure.campaign.slot import CANARY_MAX_AGE_S, Slot, canaries_of, machine_name
from measure.completeness import digest
from measure.expectations import Expectation, judge
from measure.host import affinity
from measure.host.idle_priority import idle_priority
from measure.host.lanes import ONE_LANE, Lanes
from measure.host.machine import machine, versions
from measure.run.setting import Loading, Setting
from measure.server_choices import choices_of_server
from measure.site_facts import facts_of
from record.edit import require_think_time
from record.site import Site
from replay.cross_traffic_flows import CLIENT_PROGRAMS
from replay.hop import programs_of as hop_programs
from servers.registry import servers_of
from tuning import protocols
from tuning.cross_traffic import flows_of
from tuning.defaults import RECORDED, REPEATS
from tuning.devices import device_of
from tuning.networks import Network
from tuning.protocols import Protocol

# A stop may have come between the rows of the last blocks and their comparison with others.
UNSETTLED_ROWS = 200


@dataclass(frozen=True)
class Selection:
    """Names of sites, networks and protocols."""

    sites: tuple[str, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]


@dataclass(frozen=True)
class Campaign:
    """What is to be measured, how, and where the results go.

    `films`: which films are kept. `auto`: whether `runs` is only how many there are at most.
    `repeats`: how often an invalid run is repeated before it is given up.
    `canary_s`: how old a canary may be when a block begins (`measure.campaign.slot`).
    `selection`: names of the sites, networks and protocols whose runs are planned now; all unless given.
    `timekeeping`: with what the network keeps time in all runs (`measure.host.timekeeping`), if that is known.
    `lanes`: how many runs each machine measures at once, and where (`measure.host.lanes`).
    `companions`: network → further conditions that are measured in its blocks (`measure.campaign.plan`).
    `further_browsers`: those in which all is measured beside that of `loading`.
    `without`: of these, sites and networks whose runs are not planned. `withdrawn`: those of which what was measured
    does not count any more, and nothing is measured, with the reason. `study`: what the campaign's study says of
    itself. `hypotheses`: the text of those that it declares.
    """

    folder: Path
    sites: Mapping[str, Site]
    networks: Mapping[str, Network]
    protocols: Mapping[str, protocols.Protocol]
    runs: int
    seed: int
    loading: Loading = Loading()  # noqa: RUF009 (frozen)
    method: Method = PAGES
    films: FilmPolicy = ALL_FILMS
    repeats: int = REPEATS
    auto: bool = False
    canary_s: float = CANARY_MAX_AGE_S
    selection: Selection | None = None
    companions: Mapping[str, Sequence[Condition]] = field(default_factory=dict)
    further_browsers: tuple[str, ...] = ()
    without: frozenset[Cell] = frozenset()
    withdrawn: Mapping[Cell, str] = field(default_factory=dict)
    study: Mapping[str, Any] = field(default_factory=dict)
    hypotheses: str = ""
    timekeeping: str | None = None
    lanes: Lanes = ONE_LANE

    def __post_init__(self) -> None:
        for site in self.sites.values():
            require_think_time(site, self.loading.think_time == RECORDED)

    @property
    def browsers(self) -> tuple[str, ...]:
        """The names of all its browsers."""
        return (self.loading.browser, *self.further_browsers)

    def document(self) -> CampaignDocument:
        """All of it that results depend on, and the facts of its sites, as `campaign.json` keeps it."""
        return CampaignDocument(
            settings=self.settings(),
            versions=self.versions(),
            machine={**machine(), **self._places()},
            films=asdict(self.films),
            begun_at=now_iso(),
            study=dict(self.study),
            site_facts={name: asdict(facts_of(site)) for name, site in self.sites.items()},
            server_choices={name: choices_of_server(protocol) for name, protocol in self.protocols.items()},
            lanes={machine_name(): record} if (record := self.lanes.record()) and self.lanes.is_here else {},
        )

    def settings(self) -> CampaignSettings:
        """The settings on which its results depend."""
        loading = self.loading
        return CampaignSettings(
            **loading.of_loads(),
            seed=self.seed,
            runs=self.runs,
            auto=self.auto,
            repeats=self.repeats,
            lanes=self.lanes.count,
            server_rtts=str(loading.server_rtts),
            method=dict(self.method.settings()),
            browser={"name": loading.browser, **self._browser_settings(loading.browser)},
            further_browsers={name: self._browser_settings(name) for name in self.further_browsers},
            sites={name: self._site_settings(site) for name, site in self.sites.items()},
            networks={name: asdict(self._without_other_quiet_time(one)) for name, one in self.networks.items()},
            protocols={name: asdict(protocol) for name, protocol in self.protocols.items()},
        )

    def _site_settings(self, site: Site) -> dict[str, Any]:
        extra_ms = self.loading.server_rtts.extra_ms(site)
        return {"url": site.url, "sha256": digest(site), **({"extra_rtts_ms": extra_ms} if extra_ms else {})}

    def _browser_settings(self, browser: str) -> dict[str, Any]:
        device = device_of(browser)
        return {
            **configuration.settings(browser_named(browser), self.loading.quiet_ms or QUIET_MS),
            **({"device": asdict(device)} if device else {}),
        }

    def _places(self) -> dict[str, Any]:
        """Which of this machine's cores do what in a run, unless each lane says it for itself."""
        return {} if self.lanes.count > 1 else {"cores": affinity.described(affinity.layout())}

    def _without_other_quiet_time(self, network: Network) -> Network:
        """What of `network` results depend on: not its quiet time, where the campaign has one for all networks."""
        return network if self.loading.quiet_ms is None else replace(network, quiet_ms=None)

    def plan(self) -> list[PlannedBlock]:
        """The blocks that are to be measured, in order."""
        chosen = self.selection or Selection(tuple(self.sites), tuple(self.networks), tuple(self.protocols))
        blocks = plan(
            chosen.sites, chosen.networks, chosen.protocols, self.runs, self.seed, self.companions, self.browsers
        )
        out = {*self.without, *self.withdrawn}
        planned = (tuple(run for run in block if run.cell not in out) for block in blocks)
        return [block for block in planned if block]

    def servers(self) -> frozenset[str]:
        """The names of all servers that take part, those of background flows among them."""
        sending = {protocol.server for protocol in self._flow_protocols() if not protocol.in_kernel}
        return frozenset(server.name for one in self.protocols.values() for server in servers_of(one)) | sending

    def further_programs(self) -> Mapping[str, str]:
        """What else takes part: programs of background flows and of hops, each with the option that prints its
        version."""
        flows = {} if all(protocol.in_kernel for protocol in self._flow_protocols()) else CLIENT_PROGRAMS
        return {
            **flows,
            **{name: option for one in self.networks.values() for name, option in hop_programs(one).items()},
        }

    def versions(self) -> dict[str, str]:
        """Name → version of everything that takes part, on this machine. Raises EyelevelError."""
        return versions(
            self.servers(),
            self.browsers,
            self.loading.shells,
            capturing=self.method.captures,
            further=self.further_programs(),
        )

    def run_model(self) -> RunModel:
        """What its runs take, before any of them has been made."""
        return RunModel(self.sites, self.networks, self.films, self.loading.filmed, self.method.seconds_of_run())

    def _flow_protocols(self) -> list[Protocol]:
        """How flows send that are no page's."""
        cross_traffic = [flow.protocol for network in self.networks.values() for flow in flows_of(network)]
        return [*self.method.flow_protocols(self.protocols.values()), *cross_traffic]

    def setting(self, run: Run) -> Setting:
        """What `run` loads, behind what, over what."""
        return Setting(
            self.sites[run.site],
            self.networks[run.network],
            self.protocols[run.protocol],
            replace(self.loading, browser=run.browser),
            seed_of(run, self.seed),
            self.timekeeping,
        )

    def block(self, number: int, runs: Iterable[Run]) -> Block:
        """The block of the plan with this number, or some runs of it."""
        return Block(number, {run: self.setting(run) for run in runs}, self.method, self.repeats, self.films)


# Measures blocks into a campaign's results, on this machine or on many, and calls a function after each. Before it
# begins a block it asks whether that may begin; after a no it begins none.
Workers = Callable[
    [Iterable[Block], Results, ProgressDisplay, Callable[[Block], None], Callable[[Block], bool]],
    None,
]


def measure(
    campaign: Campaign,
    display: Callable[[Sequence[Run], int], ProgressDisplay],
    workers: Workers | None = None,
    enough: Enough = never_enough,
    budget: Budget | None = None,
) -> int:
    """Measure all open runs of `campaign`: each until it is valid, or has been repeated often enough.

    `workers` are those who do it, by default this machine; `enough` ends sites before the planned number of runs;
    `budget` is how long all may take. Returns how many runs are still to be made since the budget was used up.
    Raises EyelevelError when the disk is too small, or replays fail again and again.
    """
    document = campaign.document()
    with opened(campaign.folder, document, campaign.hypotheses) as results:
        # As in what is kept: a campaign has no runs with another.
        campaign = replace(campaign, timekeeping=document.versions.get("timekeeping"))
        work = PlannedWork(campaign, results, budget)
        work.settle()
        measure_blocks = workers or partial(measure_here, campaign, work.after)
        expected = work.forecast()
        require_space(expected.bytes, campaign.folder)
        at_most = campaign.auto or (budget is not None and budget.remaining_s < expected.seconds)
        if budget:
            expected = replace(expected, seconds=max(0.0, min(expected.seconds, budget.remaining_s)))
        with display(work.open_runs(), work.ended()).live(expected, at_most=at_most) as live:
            # A run may be rejected when later ones are known; then it is made again at the end.
            while work.open_runs() and not work.is_out_of_time:
                attempts = len(results.rows)
                measure_blocks(work.open_blocks(enough), results, live, partial(work.end, live), work.may_begin)
                if len(results.rows) == attempts:
                    break
        return work.runs_beyond_budget()


class PlannedWork:
    """How far a campaign has come: which of its planned blocks have open runs, and what follows when one ends."""

    def __init__(self, campaign: Campaign, results: Results, budget: Budget | None = None) -> None:
        self._campaign = campaign
        self._results = results
        self._budget = budget
        # Whether a block was not begun since it would not have ended within the budget.
        self.is_out_of_time = False
        self._blocks = results.extend_plan(campaign.plan())
        self._given_up = GivenUpSites(self._blocks, results, campaign.repeats, campaign.withdrawn)
        self._outcomes = RunOutcomes(results.folder)
        self._rounds = Rounds(run.cell for block in self._blocks for run in block)
        for row in results.rows:
            self._rounds.count(row.block, (row.of,))
        self._enough = frozenset[Cell]()
        self._elsewhere = results.made_elsewhere(self._blocks)

    def settle(self) -> None:
        """Do what a stop may have left undone: attempts, owners, films, the comparison of the last runs with others;
        and reject what was withdrawn since."""
        self._results.remove_unmade()
        self._given_up.reject_withdrawn()
        give_to_caller(self._campaign.folder)
        apply_policy(self._campaign.films, self._campaign.folder, self._results.rows)
        expectations = self._campaign.method.expectations()
        apply_expectations(self._results, self._results.rows[-UNSETTLED_ROWS:], self._outcomes, expectations)

    def forecast(self) -> Forecast:
        """What the open runs will take, in all lanes at once."""
        campaign = self._campaign
        expected = forecast(self.open_runs(), self._results.rows, campaign.folder, campaign.run_model())
        return expected.in_lanes(campaign.lanes.count)

    def open_runs(self) -> list[Run]:
        """All runs that are still to be measured."""
        return [run for block in self._blocks for run in self._open(block)]

    def runs_beyond_budget(self) -> int:
        """How many runs are still to be made since the budget was used up; those of cells that have enough are not."""
        return sum(run.cell not in self._enough for run in self.open_runs()) if self.is_out_of_time else 0

    def ended(self) -> int:
        """How many runs are not to be measured any more."""
        return sum(map(len, self._blocks)) - len(self.open_runs())

    def open_blocks(self, enough: Enough) -> Iterable[Block]:
        """The open runs of each block, one block after another, without what needs no more runs by then."""
        open_runs = set(self.open_runs())
        rounds, self._enough = None, frozenset[Cell]()
        for number, block in enumerate(self._blocks, start=1):
            if runs := [run for run in self._open(block) if run in open_runs]:
                # To ask takes half a second of a large campaign, and only whole rounds tell something new.
                if rounds != (now := self._rounds.numbers(lambda cell: cell in self._given_up)):
                    rounds, self._enough = now, frozenset(enough(self._campaign.folder))
                if runs := [run for run in runs if run.cell not in self._enough]:
                    yield self._campaign.block(number, runs)
                    if self.is_out_of_time:
                        return

    def may_begin(self, block: Block) -> bool:
        """Whether `block` is expected to end within the budget, if it begins now; once one was not, none may."""
        # A shorter block further on might fit, but then slow networks would have fewer runs.
        if self._budget and not self.is_out_of_time:
            campaign = self._campaign
            expected = forecast(block.settings, self._results.rows, campaign.folder, campaign.run_model())
            self.is_out_of_time = expected.seconds > self._budget.remaining_s
        return not self.is_out_of_time

    def after(self, block: Block) -> tuple[Run, Setting] | None:
        """Which run will be first after `block`, with its setting, as far as is known before its end; None if none."""
        for coming in self._blocks[block.number :]:
            for run in self._open(coming):
                if run.cell not in self._enough:
                    return run, self._campaign.setting(run)
        return None

    def end(self, display: ProgressDisplay, block: Block) -> None:
        """Do what follows when `block` has been measured."""
        results = self._results
        self._rounds.count(block.number, block.settings)
        results.follow_verdicts()
        expectations = self._campaign.method.expectations()
        display.rejects(apply_expectations(results, results.rows_of(block.settings), self._outcomes, expectations))
        for entry in self._given_up.follow_results(run.cell for run in block.settings):
            display.gives_up(entry, self._given_up.runs_of((entry.site, entry.network)))
        hand_over(block, results)

    def _open(self, block: PlannedBlock) -> list[Run]:
        repeats = self._campaign.repeats
        return [
            run
            for run in block
            if run.cell not in self._given_up and run not in self._elsewhere and self._results.is_open(run, repeats)
        ]


class Rounds:
    """How often all `cells` of a network have been measured: a block of each is a round."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._blocks: dict[Cell, set[int]] = {cell: set() for cell in cells}

    def count(self, block: int, runs: Iterable[Run]) -> None:
        """Count that some `runs` of a block were measured."""
        for run in runs:
            self._blocks.setdefault(run.cell, set()).add(block)

    def numbers(self, is_given_up: Callable[[Cell], bool]) -> dict[str, tuple[int, int]]:
        """Network → the number of rounds that are whole, not counting cells that were given up; and how many there
        would be if those that are not planned now, or are measured late, had no part in it."""
        sizes: dict[str, list[int]] = {}
        open_sizes: dict[str, list[int]] = {}
        for cell, blocks in self._blocks.items():
            sizes.setdefault(cell[1], []).append(len(blocks))
            if not is_given_up(cell):
                open_sizes.setdefault(cell[1], []).append(len(blocks))
        return {
            network: (min(open_sizes.get(network, [0])), sum(of_cells) // len(of_cells))
            for network, of_cells in sizes.items()
        }


def measure_here(
    campaign: Campaign,
    after: Callable[[Block], tuple[Run, Setting] | None],
    blocks: Iterable[Block],
    results: Results,
    display: ProgressDisplay,
    done: Callable[[Block], None],
    may_begin: Callable[[Block], bool],
) -> None:
    """Measure on this machine, a block at a time; `campaign` says how canaries are timed.

    `after` says which run will be first after a block, as far as is known: it is prepared when the block ends.
    """
    canaries, failures = canaries_of(machine_name(), results.rows), ReplayFailures()
    slot = Slot(canaries, campaign.canary_s, campaign.loading.browser)
    with idle_priority() as idle, Preparer(results, idle) as preparer:
        for block in takewhile(may_begin, blocks):
            require_space(0, results.folder)
            circumstances = partial(slot.circumstances, block.number, display.warns)
            measure_block(block, results, circumstances, failures, display, preparer, partial(after, block))
            done(block)


def hand_over(block: Block, results: Results) -> None:
    """Make what `block` has written belong to who ran the campaign with sudo."""
    for row in results.rows_of(block.settings):
        give_to_caller(results.folder / row.folder, results.folder)
    for file in results.folder.glob("*.*"):
        give_to_caller(file)


def apply_expectations(
    results: Results, fresh: Sequence[Row], outcomes: RunOutcomes, expectations: Sequence[Expectation]
) -> list[tuple[Row, Reason]]:
    """Compare the runs in `fresh` with all of their site, network and browser by `expectations`; returns those that
    are rejected, and why."""
    rejected = []
    for cell, browser in dict.fromkeys((row.of.cell, row.browser) for row in fresh):
        # Browsers do not ask for the same.
        rows = [row for row in results.rows_of_cell(cell) if row.browser == browser]
        # What was sound when it came stays among those that are compared, whatever was decided later.
        verdicts = {row.folder: results.first_verdict(row.folder) for row in rows}
        sound = [row for row in rows if (first.was_valid if (first := verdicts[row.folder]) else row.valid)]
        unsettled = {row.folder for row in fresh}
        outcomes.look_at(sound)
        start = next((place for place, row in enumerate(sound) if row.folder in unsettled), len(sound))
        for place, reason in judge([outcomes.of(row) for row in sound], start, expectations).items():
            if verdicts[sound[place].folder] is None:
                rejected.append((sound[place], reason))
    # All at once, since the table is written anew for them.
    results.decide(*(Verdict.of(row, reason, by=reason.gate) for row, reason in rejected))
    return rejected
