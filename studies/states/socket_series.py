"""The qlogs of TCP connections, made from the samples of the kernel's TCP_INFO that `studies.states` has taken."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from base.files import sync
from base.qlog import METRICS, PARAMETERS, QLOG_ENDING, STARTED, STATE, Event, Qlog, write_qlog
from servers.kernel_sockets import ACCOUNTS, Bbr, TcpInfo, accounts_of_clients

# Values of TcpInfo.ca_state. REDUCED: the kernel reduced the window, since a queue of the servers' machine was full.
REDUCED, RECOVERY, LOSS = 2, 3, 4
# BBR's mode follows from its pacing gain (Linux, tcp_bbr.c): above the first value it is in startup, below the second
# it drains.
STARTUP_GAIN, DRAIN_GAIN = 2.0, 0.5
PROBE_RTT = "probe_rtt"
# The pacing rate of a connection without pacing.
UNLIMITED = 2**64 - 1

Sample = tuple[float, TcpInfo]


def write_qlogs(folder: Path) -> list[Path]:
    """Write a qlog into `folder` for each TCP connection with a client, and remove the samples; returns the paths of
    the qlogs."""
    connections: dict[bytes, list[Sample]] = defaultdict(list)
    for at_s, connection, info in accounts_of_clients(folder):
        connections[connection].append((at_s, info))
    paths: list[Path] = []
    for samples in connections.values():
        first = samples[0][1]
        name = f"tcp-{first.server[0]}-{first.client[1]}"
        # A port may be used again by a later connection.
        earlier = sum(path.name.startswith(name) for path in paths)
        path = folder / f"{name}{f'-{earlier + 1}' if earlier else ''}{QLOG_ENDING}"
        write_qlog(path, qlog_of(samples), "Linux", ["TCP", "HTTP2"])
        sync(path)
        paths.append(path)
    sync(folder)
    (folder / ACCOUNTS).unlink()
    return paths


def qlog_of(samples: Sequence[Sample]) -> Qlog:
    """The qlog of one connection, from its samples with their times (s since 1970), in order."""
    began_s, first = samples[0]
    (server, server_port), (client, client_port) = first.server, first.client
    ends = {"ip_version": "ipv4", "src_ip": client, "dst_ip": server, "protocol": "TCP"}
    events = [
        Event(0, STARTED, {**ends, "src_port": client_port, "dst_port": server_port}),
        Event(
            0,
            PARAMETERS,
            {
                "congestion_control": first.congestion_control,
                "initial_congestion_window": first.cwnd * first.mss_bytes,
                "max_datagram_size": first.mss_bytes,
            },
        ),
    ]
    written: dict[str, Any] = {}
    state = None
    time_ms = 0.0
    for at_s, info in samples:
        # The machine's clock may be set back.
        time_ms = max(time_ms, (at_s - began_s) * 1e3)
        changes = {name: value for name, value in metrics(info).items() if written.get(name) != value}
        if changes:
            events.append(Event(time_ms, METRICS, changes))
            written |= changes
        if (new := congestion_state(info)) != state:
            events.append(Event(time_ms, STATE, {"old": state, "new": new} if state else {"new": new}))
            state = new
    return Qlog(f"TCP {server}:{server_port} to {client}:{client_port}", began_s, tuple(events))


def metrics(info: TcpInfo) -> Mapping[str, Any]:
    """A sample as qlog's metrics: bytes, ms, bit/s."""
    values = {
        "min_rtt": info.min_rtt_ms,
        "smoothed_rtt": info.smoothed_rtt_ms,
        "congestion_window": info.cwnd * info.mss_bytes,
        "bytes_in_flight": info.in_flight * info.mss_bytes,
        "ssthresh": info.ssthresh and info.ssthresh * info.mss_bytes,
        "pacing_rate": None if info.pacing_bytes_per_s == UNLIMITED else info.pacing_bytes_per_s * 8,
        "delivery_rate": info.delivery_bytes_per_s * 8,
        "bandwidth_estimate": info.bbr and info.bbr.bandwidth_bytes_per_s * 8,
        "bytes_delivered": info.delivered_bytes,
        "packets_lost": info.retransmitted,
    }
    return {name: value for name, value in values.items() if value is not None}


def congestion_state(info: TcpInfo) -> str:
    """The state of the connection's congestion control, by the name that quic_server (`servers/quic`) has for it.

    One more state is rto: there was a retransmission timeout, and data sent before it is not fully acknowledged yet.
    """
    if info.ca_state == LOSS:
        return "rto"
    if info.ca_state in (REDUCED, RECOVERY):
        return "recovery"
    mode = _mode(info)
    application_limited = info.unsent_bytes == 0 and info.in_flight < info.cwnd
    return "application_limited" if application_limited and mode != PROBE_RTT else mode


def _mode(info: TcpInfo) -> str:
    if info.bbr:
        return _bbr_mode(info.bbr)
    growing = info.ssthresh is None or info.cwnd < info.ssthresh
    return "slow_start" if growing else "congestion_avoidance"


def _bbr_mode(bbr: Bbr) -> str:
    if bbr.pacing_gain > STARTUP_GAIN:
        return "startup"
    if bbr.pacing_gain < DRAIN_GAIN:
        return "drain"
    return PROBE_RTT if bbr.cwnd_gain == 1 else "probe_bw"
