"""One page load as the client of a replay, from outside: the site is replayed, and `measure.run.visit` run in it."""

import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from base.errors import EyelevelError
from base.files import write_json
from base.processes import pinned
from browsers.registry import browser_named
from measure.host.affinity import Layout
from measure.run.browser import load_limit_s
from measure.run.evidence import REPLAY_EVIDENCE, REPLAY_LOG, REQUEST_LOG, last_line
from measure.run.processor import sampling
from measure.run.setting import Setting
from measure.run.visit import VisitSpec
from replay import ReplaySpec
from replay import run as replay
from servers.registry import server_of


@dataclass(frozen=True)
class Instruments:
    """What looks on while a page is loaded.

    `monitor` runs beside the servers (`replay.spec`); `around` is a command that runs the visit, which is given after
    it. Servers that can log their connections do so to `qlog` (`replay.spec`).
    """

    monitor: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    qlog: Path | None = None


def load(
    setting: Setting,
    folder: Path,
    *,
    layout: Layout | None = None,
    instruments: Instruments = Instruments(),
) -> str | None:
    """Load the page of `setting` once; returns why the replay failed, if it did.

    What the load leaves is in `folder` (see `measure.run.visit`), with the servers' log of requests (`REQUEST_LOG`)
    and the settings as they were read back (`REPLAY_EVIDENCE`). Each part runs on its cores of `layout`.
    """
    site, loading = setting.site, setting.loading
    spec = ReplaySpec(
        site.folder,
        setting.network,
        setting.protocol,
        folder / REQUEST_LOG,
        repeatable=loading.repeatable,
        seed=setting.seed,
        monitor=instruments.monitor,
        qlog=instruments.qlog,
        server_cores=layout.servers if layout else (),
        emulator_cores=layout.emulator if layout else (),
    )
    visit = VisitSpec(
        site.folder,
        setting.protocol,
        round(loading.limit_s or load_limit_s(site, setting.network), 3),
        folder,
        film=loading.filmed,
        film_cores=layout.film if layout else (),
        quiet_ms=setting.quiet_ms,
        browser=loading.browser,
    )
    observation = partial(
        sampling,
        folder=folder,
        browser=browser_named(loading.browser),
        server=server_of(setting.protocol),
        cores=layout.analysis if layout else (),
    )
    command = [*instruments.around, *pinned(layout.browser if layout else ()), *visit.command()]
    with (folder / REPLAY_LOG).open("wb") as log:
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log.fileno(), "stderr": log.fileno()}
            outcome = replay(spec, command, observation, **streams)
        except EyelevelError as error:
            last = last_line(folder / REPLAY_LOG)
            return f"{error}; the last line of {REPLAY_LOG}: {last}" if last else str(error)
    write_json(folder / REPLAY_EVIDENCE, outcome.evidence)
    timekeeping = outcome.evidence["timekeeping"]
    if setting.timekeeping not in (None, timekeeping):
        return f"the network kept time with {timekeeping}, that of other runs with {setting.timekeeping}"
    return None
