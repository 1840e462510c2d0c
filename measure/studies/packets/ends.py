"""`python -m measure.studies.packets.ends`: what runs at both ends of the emulated network while a page is loaded.

client FOLDER ADDRESS RTT_MS COMMAND…   around the visit: captures, pings ADDRESS, then runs COMMAND
servers FOLDER                          the replay's witness
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from eyelevel.errors import reports_errors
from eyelevel.files import write_atomically
from measure.run import witness
from measure.run.capture import capturing, segment_before_capture
from measure.studies.packets import CLIENT, KEYS, PING, PING_SAID
from measure.studies.packets.ping import ping
from replay.spec import WITNESSED_DEVICE
from replay.world import outward_device


def client(folder: Path, address: str, rtt_ms: float, command: Sequence[str]) -> int:
    """Run `command`, which leaves its TLS keys in `folder`, in a capture that begins with pings.

    Returns its status; the capture is there only if it is whole. Raises EyelevelError.
    """
    device = outward_device()
    segment_before_capture(device)
    unproven = folder / f"unproven-{CLIENT}"
    with capturing(device, unproven):
        pinged, said = ping(address, rtt_ms)
        (folder / PING_SAID).write_text(said)
        write_atomically(folder / PING, json.dumps(asdict(pinged), indent=1) + "\n")
        environment = {**os.environ, "SSLKEYLOGFILE": str(folder / KEYS)}
        status = subprocess.run(command, env=environment, check=False).returncode
    unproven.replace(folder / CLIENT)
    return status


@reports_errors
def main(arguments: Sequence[str]) -> None:
    end, folder, *rest = arguments
    if end == "servers":
        segment_before_capture(os.environ[WITNESSED_DEVICE])
        witness.main(Path(folder))
    else:
        address, rtt_ms, *command = rest
        sys.exit(client(Path(folder), address, float(rtt_ms), command))


if __name__ == "__main__":
    main(sys.argv[1:])
