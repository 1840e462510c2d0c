"""The state of congestion control over time while a page loads.

QUIC's servers log it themselves; TCP's connections are read from the kernel every few milliseconds. In both cases a
run's folder has a qlog for each connection (see `base.qlog`), the load's evidence, and `loading.json`: when the
navigation began and when the page had received everything that it requested (s since 1970).
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import read_json, write_json
from base.qlog import CLOSED, METRICS, QLOG_ENDING, Qlog, read_qlogs
from base.structure import structured
from dataset.har import started_s
from dataset.reasons import Reason
from dataset.run_files import HAR
from measure.campaign.method import Method
from measure.run.evidence import Evidence
from measure.run.load import Observers
from measure.run.setting import Setting
from servers.kernel_sockets import ACCOUNTS
from servers.registry import server_of
from studies.campaign import study_campaign
from studies.states.socket_monitor import INTERVAL_S, SAMPLING
from studies.states.socket_series import write_qlogs
from studies.study import Measurement, Request
from tuning.protocols import Protocol

STUDY = "states"

# The longest time in a load without a sample from the kernel: ten times the usual interval.
LONGEST_GAP_MS = 50.0


LOADING = "loading.json"


@dataclass(frozen=True)
class LoadingTime:
    """When a navigation began, and when the page had received everything that it requested, in s since 1970."""

    navigated_s: float
    finished_s: float


@dataclass(frozen=True)
class StatesMethod(Method):
    """Loads a page with a qlog of each of its connections, which must be complete."""

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"sampling_ms": INTERVAL_S * 1e3}

    def observers(self, setting: Setting, folder: Path) -> Observers:
        """See `Method`."""
        if server_of(setting.protocol).logs_connections:
            return Observers(qlog=folder)
        return Observers(monitor=(sys.executable, "-m", "studies.states.socket_monitor", str(folder)))

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """See `Method`."""
        if reason := super().reason_against(setting, folder, evidence):
            return reason
        try:
            fault = self._fault(setting, folder, evidence)
        except (EyelevelError, OSError) as error:
            fault = str(error)
        return Reason(STUDY, fault) if fault else None

    def _fault(self, setting: Setting, folder: Path, evidence: Evidence) -> str:
        loading = loading_time(folder, evidence)
        write_json(folder / LOADING, asdict(loading))
        if (folder / ACCOUNTS).exists():
            write_qlogs(folder)
        sampled = not server_of(setting.protocol).logs_connections
        return log_fault(setting.protocol, read_qlogs(folder)) or (_sampling_fault(loading, folder) if sampled else "")


def require_account(protocol: Protocol) -> None:
    """Raises EyelevelError if neither the server of `protocol` nor the kernel reports the state of congestion
    control."""
    if not (protocol.in_kernel or server_of(protocol).logs_connections):
        raise EyelevelError(
            f"{protocol.name}: {protocol.server} gives no account of its congestion control over {protocol.transport}, "
            "so its states cannot be logged"
        )


def read_loading(folder: Path) -> LoadingTime:
    """When the navigation of the run in `folder` began, and when the run had finished. Raises EyelevelError."""
    return structured(read_json(folder / LOADING), LoadingTime, f"{folder / LOADING} is broken")


def loading_time(folder: Path, evidence: Evidence) -> LoadingTime:
    """The times of the load in `folder`, from the developer tools."""
    log = read_json(folder / HAR)["log"]
    page = log["pages"][-1]
    of_browser = {request.url for request in evidence.requests if request.by_browser}
    ends = [
        started_s(entry) + entry["time"] / 1e3
        for entry in log["entries"]
        if entry["pageref"] == page["id"] and entry["request"]["url"] not in of_browser
    ]
    began = started_s(page)
    return LoadingTime(began, max(ends, default=began))


def log_fault(protocol: Protocol, logs: list[Qlog]) -> str:
    """Why the logs must not be trusted; empty if they may be."""
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


def _sampling_fault(loading: LoadingTime, folder: Path) -> str:
    for at_s, gap_ms in read_json(folder / SAMPLING)["gaps"]:
        if loading.navigated_s <= at_s <= loading.finished_s + gap_ms / 1e3 and gap_ms > LONGEST_GAP_MS:
            return f"no account of the kernel for {gap_ms:.0f} ms"
    return ""


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    chosen = study_campaign(request, STUDY, StatesMethod())
    for protocol in chosen.protocols.values():
        require_account(protocol)
    return Measurement(chosen, summary=lambda: [f"logged: {chosen.folder}; qvis opens the {QLOG_ENDING} files"])
