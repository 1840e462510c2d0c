"""`python -m studies.packets.ends`: the programs at both ends of the emulated network while a page is loaded.

client FOLDER ADDRESS RTT_MS COMMAND…   around the visit: captures, pings ADDRESS, then runs COMMAND
servers FOLDER                          the replay's monitor: captures until SIGTERM
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from base.errors import reports_errors
from base.files import write_json
from base.namespaces import MONITORED_DEVICE
from measure.captures.recording import READ_S, capturing, segment_before_capture
from replay.world import outward_device
from studies.packets.files import CLIENT, KEYS, PING, PING_OUTPUT, SERVERS
from studies.packets.ping import ping

# How long connections may take to close after the browser has ended: its last packets arrive and are answered, and the
# answer is acknowledged.
CLOSING_RTTS = 2
# The servers' device disappears when the client ends. Packets that the capture there has not read by then are lost.
READING_S = 2 * READ_S
LOOK_S = 0.1


def client(folder: Path, address: str, rtt_ms: float, command: Sequence[str]) -> int:
    """Run `command`, which writes its TLS keys to `folder`, in a capture that begins with pings.

    Returns the command's status; the capture exists only if it is complete. Raises EyelevelError.
    """
    device = outward_device()
    segment_before_capture(device)
    unproven = folder / f"unproven-{CLIENT}"
    with capturing(device, unproven):
        times, output = ping(address, rtt_ms)
        (folder / PING_OUTPUT).write_text(output)
        write_json(folder / PING, asdict(times))
        environment = {**os.environ, "SSLKEYLOGFILE": str(folder / KEYS)}
        status = subprocess.run(command, env=environment, check=False).returncode
        # Nothing signals that the last packet has arrived.
        time.sleep(CLOSING_RTTS * rtt_ms / 1e3 + READING_S)
    unproven.replace(folder / CLIENT)
    return status


def servers(folder: Path, device: str) -> None:
    """Capture all packets on `device` until SIGTERM. Raises EyelevelError if a packet is missing."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    segment_before_capture(device)
    with capturing(device, folder / SERVERS) as look:
        print("ready", flush=True)
        while signal.sigtimedwait({signal.SIGTERM}, LOOK_S) is None:
            look()


@reports_errors
def main(arguments: Sequence[str]) -> None:
    end, folder, *rest = arguments
    if end == "servers":
        servers(Path(folder), os.environ[MONITORED_DEVICE])
    else:
        address, rtt_ms, *command = rest
        sys.exit(client(Path(folder), address, float(rtt_ms), command))


if __name__ == "__main__":
    main(sys.argv[1:])
