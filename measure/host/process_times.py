"""How long a process has run on processors, and how long it has waited for one, by the kernel's accounts.

Two accounts have both, for all threads of a process:

taskstats    exact, also for threads that have ended; one query per process. Works only if this process is in the
             machine's own namespaces (not in a container).
schedstat    files of each thread. When a thread ends, its waits since the last look are lost.
"""

import os
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# linux/netlink.h, linux/genetlink.h, linux/taskstats.h.
NETLINK_GENERIC, NLM_F_REQUEST, NLMSG_ERROR = 16, 1, 2
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, TASKSTATS_TYPE_STATS, TASKSTATS_TYPE_AGGR_TGID = 1, 2, 3, 5
# The offsets of cpu_delay_total and cpu_run_virtual_total (both ns) in struct taskstats, in every version.
CPU_DELAY, CPU_RUN = 24, 72
HEADER = struct.Struct("=IHHII")
GENERIC_HEADER = struct.Struct("=BBH")
ATTRIBUTE = struct.Struct("=HH")
ANSWER_BYTES = 8192

# The clock ID of a process's processor time is made of the complement of its ID, and CPUCLOCK_SCHED
# (linux/posix-timers.h).
CPUCLOCK_SCHED = 2


@dataclass(frozen=True)
class ProcessTimes:
    """The times of a process since its start, over all threads, in ns: how long it ran, and how long it was ready but
    waited for a processor (None if the kernel does not count that)."""

    run_ns: int
    wait_ns: int | None


class Account(ABC):
    """A way to read the times of processes from the kernel."""

    name: str

    @abstractmethod
    def times(self, process: int) -> ProcessTimes | None:
        """The times of `process`; None if it does not exist."""

    def close(self) -> None:  # noqa: B027 (not every account holds something)
        """Release what the account holds open."""


class Taskstats(Account):
    """The kernel's account over netlink. Raises OSError when it is not available."""

    name = "taskstats"

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        try:
            self._socket.bind((0, 0))
            family = self._ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")
            (self._family,) = struct.unpack("=H", family[CTRL_ATTR_FAMILY_ID])
            times = self.times(os.getpid())
            if times is None or not times.run_ns:
                raise OSError("the kernel keeps no account of tasks")
        except BaseException:
            self.close()
            raise

    def times(self, process: int) -> ProcessTimes | None:
        try:
            answer = self._ask(self._family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, struct.pack("=I", process))
        except ProcessLookupError:
            return None
        account = _attributes(answer[TASKSTATS_TYPE_AGGR_TGID])[TASKSTATS_TYPE_STATS]
        return ProcessTimes(*(struct.unpack_from("=Q", account, place)[0] for place in (CPU_RUN, CPU_DELAY)))

    def close(self) -> None:
        self._socket.close()

    def _ask(self, family: int, command: int, kind: int, value: bytes) -> dict[int, bytes]:
        """The attributes of the kernel's answer. Raises OSError."""
        padding = bytes(-len(value) % ATTRIBUTE.size)
        message = (
            GENERIC_HEADER.pack(command, 1, 0) + ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + padding
        )
        self._socket.send(HEADER.pack(HEADER.size + len(message), family, NLM_F_REQUEST, 0, 0) + message)
        answer = self._socket.recv(ANSWER_BYTES)
        if HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, HEADER.size)
            raise OSError(-code, os.strerror(-code))
        return _attributes(answer[HEADER.size + GENERIC_HEADER.size :])


def _attributes(data: bytes) -> dict[int, bytes]:
    attributes = {}
    while data:
        length, kind = ATTRIBUTE.unpack_from(data)
        attributes[kind & 0x3FFF] = data[ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return attributes


def _schedstat(thread: str) -> tuple[int, int]:
    """How long the thread with the folder `thread` ran and waited (ns). Raises OSError."""
    run_ns, wait_ns, _ = Path(thread, "schedstat").read_text().split()
    return int(run_ns), int(wait_ns)


class Schedstat(Account):
    """The kernel's files about each thread, and each process's clock."""

    name = "schedstat"

    def __init__(self, times_of_thread: Callable[[str], tuple[int, int]] = _schedstat) -> None:
        """`times_of_thread`: how long the thread with a given folder in /proc ran and waited (ns); raises OSError."""
        self._times_of_thread = times_of_thread
        # This thread has run, so a time of 0 means that the kernel does not count.
        try:
            self._counts_waits = times_of_thread(f"/proc/self/task/{os.getpid()}")[0] > 0
        except OSError:
            self._counts_waits = False
        # Process → thread → how long it has waited (ns), including threads that have ended.
        self._waits: dict[int, dict[str, int]] = {}

    def times(self, process: int) -> ProcessTimes | None:
        try:
            run_ns = time.clock_gettime_ns(~process << 3 | CPUCLOCK_SCHED)
            if not self._counts_waits:
                return ProcessTimes(run_ns, None)
            waits = self._waits.setdefault(process, {})
            for thread in os.scandir(f"/proc/{process}/task"):
                with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                    waits[thread.name] = self._times_of_thread(thread.path)[1]
            return ProcessTimes(run_ns, sum(waits.values()))
        except OSError:
            return None


def kernel_account() -> Account:
    """The best account that the kernel offers to this process."""
    try:
        return Taskstats()
    except OSError:
        return Schedstat()
