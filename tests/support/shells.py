"""Runs the shells for real, in a network namespace of the test, and finds their leftovers."""

import ctypes
import os
import select
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clients import shells_peer

from base.namespaces import unshare
from base.places import PROJECT, tool
from support.leaks import pids_marked

SERVER = shells_peer.SERVER
SERVER_V6 = shells_peer.SERVER_V6
# A test that waits in vain fails after this time.
PATIENCE_S = 120.0

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def network_namespace() -> Iterator[None]:
    """Run the block in a separate network namespace, with one server address and no way out."""
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    _check(_libc.unshare(_CLONE_NEWNET))
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", f"{SERVER[0]}/32", "dev", "lo"], check=True)
        yield
        assert devices() == ["lo"]
    finally:
        _check(_libc.setns(outside, _CLONE_NEWNET))
        os.close(outside)


def devices() -> list[str]:
    """Names of the network devices here."""
    return [name for _, name in socket.if_nameindex()]


def stack(shells: str) -> list[str]:
    """The words of a command line of nested shells, each program as an absolute path."""
    return [str(tool(word)) if word.startswith("mm-") else word for word in shells.split()]


def assert_passes_in_user_namespace(tests: Path, folder: Path) -> None:
    """Assert that the file `tests` passes as an ordinary user with capabilities in a new user namespace."""
    command: list[str | Path] = [unshare(), "--user", "--map-current-user", "--keep-caps", "--net", sys.executable]
    command += ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", tests]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout


def run(shells: str, command: list[str], timeout_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*stack(shells), *command], capture_output=True, text=True, timeout=timeout_s)


class Marked:
    """Nested shells whose processes are recognised by a variable in their environment."""

    def __init__(self, shells: str, command: list[str]) -> None:
        self._mark = f"SHELLS_TEST_MARK={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self.shell = subprocess.Popen(
            [*stack(shells), *command],
            env=os.environ | {name: value},
            stdin=subprocess.PIPE,  # stays open and empty
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.shell.stdout is not None
        assert self.shell.stdout.readline() == "ready\n"

    def processes(self) -> list[int]:
        """The running processes, oldest first."""
        return sorted(pids_marked(self._mark))

    def assert_all_end(self, within_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + within_s
        self.shell.wait(timeout=within_s)
        for process in self.processes():
            try:
                descriptor = os.pidfd_open(process)
            except ProcessLookupError:
                continue
            ended, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            os.close(descriptor)
            assert ended, f"process {process} is left"
        assert self.processes() == []


@contextmanager
def namespaces_kept(processes: list[int]) -> Iterator[set[str]]:
    """The network namespaces of `processes` without the test's own.

    They are kept open: the kernel would otherwise reuse the number of a removed one, perhaps for another test's.
    """
    descriptors = []
    try:
        for process in processes:
            with suppress(FileNotFoundError):
                descriptors.append(os.open(f"/proc/{process}/ns/net", os.O_RDONLY))
        names = {f"net:[{os.fstat(descriptor).st_ino}]" for descriptor in descriptors}
        yield names - network_namespaces([os.getpid()])
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def network_namespaces(processes: list[int]) -> set[str]:
    namespaces = set()
    for process in processes:
        try:
            namespaces.add(str(Path(f"/proc/{process}/ns/net").readlink()))
        except OSError:
            continue
    return namespaces


def all_processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
