"""Probes the path between two network namespaces that an emulated network connects."""

import signal
import subprocess
import sys
from pathlib import Path

from replay.shells.ours import shell
from support.shells import SERVER
from tuning import networks
from tuning.networks import Network

NAME = "probed"
END_S = 10.0
# The limit suffices for 300 Mbit/s.
LIMIT = ("--most-mb", "400")


def probed(network: Network, folder: Path, *options: str, seed: int = 1) -> Network:
    """The network that `eyelevel probe-network` finds when it measures `network`, one end of which is in this
    namespace."""
    program = [sys.executable, "-m", "eyelevel", "probe-network", "--secret", str(folder / "secret"), *LIMIT]
    into = folder / networks.FILENAME
    with subprocess.Popen([*program, "--serve", SERVER[0]], stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr
        try:
            assert any("serving probes at" in line for line in iter(serving.stderr.readline, ""))
            command = [*shell(network, seed), "--", *program, "--to", SERVER[0], "--name", NAME, "--into", into]
            done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(END_S)
    return networks.load(into)[NAME]
