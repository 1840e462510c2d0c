"""A server's account of its own congestion window: for QUIC from its qlog, if it writes one; for TCP from the
kernel."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from base.qlog import METRICS, Qlog, read_qlogs
from servers.kernel_sockets import accounts_of_clients


@dataclass(frozen=True)
class ServerWindow:
    """From `at_s` (s since 1970) on: the window and the slow start threshold (None if there is none), in bytes."""

    at_s: float
    window_bytes: float
    threshold_bytes: float | None


def server_account(folder: Path, at_s: float) -> list[ServerWindow]:
    """The account, in order of time, of that connection in `folder` which had the largest window of those open at
    `at_s`; empty if there is none. Raises EyelevelError."""
    accounts = [list(_quic_windows(log)) for log in read_qlogs(folder)] or _tcp_windows(folder)
    there = [account for account in accounts if account and account[0].at_s <= at_s <= account[-1].at_s]
    return max(there, key=lambda account: max(entry.window_bytes for entry in account), default=[])


def _quic_windows(log: Qlog) -> Iterator[ServerWindow]:
    window_bytes = threshold_bytes = None
    for event in log.named(METRICS):
        window_bytes = event.data.get("congestion_window", window_bytes)
        threshold_bytes = event.data.get("ssthresh", threshold_bytes)
        if window_bytes is not None:
            yield ServerWindow(log.began_s + event.time_ms / 1e3, window_bytes, threshold_bytes)


def _tcp_windows(folder: Path) -> list[list[ServerWindow]]:
    connections: dict[bytes, list[ServerWindow]] = {}
    for at_s, connection, info in accounts_of_clients(folder):
        threshold_bytes = None if info.ssthresh is None else info.ssthresh * info.mss_bytes
        entry = ServerWindow(at_s, info.cwnd * info.mss_bytes, threshold_bytes)
        connections.setdefault(connection, []).append(entry)
    return list(connections.values())
