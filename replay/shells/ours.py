"""Our own shells: delay next to the servers, then link, then loss next to the browser.

All in one hop: `mm-net` does to each packet what the nested `mm-delay`, `mm-link` and `mm-loss` would
(`tests/shells/test_shells.py` compares them), for a fraction of their processor time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from base.places import tool
from replay.shells.contract import Nest, Shells
from tuning.networks import Network


class OurShells(Shells):
    """The shells of `shells/`."""

    name = "ours"
    programs: ClassVar = {"mm-net": "--version"}

    delays_servers = True

    def nest(
        self,
        network: Network,
        seed: int | None,
        timekeeping: Path,
        folder: Path,
        extra_rtts_ms: Mapping[str, float] | None = None,
    ) -> Nest:
        command = [*shell(network, seed, timekeeping), *server_delays(extra_rtts_ms or {}), "--"]
        return Nest(command, {"name": self.name})


SHELLS = OurShells()


def server_delays(extra_rtts_ms: Mapping[str, float]) -> list[str | Path]:
    """The options by which servers are farther away, half of the longer round trip each way."""
    return [
        word
        for address, extra_ms in extra_rtts_ms.items()
        if extra_ms
        for word in ("--server-delay", f"{address}={extra_ms / 2:.6f}")
    ]


def shell(network: Network, seed: int | None = None, timekeeping: Path | None = None) -> list[str | Path]:
    """The command line that runs what follows it behind `network`, its random choices drawn from `seed`.

    With what the network kept time is in the file `timekeeping` at the end.
    """
    command: list[str | Path] = [tool("mm-net"), "--delay", f"{network.delay_ms:g}"]
    if network.jitter_ms:
        command += ["--jitter", f"{network.jitter_ms:g}", *(["--reorder"] if network.reorder else [])]
    for option, trace, mbps, queue, queue_bytes in (
        ("--up", network.up_trace, network.up_mbps, "--uplink-queue", network.up_queue_bytes),
        ("--down", network.down_trace, network.down_mbps, "--downlink-queue", network.down_queue_bytes),
    ):
        if mbps is not None:
            command += [option, trace or f"{mbps:g}M", f"{queue}=droptail", f"{queue}-args=bytes={queue_bytes}"]
    if network.loss:
        ways = {"--loss": network.up_loss} if network.up_loss == network.down_loss else {}
        ways = ways or {"--loss-up": network.up_loss, "--loss-down": network.down_loss}
        command += [word for option, loss in ways.items() if loss for word in (option, f"{loss:.9f}")]
        command += ["--retransmit", f"{network.retransmit_ms:.6f}"] if network.retransmit_ms is not None else []
    for option, packets in (
        ("--drop-up-packets", network.drop_up_packets),
        ("--drop-down-packets", network.drop_down_packets),
    ):
        command += [option, ",".join(map(str, packets))] if packets else []
    for option, times_ms in (("--drop-up-at", network.drop_up_at_ms), ("--drop-down-at", network.drop_down_at_ms)):
        command += [option, ",".join(f"{time_ms:.6f}" for time_ms in times_ms)] if times_ms else []
    command += ["--timekeeping", timekeeping] if timekeeping else []
    return [*command, *(["--seed", str(seed)] if seed is not None else [])]
