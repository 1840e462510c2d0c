"""The emulated network as a command: delay next to the servers, then link, then loss next to the browser.

All in one hop: `mm-net` does to each packet what the nested `mm-delay`, `mm-link` and `mm-loss` would
(`tests/test_shells.py` compares them), for a fraction of their processor time.
"""

from pathlib import Path

from eyelevel.places import tool
from tuning.networks import Network


def shell(network: Network) -> list[str | Path]:
    """The command line that runs what follows it behind `network`."""
    command: list[str | Path] = [tool("mm-net"), "--delay", f"{network.delay_ms:g}"]
    command += ["--up", f"{network.up_mbps:g}M", "--down", f"{network.down_mbps:g}M"]
    for direction, queue_bytes in (("uplink", network.up_queue_bytes), ("downlink", network.down_queue_bytes)):
        command += [f"--{direction}-queue=droptail", f"--{direction}-queue-args=bytes={queue_bytes}"]
    return [*command, "--loss", f"{network.loss_per_direction:.9f}"]
