"""Round trips before a load, by the system's ping: they show whether the emulated network is that of the run."""

import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool
from tuning.conditions import DELAY
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network

ECHOES = 20
INTERVAL_S = 0.05
# The longest wait for the last answer, in addition to the network's round trip.
PATIENCE_S = 1.0
# IP and ICMP headers, and ping's usual 56 bytes.
ECHO_BYTES = 84

# How far the mean may be from the configured value; for a long round trip, 1 % of it. As in `measure.validate.network`.
TOLERANCE_MS, TOLERANCE = 1.0, 0.01
# How far the standard deviation may exceed the scatter of the network itself: the university study's limit.
MOST_SD_MS = 2.0


# Matches ping's last line; the lines of single answers have only whole milliseconds from 100 ms on.
SUMMARY = re.compile(r"^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms", re.MULTILINE)
ANSWERED = re.compile(r"transmitted, (\d+) received")


@dataclass(frozen=True)
class PingTimes:
    """The numbers of echo requests that were sent and answered, and the answers' round-trip times in ms; `sd_ms` is the
    standard deviation, as ping reports it (`mdev`). The times are NaN if nothing was answered."""

    sent: int
    answered: int
    min_ms: float
    mean_ms: float
    max_ms: float
    sd_ms: float


def ping(address: str, rtt_ms: float) -> tuple[PingTimes, str]:
    """Ping `address`, about `rtt_ms` away; returns the times, and the output of ping. Raises EyelevelError."""
    wait_s = rtt_ms / 1e3 + PATIENCE_S
    command: list[str | Path] = [tool("ping"), "-n", "-c", str(ECHOES), "-i", str(INTERVAL_S), "-W", f"{wait_s:.3f}"]
    done = subprocess.run([*command, address], capture_output=True, text=True, check=False)
    if done.returncode > 1 or not (answered := ANSWERED.search(done.stdout)):  # 1: answers were missing
        raise EyelevelError(f"ping failed: {done.stderr.strip() or done.stdout.strip()}")
    summary = SUMMARY.search(done.stdout)
    times_ms = [float(ms) for ms in summary.groups()] if summary else [math.nan] * 4
    return PingTimes(ECHOES, int(answered[1]), *times_ms), done.stdout


def scatter_ms(network: Network) -> float:
    """How much pings through `network` may differ from each other.

    A packet may wait for a link that follows a trace (at most as long as the link's queue) and for a link's
    retransmissions. Also, the delay may change over time.
    """
    traces = (network.up_trace, network.down_trace)
    waiting_ms = sum(network.queue_wait_ms(0) for trace in traces if trace) + (network.retransmit_ms or 0)
    return waiting_ms + sum(one.largest(DELAY) for one in map(network.conditions_of, (UP, DOWN)) if one)


def expected_ms(network: Network) -> tuple[float, float]:
    """The least and the greatest acceptable mean of pings through `network`."""
    links = [link for one in network.halves for link in ((one.up_mbps, one.up_trace), (one.down_mbps, one.down_trace))]
    serialising_ms = sum(ECHO_BYTES * 8 / mbps / 1e3 for mbps, trace in links if mbps and not trace)
    rtt_ms = network.path_rtt_ms + serialising_ms
    tolerance_ms = max(TOLERANCE_MS, TOLERANCE * rtt_ms) + sum(one.jitter_ms for one in network.halves)
    return rtt_ms - tolerance_ms, rtt_ms + tolerance_ms + scatter_ms(network)


def fault(times: PingTimes, network: Network) -> str | None:
    """Why a run after these pings through `network` must not count; None if it may."""
    if not times.answered:
        return f"none of {times.sent} pings was answered"
    least_ms, most_ms = expected_ms(network)
    if not least_ms <= times.mean_ms <= most_ms:
        return f"pings took {times.mean_ms:.2f} ms on average, not {least_ms:.2f} to {most_ms:.2f} ms"
    # The emulated delays lie in an interval of twice the jitter and the scatter, so they deviate by at most its length.
    jitter_ms = sum(one.jitter_ms for one in network.halves)
    if times.sd_ms > (most_sd_ms := MOST_SD_MS + 2 * jitter_ms + scatter_ms(network)):
        return f"pings deviated by {times.sd_ms:.2f} ms (standard deviation), more than {most_sd_ms:.2f} ms"
    return None
