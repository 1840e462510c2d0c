"""One page load as the client of a replay, from outside: the site is replayed, and `measure.run.visit` run in it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from base.errors import EyelevelError
from base.files import write_atomically
from base.processes import pinned
from measure.host.affinity import Layout
from measure.run.aliases import base_name
from measure.run.browser import QUIET_MS, load_limit_s
from measure.run.evidence import REPLAY_LOG, REQUEST_LOG
from record.site import Site
from replay import ReplaySpec
from replay import run as replay
from tuning.networks import Network
from tuning.protocols import Protocol

REPLAY_EVIDENCE = "replay.json"


def load(
    site: Site,
    network: Network,
    protocol: Protocol,
    folder: Path,
    *,
    repeatable: bool,
    film: bool = True,
    quiet_ms: int = QUIET_MS,
    limit_s: float | None = None,
    layout: Layout | None = None,
    seed: int | None = None,
    witness: Sequence[str] = (),
    around: Sequence[str] = (),
    qlog: Path | None = None,
) -> str | None:
    """Load `site` once behind `network` over `protocol`; returns why the replay failed, if it did.

    What the load leaves is in `folder` (see `measure.run.visit`), with what the servers were asked (`REQUEST_LOG`)
    and the settings as they were read back (`REPLAY_EVIDENCE`). Each part runs on its cores of `layout`; the
    network's losses are drawn from `seed`. The load may take `limit_s`, or what suits its size and the network;
    `quiet_ms` as in `measure.run.visit`.

    `witness` runs beside the servers (`replay.spec`); `around` is a command that runs the visit, given after it.
    The servers of QUIC log their connections to `qlog` (`replay.spec`).
    """
    spec = ReplaySpec(site.folder, network, protocol, folder / REQUEST_LOG, repeatable=repeatable, seed=seed)
    spec = replace(spec, witness=tuple(witness), qlog=qlog)
    if layout:
        spec = replace(spec, server_cores=layout.servers, emulator_cores=layout.emulator)
    visit: list[str | Path] = [*around, *pinned(layout.browser if layout else ())]
    visit += [
        sys.executable,
        "-m",
        "measure.run.visit",
        "--site",
        str(site.folder),
        "--proto",
        base_name(protocol.name),
    ]
    visit += ["--limit", f"{limit_s or load_limit_s(site, network):.3f}", "--into", str(folder)]
    visit += ["--quiet-ms", str(quiet_ms)]
    visit += [] if film else ["--no-film"]
    visit += ["--film-cores", ",".join(str(core) for core in layout.film)] if layout else []
    with (folder / REPLAY_LOG).open("wb") as log:
        try:
            outcome = replay(spec, visit, stdin=subprocess.DEVNULL, stdout=log.fileno(), stderr=log.fileno())
        except EyelevelError as error:
            return str(error)
    write_atomically(folder / REPLAY_EVIDENCE, json.dumps(outcome.evidence, indent=1) + "\n")
    return None
