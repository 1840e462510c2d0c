"""One attempt at a run: made, and judged by what it left."""

import json
import sys
from pathlib import Path

from base.errors import EyelevelError
from measure.campaign.attempt import REPLAY_FAILED, Circumstances
from measure.captures.recording import add_keys
from measure.run.evidence import REPLAY_LOG, last_line, read_evidence
from measure.run.load import Instruments
from studies.packets.files import CLIENT, KEYS, PING, SERVERS
from studies.packets.ping import Pinged, fault
from studies.runs import Judged, Setting
from studies.unfilmed import load_unfilmed, reason_against_load

ENDS = (sys.executable, "-m", "studies.packets.ends")


def make(setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
    """Load the page once, captured at both ends in `folder`, and judge it."""
    address, rtt_ms = next(iter(setting.site.addresses.values()))[0], setting.network.min_rtt_ms
    failure, made = load_unfilmed(
        setting,
        seed,
        circumstances,
        folder,
        Instruments((*ENDS, "servers", str(folder)), (*ENDS, "client", str(folder), address, str(rtt_ms))),
    )
    reason = f"{REPLAY_FAILED}: {failure}" if failure else reason_against_captured(setting, folder)
    told = ""
    if (folder / PING).exists():
        pinged = read_ping(folder)
        told = f"ping {pinged.mean_ms:.2f} ± {pinged.sd_ms:.2f} ms"
    return Judged(reason, told, made)


def read_ping(folder: Path) -> Pinged:
    """What the pings before the load in `folder` found."""
    return Pinged(**json.loads((folder / PING).read_text()))


def reason_against_captured(setting: Setting, folder: Path) -> str:
    """Why the load of `setting` in `folder` must not count, or nothing; if it may, puts the keys into its captures."""
    if not (folder / PING).exists():
        return f"ping: {last_line(folder / REPLAY_LOG)}"
    if wrong := fault(read_ping(folder), setting.network):
        return f"ping: {wrong}"
    if reason := reason_against_load(setting, read_evidence(folder, filmed=False)):
        return reason
    for name in (CLIENT, SERVERS, KEYS):
        if not (folder / name).exists():
            return f"capture: there is no {name}; {last_line(folder / REPLAY_LOG)}"
    try:
        for name in (CLIENT, SERVERS):
            add_keys(folder / name, folder / KEYS)
    except EyelevelError as error:
        return f"capture: {error}"
    return ""
