"""Checks the rights that a process needs to make namespaces and the devices of emulated networks, as root or as a
user."""

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from base.errors import EyelevelError
from base.jail import Jail, jailed
from base.namespaces import has_capabilities, namespaced
from base.places import PROJECT, tool
from base.processes import last_line_of

TUN = Path("/dev/net/tun")
SYSCTLS = Path("/proc/sys")
# A value of 0 forbids all namespaces of that kind. The last limit exists only in Debian's kernel.
LIMITS = (
    *(f"user.max_{kind}_namespaces" for kind in ("user", "net", "mnt", "pid", "ipc")),
    "kernel.unprivileged_userns_clone",
)
# Ubuntu 24.04 lets users make user namespaces, but grants capabilities in them only to programs with a profile.
APPARMOR_RESTRICTION = "kernel.apparmor_restrict_unprivileged_userns"


def require_namespaces(activity: str) -> None:
    """Raise EyelevelError when this process may not make the namespaces and network devices that `activity`
    ("measuring") needs.

    The error says what is missing, and how an administrator allows just that.
    """
    for missing in (_missing_namespaces(), _missing_device()):
        if missing:
            raise EyelevelError(f"{activity} needs {missing}")


def require_browsing(activity: str) -> None:
    """Raise EyelevelError when this process lacks the rights for an `activity` that also runs browsers.

    Their sandbox is made of user namespaces. If the kernel denies these to ordinary users, root cannot help: browsers
    do not run as root.
    """
    require_namespaces(activity)
    if missing := _missing_sandbox():
        raise EyelevelError(f"{activity} needs {missing}")


def missing_prerequisites() -> list[str]:
    """Everything that this process lacks to measure: each with how an administrator allows just that."""
    # In a namespace that cannot be made, there is no sandbox to try.
    namespaces = _missing_namespaces()
    return [missing for missing in (namespaces or _missing_sandbox(), _missing_device()) if missing]


def _missing_device() -> str | None:
    missing = missing_tun()
    return f"{missing}; or run it with sudo" if missing and os.geteuid() else missing


@cache
def _missing_namespaces() -> str | None:
    """The missing prerequisite to make namespaces with capabilities in them, found by making some; None if none is
    missing."""
    fault = _fault([*namespaced("mount", "net", "ipc"), tool("ip"), "link", "set", "lo", "up"])
    # The restrictions apply only to ordinary users, not to processes with capabilities.
    return None if fault is None else missing_namespaces(fault, {} if has_capabilities() else restrictions_of_users())


def missing_namespaces(fault: str, restrictions: Mapping[str, str]) -> str:
    """The missing prerequisite to make namespaces, when the trial ended with `fault` and the sysctls have the values in
    `restrictions`."""
    if remedy := _missing_of_users("namespaces", fault, restrictions):
        return remedy
    if "/proc" in fault:
        return (
            f"a /proc of its own, which the container forbids ({fault}); start it with --security-opt unmask=ALL "
            "(Podman) or --security-opt systempaths=unconfined (Docker)"
        )
    return (
        f"namespaces, which this system does not let you make ({fault}); in a container, its seccomp profile has to "
        "allow unshare, clone, setns, mount, umount2 and pivot_root"
    )


@cache
def _missing_sandbox() -> str | None:
    """The missing prerequisite of the browser's sandbox, found by making its namespaces in a jail; None if none is
    missing."""
    trial: list[str | Path] = [tool("unshare"), "--user", "--pid", "--net", "--fork", "true"]
    command = [*namespaced("mount", "net", "ipc"), *jailed(Jail(), trial)]
    fault = _fault(command)
    return None if fault is None else missing_sandbox(fault, restrictions_of_users())


def missing_sandbox(fault: str, restrictions: Mapping[str, str]) -> str:
    """The missing prerequisite of the browser's sandbox, when the trial ended with `fault` and the sysctls have the
    values in `restrictions`."""
    namespaces = "user namespaces for the browser's sandbox"
    if "cannot be jailed" in fault:  # an error of the jailer; errors in the jail are from unshare
        return (
            f"file systems of their own for programs, which this system does not let you make ({fault}); in a "
            "container, its seccomp profile has to allow mount, umount2, pivot_root, mount_setattr and seccomp"
        )
    return _missing_of_users(namespaces, fault, restrictions) or (
        f"{namespaces}, which this system does not let an ordinary user make ({fault}); in a container, its seccomp "
        "profile has to allow unshare and clone"
    )


def _fault(command: Sequence[str | Path]) -> str | None:
    """The last line that `command` prints if it fails; None if it does not fail."""
    trial = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return last_line_of(trial.stderr, f"status {trial.returncode}") if trial.returncode else None


def restrictions_of_users(sysctls: Path = SYSCTLS) -> dict[str, str]:
    """The values of those `sysctls` (a folder like the kernel's) that may deny namespaces to users, by name."""
    files = {name: sysctls / name.replace(".", "/") for name in (*LIMITS, APPARMOR_RESTRICTION)}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def _missing_of_users(namespaces: str, fault: str, restrictions: Mapping[str, str]) -> str | None:
    """The restriction that denies `namespaces` to ordinary users, and how to change it; None if there is none."""
    for name in LIMITS:
        if restrictions.get(name) == "0":
            value = 1 if name.startswith("kernel") else 10000
            setting = f"echo {name}={value} | sudo tee /etc/sysctl.d/60-eyelevel.conf && sudo sysctl --system"
            return f"{namespaces}, which this kernel forbids to users ({name} is 0); allow them with: {setting}"
    if restrictions.get(APPARMOR_RESTRICTION) == "1":
        return (
            f"capabilities in {namespaces}, which AppArmor denies to users here ({fault}); give them to one program "
            f"(setup/apparmor-profile), for all users, with: sudo {PROJECT}/setup/grant apparmor"
        )
    return None


def missing_tun(device: Path = TUN) -> str | None:
    """The missing prerequisite to make devices of emulated networks through `device`; None if none is missing."""
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError as error:
        is_absent = error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO)
        state = "which is missing" if is_absent else f"which you may not open ({error.strerror})"
        return (
            f"{device}, {state}; load its module now and at boot, for all users, with: sudo {PROJECT}/setup/grant tun "
            f"(a container is given it with --device {device})"
        )
    return None
