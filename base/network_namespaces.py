"""Network namespaces within one process: a socket or a program stays in the namespace in which it was made."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from base.errors import EyelevelError

CLONE_NEWNET = 0x40000000  # linux/sched.h
# The namespace of this thread; /proc/self would give the main thread's.
OF_THIS_THREAD = "/proc/thread-self/ns/net"
_LIBC = ctypes.CDLL(None, use_errno=True)


class NetworkNamespace:
    """A network namespace. Programs can open it at `path` while this process lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"

    @classmethod
    def this(cls) -> "NetworkNamespace":
        """The network namespace of this thread."""
        return cls(os.open(OF_THIS_THREAD, os.O_RDONLY))

    @classmethod
    def of(cls, pid: int) -> "NetworkNamespace":
        """The network namespace of the process `pid`."""
        return cls(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY))

    @classmethod
    def fresh(cls) -> "NetworkNamespace":
        """A new network namespace, which exists until this process and all processes in it have ended. Raises
        EyelevelError."""
        before = cls.this()
        if _LIBC.unshare(CLONE_NEWNET):
            raise EyelevelError(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
        new = cls.this()
        before._enter()
        before.close()
        return new

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Move this thread into the namespace for the duration of the block. Raises EyelevelError."""
        before = self.this()
        self._enter()
        try:
            yield
        finally:
            before._enter()
            before.close()

    def close(self) -> None:
        """Close the descriptor of the namespace."""
        os.close(self._descriptor)

    def _enter(self) -> None:
        if _LIBC.setns(self._descriptor, CLONE_NEWNET):
            raise EyelevelError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")
