"""Our own shells: delay next to the servers, then link, then loss next to the browser.

All in one hop: `mm-net` does to each packet what the nested `mm-delay`, `mm-link` and `mm-loss` would
(`tests/shells/test_shells.py` compares them), for a fraction of their processor time.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from base.places import tool
from replay.shells.contract import Nest, Shells, far_timekeeping
from tuning.networks import DOWN, UP, Network


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
        near, *far = network.halves
        delays = server_delays(extra_rtts_ms or {})
        if not far:
            return Nest([*shell(near, seed, timekeeping), *delays, "--"], {"name": self.name})
        # The outer shell is the far half, next to the servers: between the two is the hop's namespace. What is random
        # in one half must say nothing of the other.
        far_seed = None if seed is None else random.Random(seed).getrandbits(32)
        command = [*shell(far[0], far_seed, far_timekeeping(timekeeping)), *delays, "--"]
        return Nest([*command, *shell(near, seed, timekeeping), "--"], {"name": self.name, "far_seed": far_seed})


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
    command: list[str | Path] = [tool("mm-net")]
    if network.up_delay_ms is None:
        command += ["--delay", f"{network.delay_ms:g}"]
    else:
        command += ["--delay-up", f"{network.delay_of(UP):.6f}", "--delay-down", f"{network.delay_of(DOWN):.6f}"]
    if network.jitter_ms:
        command += ["--jitter", f"{network.jitter_ms:g}", *(["--reorder"] if network.reorder else [])]
    for direction, trace in ((UP, network.up_trace), (DOWN, network.down_trace)):
        mbps, queue = network.rate_of(direction), network.queue_of(direction)
        if mbps is not None and queue:
            command += [f"--{direction}", trace or f"{mbps:g}M", f"--{direction}link-queue={queue.kind}"]
            arguments = queue.arguments(mbps, network.min_rtt_ms)
            command += [f"--{direction}link-queue-args={','.join(arguments)}"] if arguments else []
    for direction, file in ((UP, network.up_conditions), (DOWN, network.down_conditions)):
        command += [f"--{direction}-conditions", file] if file else []
    up_loss, down_loss = network.loss_of(UP), network.loss_of(DOWN)
    if up_loss or down_loss:
        ways = {"--loss": up_loss} if up_loss == down_loss else {"--loss-up": up_loss, "--loss-down": down_loss}
        command += [word for option, loss in ways.items() if loss for word in (option, f"{loss:.9f}")]
        command += ["--burst", f"{network.burst_packets:.6f}"] if network.burst_packets else []
        if model := network.gilbert_elliott:
            numbers = (model.good_to_bad, model.bad_to_good, model.loss_in_bad, model.loss_in_good)
            command += ["--gilbert-elliott", ",".join(f"{number:.9f}" for number in numbers)]
        command += ["--retransmit", f"{network.retransmit_ms:.6f}"] if network.retransmit_ms is not None else []
        command += ["--retransmit-tries", str(network.retransmit_tries)] if network.retransmit_tries else []
        command += ["--retransmit-reorder"] if network.retransmit_reorder else []
    for suffix, times in (("", network.on_off), ("-up", network.up_on_off), ("-down", network.down_on_off)):
        if times:
            option = f"--{'intermittent' if times.periodic else 'on-off'}{suffix}"
            command += [option, f"{times.on_s:.9f},{times.off_s:.9f}"]
    for option, packets in (
        ("--drop-up-packets", network.drop_up_packets),
        ("--drop-down-packets", network.drop_down_packets),
    ):
        command += [option, ",".join(map(str, packets))] if packets else []
    for option, times_ms in (("--drop-up-at", network.drop_up_at_ms), ("--drop-down-at", network.drop_down_at_ms)):
        command += [option, ",".join(f"{time_ms:.6f}" for time_ms in times_ms)] if times_ms else []
    command += ["--timekeeping", timekeeping] if timekeeping else []
    return [*command, *(["--seed", str(seed)] if seed is not None else [])]
