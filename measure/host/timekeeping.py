"""The emulated network's means to keep time on this machine: real-time priority, and stamps of the kernel's.

The first can be granted (`setup/grant priority`); the second only root has. Without real-time priority the network
waits for a processor as any program does, and on a busy machine many more runs are rejected; without stamps a delay is
0.03 ms longer.
"""

import os
import subprocess
from contextlib import suppress
from functools import cache

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, tool
from base.processes import last_line_of
from dataset.table import REAL_TIME_PRIORITY

# An environment variable of a container's processes (systemd's CONTAINER_INTERFACE; the Containerfile sets it).
CONTAINER = "container"
# The timekeeping of root: only root could measure when campaigns did not record it yet.
OF_ROOT = f"{REAL_TIME_PRIORITY}, kernel stamps"


@cache
def timekeeping() -> str:
    """How a network that is made to find out keeps time, by `mm-net --timekeeping`. Raises EyelevelError."""
    command = [*namespaced("net"), tool("mm-net"), "--timekeeping", "/dev/stdout", "--", "true"]
    trial = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if trial.returncode:
        raise EyelevelError(f"an emulated network cannot be made: {last_line_of(trial.stderr)}")
    return last_line_of(trial.stdout)


def has_real_time_priority() -> bool:
    """Whether the emulated network has it; False where none can be made."""
    with suppress(EyelevelError):
        return REAL_TIME_PRIORITY in timekeeping()
    return False


def priority_warning(means: str) -> str | None:
    """A warning, with its remedy, where the `means` (`timekeeping`) have no real-time priority, or None."""
    if REAL_TIME_PRIORITY in means:
        return None
    # Nobody can grant a container more than it was started with.
    is_container = bool(os.environ.get(CONTAINER))
    by_user = f"grant it with: sudo {PROJECT}/setup/grant priority $USER (and log in anew)"
    remedy = "start this container with --ulimit rtprio=1 (docs/container.md)" if is_container else by_user
    return (
        "the emulated network has no real-time priority here: on a busy machine it is late, and those runs are "
        f"rejected; {remedy}"
    )
