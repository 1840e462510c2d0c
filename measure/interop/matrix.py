"""The matrix: every test of every server with every browser, over each version of HTTP that the server speaks."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool
from browsers.contract import Browser
from dataset.reasons import Reason
from dataset.run_files import REPLAY_LOG, REQUEST_LOG
from dataset.table import Row, Run
from measure.campaign.slot import machine_name
from measure.interop.tests import Observation, Test
from measure.run.browser import refusal
from measure.run.evidence import Evidence, last_line, page_requests
from measure.run.gates import GATES, Gate, is_of_machine
from measure.run.setting import Circumstances, Loading, Setting
from measure.validate.protocol.settings import ObservationMethod
from record.site import Site
from servers.contract import Server
from servers.registry import require_served
from tuning import protocols
from tuning.protocols import TRANSPORTS, Protocol

PASSED, UNSUPPORTED, FAILED, NOT_SET_UP = "passed", "unsupported", "failed", "not set up"

# The time limit of a load.
LIMIT_S = 120.0
# A load that failed through the machine's fault is repeated once.
ATTEMPTS = 2
# The name of the gate for a test's own requirements, in addition to the usual gates.
GATE = "interop"
# The seed of losses; a method adds the number of the attempt.
SEED = 0


@dataclass(frozen=True)
class Case:
    """One test of one server with one browser, over a version of HTTP."""

    server: Server
    browser: Browser
    test: Test
    http_version: str

    @property
    def name(self) -> str:
        """The name of the case's folder."""
        return f"{self.server.name}-{self.browser.name}-{self.test.name}-{self.http_version}".replace(" ", "-")


@dataclass(frozen=True)
class Result:
    """The result of a case: an outcome (one of four words), the reason if it did not pass, the number of loads, and how
    many loads were repeated since they failed through the machine's fault. `folder` has the load that failed."""

    case: Case
    outcome: str
    why: str = ""
    loads: int = 0
    repeated: int = 0
    folder: Path | None = None


@dataclass(frozen=True)
class InteropMethod(ObservationMethod):
    """A load of a test, captured at the servers with the browser's keys."""

    test: Test | None = None

    def gates(self) -> Sequence[Gate]:
        return GATES

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """Why the load must not count, or None: a usual gate rejects it, a request was not recorded, or the test's
        requirements are not met."""
        assert self.test
        if reason := super().reason_against(setting, folder, evidence):
            return reason
        if missed := evidence.request_counts.missed:
            return Reason(GATE, f"{missed} requests were for nothing that was recorded")
        observation = Observation(folder, setting.protocol.http_version, evidence)
        requests = page_requests(folder / REQUEST_LOG, evidence.requests)
        try:
            fault = self.test.page.fault(requests) or self.test.fault(observation)
        except EyelevelError as error:
            fault = str(error)
        return Reason(GATE, fault) if fault else None


def cases(servers: Iterable[Server], browsers: Sequence[Browser], tests: Sequence[Test]) -> list[Case]:
    """All cases, in the order of the table. Cases over a version that the server does not speak are included, as
    unsupported."""
    return [
        Case(server, browser, test, version)
        for server in servers
        for browser in browsers
        for test in tests
        for version in ([one for one in test.versions if one in _spoken(server)] or test.versions)
    ]


def missing_program(party: Server | Browser) -> str | None:
    """The error that a program of a server or a browser is missing, with the command that installs it; None if none is
    missing."""
    try:
        if isinstance(party, Browser):
            party.files()
        else:
            for program in party.programs:
                tool(program)
    except EyelevelError as error:
        return str(error)
    return None


def result(
    case: Case, site: Site, folder: Path, loads: int, method: Callable[..., InteropMethod] = InteropMethod
) -> Result:
    """The result of `case`: each of `loads` loads of its page must pass by the `method` of its test. Only the folder of
    a failed load is kept."""
    for party in (case.server, case.browser):
        if missing := missing_program(party):
            return Result(case, NOT_SET_UP, missing)
    if case.http_version not in _spoken(case.server):
        spoken = " and ".join(_spoken(case.server))
        return Result(case, UNSUPPORTED, f"{case.server.name} serves over {spoken}, not over {case.http_version}")
    if (stock := stock_protocol(case.server, case.http_version)) is None:
        why = (
            f"no protocol setting has server = {case.server.name!r} for {case.http_version}: add one (CONTRIBUTING.md)"
        )
        return Result(case, FAILED, why)
    protocol = replace(stock, early_data=case.test.early_data)
    if fault := case.server.refusal(protocol) or case.server.network_refusal(protocol, case.test.network):
        return Result(case, UNSUPPORTED, fault)
    (protocol,) = require_served([protocol])
    if fault := refusal(case.browser, protocol, site):
        return Result(case, UNSUPPORTED, fault)
    loading = Loading(
        repeatable=False, filmed=False, quiet_ms=case.test.quiet_ms, limit_s=LIMIT_S, browser=case.browser.name
    )
    setting = Setting(site, case.test.network, protocol, loading, SEED)
    repeated = 0
    for number in range(1, loads + 1):
        row = _load(case, method(test=case.test), replace(setting, seed=SEED + number * ATTEMPTS), folder, number)
        repeated += row.attempt - 1
        place = folder / row.folder
        if row.reason:
            return Result(case, FAILED, _why(row, place), number, repeated, place)
        shutil.rmtree(place)
    return Result(case, PASSED, "", loads, repeated)


def stock_protocol(server: Server, http_version: str) -> Protocol | None:
    """The protocol with which `server` is tested: the first one in protocols.toml with this server and this version of
    HTTP."""
    settings = [one for one in protocols.load().values() if one.server == server.name]
    return next((one for one in settings if one.http_version == http_version), None)


def _spoken(server: Server) -> list[str]:
    """The versions of HTTP that a server speaks."""
    return [TRANSPORTS[transport].http_version for transport in server.transports]


def _load(case: Case, method: InteropMethod, setting: Setting, folder: Path, number: int) -> Row:
    """The last row of the loads of `setting` in `folder`; loads that failed through the machine's fault are
    repeated."""
    run = Run(case.test.page.name, case.test.network.name, setting.protocol.name, number, case.browser.name)
    for attempt in range(1, ATTEMPTS + 1):
        place = folder / case.name / f"{number}-{attempt}"
        if place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
        method.make(setting, Circumstances(1, machine_name()), place, attempt)
        row = method.judge(setting, run, attempt, place, folder)
        if not is_of_machine(row.reason):
            break
        if attempt < ATTEMPTS:
            shutil.rmtree(place)
    return row


def _why(row: Row, folder: Path) -> str:
    """Why a load does not pass, in one line; with the last line of the replay's log unless the test itself failed."""
    last = last_line(folder / REPLAY_LOG) if row.gate != GATE else ""
    return f"{row.reason}; the last line of {REPLAY_LOG}: {last}" if last else str(row.reason)
