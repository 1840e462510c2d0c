"""Namespaces that end with the process in them, and their set-up."""

import ctypes
import os
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool
from base.processes import interruptible

# The copy of unshare with an AppArmor profile, on systems where set-up had to make one (`setup/grant`).
PROFILED_UNSHARE = Path("/usr/local/lib/eyelevel/unshare")

# The start of a command line that runs as a user other than root, who may use our files but has no privileges.
# Chromium's own sandbox does not work for root.
AS_ORDINARY_USER = (
    str(PROFILED_UNSHARE) if PROFILED_UNSHARE.exists() else "unshare",
    *("--user", "--map-user=1000", "--map-group=1000"),
)

# A variable in the environment of a replay's monitor: the device in its namespace that leads to the client.
MONITORED_DEVICE = "EYELEVEL_MONITORED_DEVICE"

# Bits of CapEff in /proc/self/status (linux/capability.h).
CAP_NET_ADMIN, CAP_SYS_ADMIN = 1 << 12, 1 << 21

MS_BIND = 1 << 12  # linux/mount.h


def namespaced(*kinds: str) -> list[str | Path]:
    """The start of a command line that runs in fresh namespaces of these `kinds` (unshare(1)) and of processes.

    The command is process 1 there: when it ends, all processes that it started end. It ends with its caller, and can be
    interrupted even if the caller ignores SIGINT.

    For a user who is not root, the namespaces are within a new user namespace. Process 1 keeps its user, and has all
    capabilities over its namespaces, as root has. (Mapped to root, it could not run programs that give up root, since
    no other users are mapped.)
    """
    own_user = () if has_capabilities() else ("user", "map-current-user", "keep-caps")
    options = [f"--{option}" for option in (*own_user, "pid", *kinds, "fork", "kill-child", "mount-proc")]
    return interruptible([tool("setpriv"), "--pdeathsig", "KILL", unshare(), *options])


def unshare(profiled: Path = PROFILED_UNSHARE) -> Path:
    """The program unshare(1) that may make user namespaces: the `profiled` one if it exists. Raises EyelevelError when
    none is installed."""
    return profiled if profiled.exists() else tool("unshare")


def has_capabilities() -> bool:
    """Whether this process may make namespaces, and networks in them, without a user namespace: as root, or because it
    is in a user namespace already."""
    status = Path("/proc/self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    needed = CAP_NET_ADMIN | CAP_SYS_ADMIN
    return effective & needed == needed


def mount_memory(folder: Path, options: str = "") -> None:
    """Mount a file system in memory with these `options` (tmpfs(5)) on `folder`. Raises EyelevelError."""
    _mount("tmpfs", folder, "tmpfs", 0, options)


def bind(source: Path, target: Path) -> None:
    """Mount `source` on `target`. Raises EyelevelError."""
    _mount(str(source), target, "", MS_BIND, "")


def _mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    # A replay has a dozen mounts; the program mount(8) would take 2 ms of processor time for each.
    libc = ctypes.CDLL(None, use_errno=True)
    texts = [os.fsencode(text) for text in (source, target, kind, options)]
    if libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]):
        raise EyelevelError(f"{source} cannot be mounted on {target}: {os.strerror(ctypes.get_errno())}")
