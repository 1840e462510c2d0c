"""Upstream Mahimahi's shells, which `make setup SHELLS=mahimahi` installs or finds on the system.

    servers ── mm-delay ── mm-link ── mm-loss uplink ── mm-loss downlink ── client

They support whole milliseconds, links that follow a trace, and random losses of single packets. Settings of a network
are converted if that leaves the network the same; otherwise they are refused (`Mahimahi.refusal`).
`replay.shells.nested` runs the shells.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from base.places import tool
from base.structure import to_json
from replay.shells.contract import ORDINARY_PRIORITY, NestedShells, Shells
from replay.shells.nested import NestedSpec
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.rate import TRACE_LINE_BYTES, read_trace
from tuning.networks import IMPAIRMENTS, Network

# The size of a full packet. A line of a trace admits one, including the 4 bytes of header that Mahimahi counts with
# each.
PACKET_BYTES = 1500
# The longest trace that is made from a rate.
LONGEST_PERIOD_MS = 60_000


class Mahimahi(Shells):
    """mm-delay, mm-link and mm-loss of Mahimahi."""

    name = "mahimahi"
    programs: ClassVar = {"mahimahi": "--version"}
    seeded = False
    timekeeping = ORDINARY_PRIORITY
    # Each of its shells runs a name server inside, which takes port 53 of all addresses (`replay.shells.nested`).
    name_server_port = 5353
    in_opportunities = True

    def refusal(self, network: Network) -> str | None:
        for setting, what in (lacking for one in IMPAIRMENTS for lacking in one.mahimahi.items()):
            if getattr(network, setting):
                return f"{network.name}: Mahimahi's shells have no {what} ({setting}); use SHELLS=ours"
        if not float(network.delay_ms).is_integer():
            return (
                f"{network.name}: Mahimahi's shells delay by whole milliseconds each way, and min_rtt_ms = "
                f"{network.min_rtt_ms:g} needs {network.delay_ms:g}; use SHELLS=ours"
            )
        if (network.up_mbps is None) != (network.down_mbps is None):
            return f"{network.name}: Mahimahi's mm-link needs a rate or a trace of both directions; use SHELLS=ours"
        rates = (mbps for mbps in (network.up_mbps, network.down_mbps) if mbps is not None)
        if min(map(_lines_per_ms, rates), default=1) == 0:
            return f"{network.name}: a rate is too small for a trace of {LONGEST_PERIOD_MS // 1000} s; use SHELLS=ours"
        return None

    def require(self) -> None:
        tool(self.name)

    def nested(
        self,
        network: Network,
        seed: int | None,
        timekeeping: Path,
        folder: Path,
        extra_rtts_ms: Mapping[str, float] | None = None,
    ) -> NestedShells:
        commands = [["mm-delay", str(round(network.delay_ms))]]
        conversions: list[str] = []
        if network.up_mbps is not None:
            traces, options = [], []
            for direction in (UP, DOWN):
                lines, conversion = _trace(network, direction)
                traces.append(str(folder / f"{direction}.trace"))
                Path(traces[-1]).write_bytes(b"\n".join(lines) + b"\n")
                queue_bytes = _queue_bytes(network, direction)
                options += [f"--{direction}link-queue=droptail", f"--{direction}link-queue-args=bytes={queue_bytes}"]
                conversions.append(f"{direction}: {conversion}, and a queue of {queue_bytes} bytes with headers")
            commands.append(["mm-link", *options, "--", *traces])
        for direction, loss in ((UP, network.loss_of(UP)), (DOWN, network.loss_of(DOWN))):
            commands += [["mm-loss", f"{direction}link", f"{loss:.9f}"]] if loss else []
        words = tuple(word for command in commands for word in command)
        spec = NestedSpec(tool(self.name).resolve().parent, words, timekeeping, self.name_server_port)
        record = {"name": self.name, "commands": commands, "conversions": conversions}
        return NestedShells([sys.executable, "-m", "replay.shells.nested", to_json(spec)], record)


SHELLS = Mahimahi()


def constant_trace(mbps: float) -> Iterator[int]:
    """The trace of a constant rate: when each full packet could have been sent, in ms, rounded up.

    It has one line per `PACKET_BYTES` at that rate, and the shortest period of whole ms in which that is exact; if that
    exceeds `LONGEST_PERIOD_MS`, it has the best approximation within that period.
    """
    rate = _lines_per_ms(mbps)
    return (math.ceil(line / rate) for line in range(1, rate.numerator + 1))


def _lines_per_ms(mbps: float) -> Fraction:
    # Converted from its text, so that 0.1 is exactly one tenth.
    return (Fraction(str(mbps)) * 1000 / (8 * PACKET_BYTES)).limit_denominator(LONGEST_PERIOD_MS)


def _trace(network: Network, direction: str) -> tuple[list[bytes], str]:
    """The lines of the trace of a direction, and a description of how they were made."""
    mbps = network.rate_of(direction)
    assert mbps is not None
    if trace := network.trace_of(direction):
        return read_trace(Path(trace)), f"the trace {trace}"
    lines = [str(at_ms).encode() for at_ms in constant_trace(mbps)]
    return lines, f"{mbps:g} Mbit/s as a trace of {len(lines)} packets in {lines[-1].decode()} ms"


def _queue_bytes(network: Network, direction: str) -> int:
    """The limit of a direction's queue as Mahimahi counts it, so that the same number of full packets fits."""
    limit_bytes = network.queue_bytes_of(direction)
    assert limit_bytes is not None
    return limit_bytes * TRACE_LINE_BYTES // PACKET_BYTES
