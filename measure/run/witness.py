"""`python -m measure.run.witness FOLDER`: a replay's witness, which captures what the servers send and receive.

Leaves in FOLDER:

    servers.pcapng   every packet, as the servers' namespace saw it
    sockets.txt      the kernel's account of every TCP connection, sampled (`ss -tin`)
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from base.errors import reports_errors
from base.places import tool
from measure.run.capture import capturing
from replay.spec import WITNESSED_DEVICE

CAPTURE = "servers.pcapng"
SOCKETS = "sockets.txt"
SAMPLE_S = 0.1


@reports_errors
def main(folder: Path) -> None:
    """Capture and sample until SIGTERM. Raises EyelevelError."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with capturing(os.environ[WITNESSED_DEVICE], folder / CAPTURE), (folder / SOCKETS).open("w") as sockets:
        print("ready", flush=True)
        sample: list[str | Path] = [tool("ss"), "--tcp", "--info", "--numeric", "--no-header"]
        while signal.sigtimedwait({signal.SIGTERM}, SAMPLE_S) is None:
            sockets.write(subprocess.run(sample, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
