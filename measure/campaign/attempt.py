"""One attempt at a run: made, kept, and judged by what it left.

    made (`make`)  →  its film analysed (`evidence.analyse_film`)  →  judged (`judge`)

`attempt.json` in its folder says that it was made in full: it is written last, when all else is on the disk. So
what was made before a power cut is judged after it, and what was not is made again.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.files import sync_file, sync_folder, write_atomically
from browsers.browsertime.configuration import QUIET_MS
from measure.campaign.plan import Run
from measure.campaign.results import Row
from measure.host.affinity import Layout
from measure.host.canary import Canary
from measure.run.browser import window
from measure.run.evidence import ATTEMPT, read_evidence
from measure.run.gates import Claim, reason_against
from measure.run.load import PageLoad, load
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

# A replay that failed is the testbed's fault, not the page's.
REPLAY_FAILED = "replay"


@dataclass(frozen=True)
class Setting:
    """What is loaded, behind what, over what; `repeatable` and `seed` as in `replay.spec`, the rest as in
    `measure.run.load`."""

    site: Site
    network: Network
    protocol: Protocol
    repeatable: bool
    seed: int | None = None
    filmed: bool = True
    quiet_ms: int = QUIET_MS
    limit_s: float | None = None


@dataclass(frozen=True)
class Circumstances:
    """Where a block's runs are made: the block's number, the machine, its canary, how many times as long as usual
    that took, and which cores do what."""

    block: int
    machine: str
    canary: Canary | None = None
    slowness: float = 1.0
    layout: Layout | None = None


def make(setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1) -> None:
    """Load the page once in a fresh browser behind a fresh replay; what that leaves is in `folder`.

    Another `attempt` meets other losses.
    """
    started_at, clock, started = now_iso(), time.time(), time.monotonic()
    page = PageLoad(
        setting.site,
        setting.network,
        setting.protocol,
        setting.repeatable,
        film=setting.filmed,
        quiet_ms=setting.quiet_ms,
        limit_s=setting.limit_s,
    )
    seed = None if setting.seed is None else setting.seed + attempt
    failure = load(page, folder, seed=seed, layout=circumstances.layout)
    seconds = time.monotonic() - started
    made = {
        "started_at": started_at,
        "seconds": round(seconds, 3),
        "clock_shift_s": round(time.time() - clock - seconds, 3),
        "failure": failure,
        "block": circumstances.block,
        "machine": circumstances.machine,
        "canary": asdict(circumstances.canary) if circumstances.canary else None,
        "slowness": round(circumstances.slowness, 3),
    }
    for file in folder.iterdir():
        sync_file(file)
    sync_folder(folder)
    write_atomically(folder / ATTEMPT, json.dumps(made, indent=1) + "\n")
    sync_folder(folder.parent)


def is_made(folder: Path) -> bool:
    """Whether the attempt in `folder` was made in full."""
    return (folder / ATTEMPT).exists()


def judge(setting: Setting, run: Run, number: int, folder: Path, campaign: Path) -> Row:
    """The row of attempt `number` at `run`, of which `folder`, within the `campaign`'s, has the evidence."""
    made: dict[str, Any] = json.loads((folder / ATTEMPT).read_text())
    evidence = read_evidence(folder, filmed=setting.filmed)
    shown = window(setting.site)
    claim = Claim(
        setting.protocol.http_version,
        frozenset(setting.site.servers),
        (shown.width, shown.height),
        setting.filmed,
        setting.limit_s,
    )
    reason = f"{REPLAY_FAILED}: {made['failure']}" if made["failure"] else reason_against(evidence, claim)
    visual, canary = evidence.visual, made["canary"] or {}
    return Row(
        site=run.site,
        network=run.network,
        protocol=run.protocol,
        run=run.number,
        attempt=number,
        valid=reason is None,
        reason=reason or "",
        fvc=visual.fvc if visual else None,
        lvc=visual.lvc if visual else None,
        vc85=visual.vc85 if visual else None,
        si=visual.si if visual else None,
        plt=evidence.plt,
        **asdict(evidence.asked),
        unrecorded=evidence.unrecorded,
        started_at=made["started_at"],
        seconds=made["seconds"],
        folder=str(folder.relative_to(campaign)),
        block=made["block"],
        machine=made["machine"],
        canary_cpu_ms=canary.get("cpu_ms"),
        canary_page_ms=canary.get("page_ms"),
    )
