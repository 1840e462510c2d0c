"""A campaign: every site over every network and protocol, many times, in an order drawn from a seed.

Its `Method` makes and judges the runs. The campaigns of studies differ from those of pages in their method.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from base.clock import now_iso
from browsers.browsertime import configuration
from browsers.browsertime.configuration import QUIET_MS
from browsers.registry import browser_named
from dataset.plan import PlannedBlock
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Cell, Condition, Row, Run
from films.policy import ALL_FILMS, FilmPolicy
from measure.campaign.block import Block
from measure.campaign.forecast import Forecaster, RunModel
from measure.campaign.method import PAGES, Method
from measure.campaign.plan import plan, seed_of
from measure.campaign.server_choices import choices_of_server
from measure.campaign.slot import CANARY_MAX_AGE_S, machine_name
from measure.host import affinity
from measure.host.lanes import ONE_LANE, Lanes
from measure.host.machine import digests, machine, versions
from measure.instruments.contract import instrument_columns
from measure.run.setting import Loading, Setting
from measure.sites.completeness import digest
from measure.sites.facts import facts_of
from record.edit import require_think_time
from record.site import Site
from replay.cross_traffic_flows import CLIENT_PROGRAMS
from replay.hops.registry import hop_programs
from servers.registry import programs_of
from tuning import protocols
from tuning.cross_traffic import flows_of
from tuning.defaults import RECORDED, REPEATS
from tuning.devices import device_of
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Selection:
    """Names of sites, networks and protocols."""

    sites: tuple[str, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]


@dataclass(frozen=True)
class Campaign:
    """The runs to be measured, how they are measured, and where the results go.

    `films`: which films are kept. `auto`: whether `runs` is an upper limit and the campaign may end earlier.
    `repeats`: how often an invalid run is repeated before it is given up.
    `canary_s`: the greatest age (s) of the latest canary when a block begins (`measure.campaign.slot`).
    `selection`: names of the sites, networks and protocols whose runs are planned now; all unless given.
    `timekeeping`: how the network keeps time in all runs (`measure.host.timekeeping`), if known.
    `lanes`: how many runs each machine measures at once, and where (`measure.host.lanes`).
    `companions`: network → further conditions that are measured in its blocks (`measure.campaign.plan`).
    `further_browsers`: browsers in which everything is measured, in addition to that of `loading`.
    `without`: pairs of a site and a network whose runs are not planned.
    `withdrawn`: pairs whose results no longer count, and which are not measured any more → the reason.
    `study`: the name of the campaign's study, and its settings.
    `hypotheses`: the text of the hypotheses that the campaign declares.
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
        """The names of all browsers of the campaign."""
        return (self.loading.browser, *self.further_browsers)

    def document(self) -> CampaignDocument:
        """The content of `campaign.json`: all that results depend on, and facts about the campaign's sites."""
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
            columns=instrument_columns(),
        )

    def settings(self) -> CampaignSettings:
        """The settings on which the campaign's results depend."""
        loading = self.loading
        return CampaignSettings(
            **loading.of_loads(),
            seed=self.seed,
            runs=self.runs,
            auto=self.auto,
            repeats=self.repeats,
            lanes=self.lanes.count,
            at_once=dict(self.lanes.at_once),
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
        device, program = device_of(browser), browser_named(browser)
        return {
            **configuration.settings(program, self.loading.quiet_ms or QUIET_MS),
            **({"build": str(program.build)} if program.build else {}),
            **({"device": asdict(device)} if device else {}),
        }

    def _places(self) -> dict[str, Any]:
        """The cores of this machine that each part of a run gets. Empty if there are several lanes: the record of the
        lanes has their cores."""
        return {} if not self.lanes.is_one else {"cores": affinity.described(affinity.layout())}

    def _without_other_quiet_time(self, network: Network) -> Network:
        """The part of `network` that results depend on: without its quiet time if the campaign sets one for all
        networks."""
        return network if self.loading.quiet_ms is None else replace(network, quiet_ms=None)

    def plan(self) -> list[PlannedBlock]:
        """The blocks that are to be measured, in order."""
        chosen = self.selection or Selection(tuple(self.sites), tuple(self.networks), tuple(self.protocols))
        blocks = plan(
            chosen.sites,
            chosen.networks,
            chosen.protocols,
            self.runs,
            self.seed,
            self.companions,
            self.browsers,
            self.lanes.at_once,
        )
        out = {*self.without, *self.withdrawn}
        planned = (tuple(run for run in block if run.cell not in out) for block in blocks)
        return [block for block in planned if block]

    def further_programs(self) -> Mapping[str, str]:
        """The programs of all servers, background flows and hops that take part, each with the option that prints its
        version."""
        sending = [protocol for protocol in self.flow_protocols() if not protocol.in_kernel]
        of_servers = programs_of([*self.protocols.values(), *sending])
        return {**of_servers, **(CLIENT_PROGRAMS if sending else {}), **hop_programs(self.networks.values())}

    def versions(self) -> dict[str, str]:
        """Name → version of everything that takes part, on this machine, and the digests of the browsers' programs.
        Raises EyelevelError."""
        known = versions(
            (), self.browsers, self.loading.shells, capturing=self.method.captures, further=self.further_programs()
        )
        return dict(sorted({**known, **digests(self.browsers)}.items()))

    def run_model(self) -> RunModel:
        """The model of a run's time and space, for when no runs have been made yet."""
        page_bytes = {name: site.page_bytes for name, site in self.sites.items()}
        return RunModel(page_bytes, self.networks, self.films, self.loading.filmed, self.method.seconds_of_run())

    def forecaster(self, rows: Sequence[Row]) -> Forecaster:
        """The forecaster for when `rows` have been made, with all lanes in use."""
        return Forecaster(rows, self.folder, self.run_model(), self.lanes.runs_at_once)

    def flow_protocols(self) -> list[Protocol]:
        """The protocols of flows that belong to no page."""
        cross_traffic = [flow.protocol for network in self.networks.values() for flow in flows_of(network)]
        return [*self.method.flow_protocols(self.protocols.values()), *cross_traffic]

    def setting(self, run: Run) -> Setting:
        """The page that `run` loads, its network and protocol, and how it is loaded."""
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
        settings = {run: self.setting(run) for run in runs}
        at_once = min((self.lanes.at_once.get(run.network, 1) for run in settings), default=1)
        return Block(number, settings, self.method, self.repeats, self.films, at_once=at_once)
