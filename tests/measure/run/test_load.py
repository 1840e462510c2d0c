"""One load from outside: why its replay failed."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.portable import from_argument
from browsers.browsertime.configuration import configuration
from dataset.run_files import REPLAY_EVIDENCE
from measure.host.idle_priority import Policy
from measure.host.sharing import ALONE, LOADS, SharedProcessors
from measure.instruments.contract import ObservedLoad
from measure.run.browser import page_of
from measure.run.load import Load, Moments, load
from measure.run.setting import Loading, Setting
from measure.run.turn import OVER, READY, UP
from record.demo import generate
from record.site import write_site
from replay import Replay
from replay.spec import ReplayOutcome, ReplaySpec
from tuning import networks, protocols


@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_a_network_that_cannot_be_set_up_is_a_reason_with_what_the_shell_printed(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    network = replace(networks.load()["dsl"], down_trace="/nowhere/trace")
    reason = load(Setting(site, network, protocols.load()["tcp"]), tmp_path) or ""
    message, _, quotation = reason.partition("; the last line of replay.log: ")
    assert message.startswith("the emulated network could not be set up (status ")
    # `eyelevel status` prints only the reason, with nothing above it.
    assert "/nowhere/trace" in quotation and "above" not in reason


class EndedReplay(Replay):
    """A replay that has ended with `outcome`."""

    def __init__(self, outcome: ReplayOutcome) -> None:
        self._outcome, self.pid = outcome, os.getpid()
        self.ended, report = os.pipe()
        os.close(report)

    def await_end(self) -> None:
        pass

    def outcome(self) -> ReplayOutcome:
        return self._outcome

    def close(self) -> None:
        os.close(self.ended)


@pytest.mark.parametrize(
    ("network", "given_ms", "quiet_ms"), [("lte", None, 2000), ("da2gc", None, 3000), ("lte", 500, 500)]
)
def test_the_browser_awaits_the_quiet_time_of_the_network_or_the_given_one(
    network: str, given_ms: int | None, quiet_ms: int, tmp_path: Path
) -> None:
    commands = []

    def begin(spec: ReplaySpec, command: list[str], **_: object) -> Replay:
        commands.append(command)
        raise EyelevelError("it is not begun")

    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()[network], protocols.load()["quic"], Loading(quiet_ms=given_ms))
    assert load(setting, tmp_path, preparation=Load(setting, tmp_path, begin=begin)) == "it is not begun"
    visit = from_argument(commands[0][-1])
    options = configuration(page_of(site, None, None), tmp_path, 1, visit.limit_s, visit.quiet_ms, film=visit.film)
    assert visit.quiet_ms == options["pageCompleteWaitTime"] == quiet_ms


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (None, None),
        ("real-time priority", None),
        (
            "real-time priority, kernel stamps",
            "the network kept time with real-time priority, that of other runs with real-time priority, kernel stamps",
        ),
    ],
)
def test_a_load_whose_network_kept_time_otherwise_has_failed(
    tmp_path: Path, wanted: str | None, reason: str | None
) -> None:
    kept = {"timekeeping": "real-time priority"}
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()["dsl"], protocols.load()["tcp"], timekeeping=wanted)
    replay = EndedReplay(ReplayOutcome(0, kept))
    assert load(setting, tmp_path, preparation=Load(setting, tmp_path, begin=lambda *_, **__: replay)) == reason
    assert json.loads((tmp_path / REPLAY_EVIDENCE).read_text()) == kept


class FailingInstrument:
    """An instrument that fails when a load is over."""

    @contextmanager
    def around_load(self, _: ObservedLoad) -> Iterator[None]:
        yield
        raise EyelevelError("the instrument fails")


def test_a_load_whose_instrument_fails_is_over_for_loads_that_share_its_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("measure.run.load.instruments", lambda: [FailingInstrument()])
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()["mss"], protocols.load()["tcp"])
    sharing = SharedProcessors(tmp_path)
    preparation = Load(setting, tmp_path, shared=True, begin=lambda *_, **__: EndedReplay(ReplayOutcome(0, {})))
    assert load(setting, tmp_path, preparation=preparation, moments=Moments(sharing=sharing)) == "the instrument fails"
    assert [line.split()[1] for line in (tmp_path / LOADS).read_text().splitlines()] == ["+1", "-1"]
    assert sharing.concurrent_loads == 1.0


class StarvingReplay(EndedReplay):
    """A replay whose visit does nothing at idle priority."""

    def __init__(self, stdin: int) -> None:
        super().__init__(ReplayOutcome(0, {"timekeeping": "real-time priority"}))
        self.ended, self._report = os.pipe()
        self._visit = socket.socket(fileno=os.dup(stdin))

    def go_on(self) -> None:
        """Show an empty page, and make the load."""
        self._visit.sendall(UP + READY + OVER)

    def close(self) -> None:
        super().close()
        os.close(self._report)
        self._visit.close()


def test_a_load_that_starves_at_idle_priority_gets_ordinary_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to busy programs, each such load waited for its time limit."""
    replays = list[StarvingReplay]()

    class Starving(Policy):
        def lift(self, root: int) -> None:
            replays[0].go_on()

    def begin(*_: object, stdin: int, **__: object) -> Replay:
        replays.append(StarvingReplay(stdin))
        return replays[0]

    monkeypatch.setattr("measure.run.load.STARVED_S", 0.05)
    monkeypatch.setattr("measure.run.load.Load", partial(Load, begin=begin))
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()["mss"], protocols.load()["tcp"])
    sharing = SharedProcessors(tmp_path)
    sharing.idle = Starving()
    assert load(setting, tmp_path, moments=Moments(sharing=sharing)) is None
    assert sharing.started_idle is False


def test_a_load_that_shares_processors_is_prepared_at_idle_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beginnings = []

    def begin(_: ReplaySpec, __: list[str], *, beginning: list[str], **___: object) -> Replay:
        beginnings.append(beginning)
        raise EyelevelError("it is not begun")

    monkeypatch.setattr("measure.run.load.Load", partial(Load, begin=begin))
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()["mss"], protocols.load()["tcp"])
    shared = SharedProcessors(tmp_path)
    shared.idle = idle = Policy()
    shared.concurrent_loads = 2.0  # of the load before
    for sharing in (ALONE, shared):
        assert load(setting, tmp_path, moments=Moments(sharing=sharing)) == "it is not begun"
    assert [list(beginning) for beginning in beginnings] == [[], idle.beginning()]
    assert shared.started_idle and shared.concurrent_loads is None  # the load has not begun
