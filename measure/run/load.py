"""One page load, seen from outside its replay: the site is replayed, and the replay's client is `measure.run.visit`.

    prepared (`Load`)  →  begun  →  quiet  →  over: its film has ended, nothing is measured any more  →  ended

`Load` starts namespaces, servers, emulated network, X server, and a browser that shows an empty page.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from base.errors import EyelevelError
from base.files import write_json
from base.processes import first_readable
from dataset.run_files import CROSS_TRAFFIC_SAMPLES, REPLAY_EVIDENCE, REPLAY_LOG, REQUEST_LOG
from measure.host.affinity import Layout
from measure.host.idle_priority import IdlePriority, require_ordinary
from measure.host.pace import cores_of
from measure.host.sharing import ALONE, Sharing
from measure.instruments.contract import ObservedLoad, instruments
from measure.run.browser import load_limit_s
from measure.run.evidence import last_line
from measure.run.setting import Setting
from measure.run.turn import LATEST_S, OVER, PAINTED, QUIET, READY, UP, Prompter
from measure.run.visit_spec import VisitSpec
from replay import Replay, ReplayOutcome, ReplaySpec
from replay.hops.registry import proxy_of
from servers.registry import server_of
from tuning.defaults import RECORDED
from tuning.devices import device_of


@dataclass(frozen=True)
class Observers:
    """The programs of a method that observe a load from within its replay, and how it slows the load.

    `monitor` runs next to the servers (`replay.spec`). `around` is a command that runs the visit, whose command line is
    appended to it. Servers that can log their connections write to `qlog` (`replay.spec`). `processor_share` is that of
    `measure.instruments.contract.ObservedLoad`.
    """

    monitor: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    qlog: Path | None = None
    processor_share: float | None = None


@dataclass(frozen=True)
class Moments:
    """Functions called during a load: `quiet` when its page has been quiet for a while (if that happens), and `over`
    when nothing is measured any more, though the load has not ended. `sharing`: the loads that share its
    processors."""

    quiet: Callable[[], object] = lambda: None
    over: Callable[[], object] = lambda: None
    sharing: Sharing = ALONE


NO_CALLS = Moments()

# A load whose servers or browser have not started at idle priority within this time (s) starves: other programs keep
# the processors busy. On processors that only loads share, starting takes a few seconds.
STARVED_S = 20.0


class Load:
    """A load of a page; it is prepared, and then made once.

    It ends when its context or the thread that began it ends. Its evidence is in `folder` (see `measure.run.visit`),
    with the servers' request log (`REQUEST_LOG`) and the settings as read back (`REPLAY_EVIDENCE`). Each part runs on
    its cores of `layout`.
    """

    def __init__(
        self,
        setting: Setting,
        folder: Path,
        *,
        layout: Layout | None = None,
        observers: Observers = Observers(),
        idle: IdlePriority | None = None,
        shared: bool = False,
        begin: Callable[..., Replay] = Replay,
    ) -> None:
        """Begin to prepare the load. This does not wait for anything; an error makes the load fail later.

        The load has `idle` priority, if given, until `lift` is called or it begins. If it is `shared`, its browser does
        not start before `make`. `begin` starts its replay.
        """
        self.folder = folder
        self._since_s = time.monotonic()
        self._setting, self._layout, self._shared = setting, layout, shared
        self._processor_share = observers.processor_share
        self._idle = idle
        self._ends = ExitStack()
        self._fault: str | None = None
        self._replay: Replay | None = None
        with ExitStack() as ends:
            self._prompter = ends.enter_context(closing(Prompter()))
            log = ends.enter_context((folder / REPLAY_LOG).open("wb"))
            streams = {"stdin": self._prompter.standard_input.fileno(), "stdout": log.fileno(), "stderr": log.fileno()}
            try:
                command = self._command(observers)
                beginning = idle.beginning() if idle else ()
                replay = begin(self._spec(observers), command, beginning=beginning, **streams)
                self._replay = ends.enter_context(closing(replay))
            except EyelevelError as error:
                self._fault = str(error)
            self._prompter.standard_input.close()
            if not shared:
                self._prompter.say_start()
            self._ends = ends.pop_all()

    def __enter__(self) -> "Load":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def age_s(self) -> float:
        """The time (s) since the load's preparation began."""
        return time.monotonic() - self._since_s

    def await_ready(self) -> None:
        """Wait until the load is prepared, or has failed."""
        if self._replay:
            self._prompter.await_sign(self._replay.ended, READY)

    def has_ended(self) -> bool:
        """Whether the load has failed before it began."""
        return self._replay is None or first_readable(self._replay.ended, timeout_s=0) is not None

    def lift(self) -> None:
        """Give the load ordinary priority if it has idle priority. Raises EyelevelError."""
        if self._idle and self._replay:
            try:
                self._idle.lift(self._replay.pid)
            except OSError as error:
                raise EyelevelError(f"idle priority cannot be lifted: {error}") from None

    def make(self, moments: Moments = NO_CALLS) -> str | None:
        """Let the load begin when it is ready, and wait for its end; returns why the replay failed, or None."""
        moments.sharing.expect()
        if not self._replay:
            return self._fault
        try:
            if moments.sharing.is_shared:
                self._start(self._replay, moments.sharing)
            self._become_ordinary(self._replay)
            outcome = self._made(self._replay, moments)
        except EyelevelError as error:
            last = last_line(self.folder / REPLAY_LOG)
            return f"{error}; the last line of {REPLAY_LOG}: {last}" if last else str(error)
        write_json(self.folder / REPLAY_EVIDENCE, outcome.evidence)
        timekeeping = outcome.evidence["timekeeping"]
        if self._setting.timekeeping not in (None, timekeeping):
            return f"the network kept time with {timekeeping}, that of other runs with {self._setting.timekeeping}"
        return None

    def close(self) -> None:
        """End the load at any stage; afterwards, only the files in its folder remain."""
        with suppress(EyelevelError):
            self.lift()  # otherwise its end would take long on a busy machine
        self._ends.close()

    def _start(self, replay: Replay, sharing: Sharing) -> None:
        """Let the browser start when it may, and wait until it has."""
        self._await_or_lift(replay, UP, sharing)
        with sharing.starting():
            self._prompter.say_start()
            self._await_or_lift(replay, READY, sharing)

    def _await_or_lift(self, replay: Replay, sign: bytes, sharing: Sharing) -> None:
        """Wait for `sign`. A load that starves at idle priority gets ordinary priority, since it would never start."""
        if self._prompter.await_sign(replay.ended, sign, timeout_s=STARVED_S) != sign and not self.has_ended():
            self.lift()
            sharing.started_idle = False
            self._prompter.await_sign(replay.ended, sign)

    def _become_ordinary(self, replay: Replay) -> None:
        """Make sure that the load is measured like one that was not prepared at idle priority. Raises EyelevelError."""
        if self._idle:
            self.lift()
            self.await_ready()
            # When the load was first lifted, its first process may not have had idle priority yet.
            self.lift()
            require_ordinary(replay.pid)
            self._idle = None

    def _made(self, replay: Replay, moments: Moments) -> ReplayOutcome:
        with ExitStack() as around:
            around.callback(moments.sharing.end)
            load = self._observed(replay.pid)
            for instrument in instruments():
                around.enter_context(instrument.around_load(load))
            with moments.sharing.painting():
                self._prompter.say_begin()
                self._prompter.await_sign(replay.ended, PAINTED, QUIET, OVER)
            if self._prompter.await_sign(replay.ended, QUIET, OVER) == QUIET:
                moments.quiet()
            self._prompter.await_sign(replay.ended, OVER)
        moments.over()
        replay.await_end()
        return replay.outcome()

    def _observed(self, root: int) -> ObservedLoad:
        setting = self._setting
        browser = setting.loading.browser
        return ObservedLoad(
            root,
            setting.site,
            setting.network,
            setting.protocol,
            browser,
            self._layout,
            self.folder,
            self.await_ready,
            self._processor_share,
        )

    def _spec(self, observers: Observers) -> ReplaySpec:
        setting, layout = self._setting, self._layout
        return ReplaySpec(
            setting.site.folder,
            setting.network,
            setting.protocol,
            self.folder / REQUEST_LOG,
            repeatable=setting.loading.repeatable,
            think_time=setting.loading.think_time == RECORDED,
            recorded_certificates=setting.loading.certificates == RECORDED,
            recorded_alpn=setting.loading.alpn == RECORDED,
            extra_rtts_ms=setting.loading.server_rtts.extra_ms(setting.site),
            seed=setting.seed,
            monitor=observers.monitor,
            qlog=observers.qlog,
            shells=setting.loading.shells,
            cross_traffic_awaits_turn=True,
            cross_traffic_log=self.folder / CROSS_TRAFFIC_SAMPLES,
            server_cores=layout.servers if layout else (),
            emulator_cores=layout.emulator if layout else (),
        )

    def _command(self, observers: Observers) -> list[str | Path]:
        site, loading, layout = self._setting.site, self._setting.loading, self._layout
        device = device_of(loading.browser)
        cores = layout.browser if layout else ()
        protocol = self._setting.protocol
        visit = VisitSpec(
            site.folder,
            protocol,
            server_of(protocol).connection_options(protocol),
            round(loading.limit_s or load_limit_s(site, self._setting.network), 3),
            self.folder,
            film=loading.filmed,
            cores=tuple(cores_of(device, cores)) if device else cores,
            film_cores=layout.film if layout else (),
            quiet_ms=self._setting.quiet_ms,
            browser=loading.browser,
            awaits_turn=True,
            # Other loads use shared processors all the time.
            idle_s=0.0 if self._shared else LATEST_S,
            proxy=proxy_of(self._setting.network),
        )
        return [*observers.around, *visit.command()]


def load(
    setting: Setting,
    folder: Path,
    *,
    layout: Layout | None = None,
    observers: Observers = Observers(),
    preparation: Load | None = None,
    moments: Moments = NO_CALLS,
) -> str | None:
    """Load the page of `setting` once (see `Load`); returns why the replay failed, or None.

    `preparation` is this load if its preparation has begun.
    """
    sharing = moments.sharing
    with preparation or Load(
        setting, folder, layout=layout, observers=observers, idle=sharing.idle, shared=sharing.is_shared
    ) as one:
        return one.make(moments)
