"""One page load as the client of a replay, from outside: the site is replayed, and `measure.run.visit` run in it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from base.files import write_atomically
from base.processes import pinned
from browsers.browsertime.configuration import QUIET_MS
from browsers.registry import DEFAULT
from measure.host.affinity import Layout
from measure.run.browser import load_limit_s
from measure.run.evidence import REPLAY_LOG, REQUEST_LOG
from measure.run.visit import VisitSpec
from record.site import Site
from replay import ReplaySpec
from replay import run as replay
from tuning.networks import Network
from tuning.protocols import Protocol

REPLAY_EVIDENCE = "replay.json"


@dataclass(frozen=True)
class PageLoad:
    """What is loaded, behind what, over what, and how: `repeatable` as in `replay.spec`.

    It may take `limit_s`, or what suits its size and the network; `film`, `quiet_ms` and `browser` as in
    `measure.run.visit`.
    """

    site: Site
    network: Network
    protocol: Protocol
    repeatable: bool
    film: bool = True
    quiet_ms: int = QUIET_MS
    limit_s: float | None = None
    browser: str = DEFAULT


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
    page: PageLoad,
    folder: Path,
    *,
    seed: int | None = None,
    layout: Layout | None = None,
    instruments: Instruments = Instruments(),
) -> str | None:
    """Load `page` once; returns why the replay failed, if it did.

    What the load leaves is in `folder` (see `measure.run.visit`), with the servers' log of requests (`REQUEST_LOG`)
    and the settings as they were read back (`REPLAY_EVIDENCE`). Each part runs on its cores of `layout`; the
    network's losses are drawn from `seed`.
    """
    spec = ReplaySpec(
        page.site.folder,
        page.network,
        page.protocol,
        folder / REQUEST_LOG,
        repeatable=page.repeatable,
        seed=seed,
        monitor=instruments.monitor,
        qlog=instruments.qlog,
        server_cores=layout.servers if layout else (),
        emulator_cores=layout.emulator if layout else (),
    )
    visit = VisitSpec(
        page.site.folder,
        page.protocol,
        round(page.limit_s or load_limit_s(page.site, page.network), 3),
        folder,
        film=page.film,
        film_cores=layout.film if layout else (),
        quiet_ms=page.quiet_ms,
        browser=page.browser,
    )
    command = [*instruments.around, *pinned(layout.browser if layout else ()), *visit.command()]
    with (folder / REPLAY_LOG).open("wb") as log:
        try:
            outcome = replay(spec, command, stdin=subprocess.DEVNULL, stdout=log.fileno(), stderr=log.fileno())
        except EyelevelError as error:
            return str(error)
    write_atomically(folder / REPLAY_EVIDENCE, json.dumps(outcome.evidence, indent=1) + "\n")
    return None
