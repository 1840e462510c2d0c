"""How the emulated network keeps time on this machine: by real-time priority, and by the kernel's packet timestamps.

Real-time priority can be granted (`setup/grant priority`); only root has timestamps. Without real-time priority, the
network waits for a processor like any program, and on a busy machine many more runs are rejected. Without timestamps,
delays are 0.03 ms longer.
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

# An environment variable that is set in containers (systemd's CONTAINER_INTERFACE; the Containerfile sets it).
CONTAINER = "container"
# Root's timekeeping. It holds for campaigns from before timekeeping was recorded, when only root could measure.
OF_ROOT = f"{REAL_TIME_PRIORITY}, kernel stamps"


@cache
def timekeeping() -> str:
    """How networks keep time here, as a trial network reports it (`mm-net --timekeeping`). Raises EyelevelError."""
    command = [*namespaced("net"), tool("mm-net"), "--timekeeping", "/dev/stdout", "--", "true"]
    trial = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if trial.returncode:
        raise EyelevelError(f"an emulated network cannot be made: {last_line_of(trial.stderr)}")
    return last_line_of(trial.stdout)


def has_real_time_priority() -> bool:
    """Whether the emulated network has real-time priority; False if no network can be made."""
    with suppress(EyelevelError):
        return REAL_TIME_PRIORITY in timekeeping()
    return False


def priority_warning(means: str) -> str | None:
    """A warning, with its remedy, if the timekeeping `means` lack real-time priority; otherwise None."""
    if REAL_TIME_PRIORITY in means:
        return None
    # The rights of a container are fixed when it is started.
    is_container = bool(os.environ.get(CONTAINER))
    by_user = f"grant it with: sudo {PROJECT}/setup/grant priority $USER (and log in again)"
    remedy = "start this container with --ulimit rtprio=1 (docs/container.md)" if is_container else by_user
    return (
        "the emulated network has no real-time priority here: on a busy machine it is late, and those runs are "
        f"rejected; {remedy}"
    )
