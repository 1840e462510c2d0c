"""The emulated network as nested shells: delay outermost, next to the servers, then link, then loss."""

from pathlib import Path

from eyelevel.places import tool
from tuning.networks import Network


def shells(network: Network) -> list[str | Path]:
    """The command line that runs what follows it behind `network`."""
    command: list[str | Path] = [tool("mm-delay"), f"{network.delay_ms:g}"]
    command += [tool("mm-link"), f"{network.up_mbps:g}M", f"{network.down_mbps:g}M"]
    for direction, queue_bytes in (("uplink", network.up_queue_bytes), ("downlink", network.down_queue_bytes)):
        command += [f"--{direction}-queue=droptail", f"--{direction}-queue-args=bytes={queue_bytes}"]
    if network.loss:
        for direction in ("uplink", "downlink"):
            command += [tool("mm-loss"), direction, f"{network.loss_per_direction:.9f}"]
    return command
