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
from measure.campaign.attempt import Circumstances
from measure.gates import REPLAY
from measure.run.evidence import Evidence, read_evidence
from measure.run.visit import HAR
from servers.qlog import CLOSED, METRICS, SUFFIX, Qlog, read_qlog
from studies.runs import Judged, Setting
from studies.states.socket_series import write_qlogs
from studies.states.socket_witness import SAMPLING
from studies.unfilmed import load_unfilmed, reason_against_load
from tuning.protocols import Protocol

STUDY = "states"

# How long the kernel may not have been looked at during a load: ten times as long as usual.
LONGEST_GAP_MS = 50.0


def make(setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
    """Load the page once, with a qlog of each of its connections in `folder`, and judge it."""
    tcp = setting.protocol.transport == "tcp"
    failure, made = load_unfilmed(
        setting,
        seed,
        circumstances,
        folder,
        witness=(sys.executable, "-m", "studies.states.socket_witness", str(folder)) if tcp else (),
        qlog=None if tcp else folder,
    )
    if failure:
        return Judged(f"{REPLAY.name}: {failure}", document=made)
    evidence = read_evidence(folder, filmed=False)
    if reason := reason_against_load(setting, evidence):
        return Judged(reason, document=made)
    load_s = loading_time(folder, evidence)
    made |= {"navigated_s": load_s[0], "finished_s": load_s[1], "plt_ms": evidence.plt}
    try:
        if tcp:
            write_qlogs(folder)
        logs = [read_qlog(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    except EyelevelError as error:
        return Judged(f"states: {error}", document=made)
    reason = fault(setting.protocol, logs) or (_sampling_fault(load_s, folder) if tcp else "")
    told = f"PLT {evidence.plt:.0f} ms, {len(logs)} connections"
    return Judged(reason and f"states: {reason}", told, {**made, "connections": len(logs)})


def loading_time(folder: Path, evidence: Evidence) -> tuple[float, float]:
    """When the navigation began, and when the page had all that it asked for, in s since 1970."""
    log = json.loads(gzip.decompress((folder / HAR).read_bytes()))["log"]
    page, own = log["pages"][-1], {request.url for request in evidence.requests if request.own}
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
        # quic_server closes all connections before it ends.
        if protocol.transport == "quic" and not log.named(CLOSED):
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
