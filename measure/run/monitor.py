"""`python -m measure.run.monitor FOLDER`: a replay's monitor, which captures what the servers send and receive.

It leaves in FOLDER:

    servers.pcapng   every packet, as the servers' namespace saw it
    sockets.bin      the kernel's account of every TCP connection, sampled (`servers.kernel_sockets`)
"""

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

from base.errors import reports_errors
from base.namespaces import MONITORED_DEVICE
from measure.captures.recording import capturing
from servers.kernel_sockets import ACCOUNTS, RECORD, KernelSockets

CAPTURE = "servers.pcapng"
SAMPLE_S = 0.1


@reports_errors
def main(folder: Path) -> None:
    """Capture and sample until SIGTERM. Raises EyelevelError."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with (
        capturing(os.environ[MONITORED_DEVICE], folder / CAPTURE),
        closing(KernelSockets()) as kernel,
        (folder / ACCOUNTS).open("wb") as accounts,
    ):
        print("ready", flush=True)
        while signal.sigtimedwait({signal.SIGTERM}, SAMPLE_S) is None:
            at_s = time.time()
            for message in kernel.ask():
                accounts.write(RECORD.pack(at_s, len(message)) + message)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
