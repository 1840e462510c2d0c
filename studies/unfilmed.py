"""One load of a study, without a film: made, and held to the gates of a campaign but for those of the film."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.files import write_atomically
from measure.campaign.attempt import Circumstances
from measure.run.evidence import ATTEMPT, Evidence
from measure.run.gates import LOAD_GATES, MACHINE_GATES, Claim, reason_against, request_failed
from measure.run.load import Instruments, PageLoad, load
from studies.runs import Setting

GATES = (*LOAD_GATES, request_failed, *MACHINE_GATES)


def load_unfilmed(
    setting: Setting,
    seed: int,
    circumstances: Circumstances,
    folder: Path,
    instruments: Instruments,
) -> tuple[str | None, dict[str, Any]]:
    """Load the page once; returns why the replay failed, if it did, and how the load was made, which is in `folder`
    with all that it left. `seed` and `instruments` are as in `measure.run.load`."""
    started_at, clock, started = now_iso(), time.time(), time.monotonic()
    page = PageLoad(setting.site, setting.network, setting.protocol, repeatable=True, film=False)
    failure = load(page, folder, seed=seed, layout=circumstances.layout, instruments=instruments)
    seconds = time.monotonic() - started
    made = {
        "started_at": started_at,
        "seconds": round(seconds, 3),
        "clock_shift_s": round(time.time() - clock - seconds, 3),
        "canary": asdict(circumstances.canary) if circumstances.canary else None,
        "slowness": round(circumstances.slowness, 3),
    }
    write_atomically(folder / ATTEMPT, json.dumps(made, indent=1) + "\n")
    return failure, made


def reason_against_load(setting: Setting, evidence: Evidence) -> str | None:
    """Why a load of `setting` with this evidence must not count, with the gate's name before it, or None."""
    claim = Claim(setting.protocol.http_version, frozenset(setting.site.servers))
    return reason_against(evidence, claim, GATES)
