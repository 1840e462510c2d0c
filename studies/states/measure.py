"""What congestion control does while a page loads, over time.

QUIC's servers log it by themselves, TCP's connections are looked at in the kernel every few milliseconds; either way a
run's folder (see `studies.runs`) has a qlog for each connection (see `servers.qlog`), and the load's evidence.
Its `run.json` tells beside the rest when the navigation began and when the page had all it asked for.
"""

import gzip
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from measure.campaign.attempt import REPLAY_FAILED, Circumstances
from measure.run.evidence import Evidence, read_evidence
from measure.run.load import Instruments
from measure.run.visit import HAR
from servers.qlog import CLOSED, METRICS, Qlog, read_qlogs
from servers.registry import server_of
from studies.runs import Judged, Setting
from studies.states.socket_monitor import SAMPLING
from studies.states.socket_series import write_qlogs
from studies.unfilmed import load_unfilmed, reason_against_load
from tuning.protocols import Protocol

STUDY = "states"

# How long the kernel may not have been looked at during a load: ten times as long as usual.
LONGEST_GAP_MS = 50.0


def make(setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
    """Load the page once, with a qlog of each of its connections in `folder`, and judge it."""
    logged = server_of(setting.protocol).logs_connections
    failure, made = load_unfilmed(
        setting,
        seed,
        circumstances,
        folder,
        Instruments(qlog=folder)
        if logged
        else Instruments(monitor=(sys.executable, "-m", "studies.states.socket_monitor", str(folder))),
    )
    if failure:
        return Judged(f"{REPLAY_FAILED}: {failure}", document=made)
    evidence = read_evidence(folder, filmed=False)
    if reason := reason_against_load(setting, evidence):
        return Judged(reason, document=made)
    load_s = loading_time(folder, evidence)
    made |= {"navigated_s": load_s[0], "finished_s": load_s[1], "plt_ms": evidence.plt}
    try:
        if not logged:
            write_qlogs(folder)
        logs = read_qlogs(folder)
    except EyelevelError as error:
        return Judged(f"states: {error}", document=made)
    reason = fault(setting.protocol, logs) or ("" if logged else _sampling_fault(load_s, folder))
    told = f"PLT {evidence.plt:.0f} ms, {len(logs)} connections"
    return Judged(reason and f"states: {reason}", told, {**made, "connections": len(logs)})


def loading_time(folder: Path, evidence: Evidence) -> tuple[float, float]:
    """When the navigation began, and when the page had all that it asked for, in s since 1970."""
    log = json.loads(gzip.decompress((folder / HAR).read_bytes()))["log"]
    page, own = log["pages"][-1], {request.url for request in evidence.requests if request.by_browser}
    ends = [
        _seconds(entry) + entry["time"] / 1e3
        for entry in log["entries"]
        if entry["pageref"] == page["id"] and entry["request"]["url"] not in own
    ]
    began = _seconds(page)
    return began, max(ends, default=began)


def _seconds(dated: dict[str, Any]) -> float:
    return datetime.fromisoformat(dated["startedDateTime"]).timestamp()


def fault(protocol: Protocol, logs: list[Qlog]) -> str:
    """Why the logs must not be believed, or nothing."""
    carrying = [log for log in logs if log.named(METRICS)]
    if not carrying:
        return "no connection was logged"
    for log in carrying:
        # A server that logs its connections closes them all before it ends.
        if server_of(protocol).logs_connections and not log.named(CLOSED):
            return f"{log.title}: the log was cut short"
        control = log.parameters.get("congestion_control")
        if control != protocol.congestion_control:
            return f"{log.title}: {control} instead of {protocol.congestion_control}"
    return ""


def _sampling_fault(load_s: tuple[float, float], folder: Path) -> str:
    for at_s, gap_ms in json.loads((folder / SAMPLING).read_text())["gaps"]:
        if load_s[0] <= at_s <= load_s[1] + gap_ms / 1e3 and gap_ms > LONGEST_GAP_MS:
            return f"the kernel was not asked for {gap_ms:.0f} ms"
    return ""
