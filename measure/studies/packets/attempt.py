"""One attempt at a run: made, and judged by what it left."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eyelevel.clock import now_iso
from eyelevel.errors import EyelevelError
from eyelevel.files import write_atomically
from measure.campaign.attempt import REPLAY_FAILED, Circumstances
from measure.run.capture import add_keys
from measure.run.evidence import ATTEMPT, REPLAY_LOG, last_line, read_evidence
from measure.run.gates import HTTP_VERSION, LOAD_GATES, MACHINE_GATES, Claim, reason_against, request_failed
from measure.run.load import load
from measure.run.witness import CAPTURE
from measure.studies.packets import CLIENT, KEYS, PING, RUN, SERVERS
from measure.studies.packets.ping import Pinged, fault
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

assert CAPTURE == SERVERS
GATES = (*LOAD_GATES, request_failed, *MACHINE_GATES)
ENDS = (sys.executable, "-m", "measure.studies.packets.ends")


@dataclass(frozen=True)
class Setting:
    """What is loaded, behind what, over what."""

    site: Site
    network: Network
    protocol: Protocol


@dataclass(frozen=True)
class Judged:
    """An attempt's verdict: why it does not count, or nothing; the ping's mean and deviation, if there was one."""

    reason: str
    ping: Pinged | None

    @property
    def valid(self) -> bool:
        return not self.reason


def make(setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
    """Load the page once, captured at both ends, and judge it; all of it is in `folder`."""
    started_at, clock, started = now_iso(), time.time(), time.monotonic()
    address = next(iter(setting.site.addresses.values()))[0]
    failure = load(
        setting.site,
        setting.network,
        setting.protocol,
        folder,
        repeatable=True,
        film=False,
        layout=circumstances.layout,
        seed=seed,
        witness=(*ENDS, "servers", str(folder)),
        around=(*ENDS, "client", str(folder), address, str(setting.network.min_rtt_ms)),
    )
    seconds = time.monotonic() - started
    made: dict[str, Any] = {
        "started_at": started_at,
        "seconds": round(seconds, 3),
        "clock_shift_s": round(time.time() - clock - seconds, 3),
        "failure": failure,
        "seed": seed,
        "machine": circumstances.machine,
        "canary": asdict(circumstances.canary) if circumstances.canary else None,
        "slowness": round(circumstances.slowness, 3),
    }
    write_atomically(folder / ATTEMPT, json.dumps(made, indent=1) + "\n")
    judged = judge(setting, failure, folder)
    told = {"valid": judged.valid, "reason": judged.reason, "network": asdict(setting.network)}
    told |= {"protocol": asdict(setting.protocol), **made}
    write_atomically(folder / RUN, json.dumps(told, indent=1) + "\n")
    return judged


def judge(setting: Setting, failure: str | None, folder: Path) -> Judged:
    """The verdict on the attempt in `folder`, whose replay had this `failure`; puts the keys into its captures."""
    if failure:
        return Judged(f"{REPLAY_FAILED}: {failure}", None)
    if not (folder / PING).exists():
        return Judged(f"ping: {last_line(folder / REPLAY_LOG)}", None)
    pinged = Pinged(**json.loads((folder / PING).read_text()))
    if wrong := fault(pinged, setting.network):
        return Judged(f"ping: {wrong}", pinged)
    # The visit's own failure is told by what it left; the captures' by what is missing.
    for name in (CLIENT, SERVERS, KEYS):
        if not (folder / name).exists():
            return Judged(f"capture: there is no {name}; {last_line(folder / REPLAY_LOG)}", pinged)
    claim = Claim(HTTP_VERSION[setting.protocol.transport], frozenset(setting.site.servers))
    if reason := reason_against(read_evidence(folder, filmed=False), claim, GATES):
        return Judged(reason, pinged)
    try:
        for name in (CLIENT, SERVERS):
            add_keys(folder / name, folder / KEYS)
    except EyelevelError as error:
        return Judged(f"capture: {error}", pinged)
    return Judged("", pinged)
