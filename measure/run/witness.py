"""`python -m measure.run.witness FOLDER`: a replay's witness, which captures what the servers send and receive.

Leaves in FOLDER:

    servers.pcapng   every packet, as the servers' namespace saw it
    sockets.txt      the kernel's account of every TCP connection, sampled (`ss -tin`)
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from eyelevel.errors import EyelevelError, reports_errors
from eyelevel.places import tool
from replay.spec import WITNESSED_DEVICE

CAPTURE = "servers.pcapng"
SOCKETS = "sockets.txt"
SAMPLE_S = 0.1


@reports_errors
def main(folder: Path) -> None:
    """Capture and sample until SIGTERM. Raises EyelevelError."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    command: list[str | Path] = [tool("dumpcap"), "-q", "-i", os.environ[WITNESSED_DEVICE], "-w", folder / CAPTURE]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_unblock) as dumpcap,
        (folder / SOCKETS).open("w") as sockets,
    ):
        assert dumpcap.stderr
        said = ""
        while not said.startswith("File:"):  # the packets after this line are in it
            if not (line := dumpcap.stderr.readline()):
                raise EyelevelError(f"dumpcap could not capture: {said.strip() or 'it said nothing'}")
            said = line
        print("ready", flush=True)
        sample: list[str | Path] = [tool("ss"), "--tcp", "--info", "--numeric", "--no-header"]
        while signal.sigtimedwait({signal.SIGTERM}, SAMPLE_S) is None:
            sockets.write(subprocess.run(sample, capture_output=True, text=True, check=True).stdout)
        dumpcap.send_signal(signal.SIGINT)
        _, said = dumpcap.communicate()
    if not (counted := re.search(r"received/dropped on interface .*: \d+/(\d+)", said)) or int(counted[1]):
        raise EyelevelError(f"the capture is not whole: {' '.join(said.split()) or 'dumpcap ended early'}")


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
