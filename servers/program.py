"""Serves a site with any program, which a protocol's `program` names: a command with placeholders.

The program is started for each address and port, in a jail. It passes requests on to the application
(`servers.application`), so its answers are those of the other servers.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from base.errors import EyelevelError
from base.jail import jailed, shared_folders
from base.processes import Daemon, first_readable, pidfd, running
from record.connections import HTTP1
from servers import kernel_sockets
from servers.application import uwsgi
from servers.contract import Server, Serving
from servers.handshakes import await_tls
from servers.sockets import listening, pace_listeners
from tuning.kernel import apply_sysctls
from tuning.protocols import BROWSERS_GROUP, PLACEHOLDER, Protocol

# How long a program may take until it listens: some first load a runtime, and all start at once.
START_TIMEOUT_S = 60.0
LOOK_S = 0.02
# The exit status by which a program says that it does not support a setting, as in quic-interop-runner.
UNSUPPORTED = 127
# The beginning of what the jailer prints if the program cannot be run. Its status is then 127, too.
NOT_RUN = "eyelevel: cannot run"
# QUIC's windows are counted in the packets with which connections begin (RFC 9002, section 7.2).
QUIC_SEGMENT_BYTES = 1200


class Program(Server):
    """A program of the user's. Congestion control is the kernel's over TCP, and the program's over QUIC."""

    name = "a program of your own"
    transports = ("tcp", "quic")
    programs: ClassVar = uwsgi.PROGRAMS
    speaks_http1 = True
    # Nothing is known of its pacing, which may keep it from filling its window.
    fills_window_after_loss = False

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        protocol, endpoints = serving.protocol, serving.listening()
        # Go's listeners are MPTCP's (since Go 1.24), whose sockets cannot be paced. Without MPTCP, they are TCP's.
        if Path("/proc/sys/net/mptcp").exists():
            apply_sysctls({"net.mptcp.enabled": "0"})
        port = _free_port()
        with uwsgi.running_application(serving, over_http=True, port=port) as application, ExitStack() as stack:
            daemons = {
                endpoint: stack.enter_context(_started(serving, *endpoint, f"http://127.0.0.1:{port}"))
                for endpoint in endpoints
            }
            application.await_ready()
            kind = socket.SOCK_STREAM if protocol.in_kernel else socket.SOCK_DGRAM
            for endpoint, daemon in daemons.items():
                await_listening(daemon, endpoint, kind)
            if protocol.in_kernel:
                await_tls(serving, daemons)
            if protocol.in_kernel and protocol.pacing:
                for endpoint, daemon in daemons.items():
                    pace_listeners(daemon.process.pid, [endpoint])
            yield

    def programs_for(self, protocol: Protocol) -> Mapping[str, str]:
        first, *others = _files(protocol)
        return {**self.programs, str(first): protocol.program_version or "", **{str(file): "" for file in others}}

    def congestion_controls_taken(self, folder: Path) -> set[str] | None:
        return kernel_sockets.congestion_controls(folder) or None

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        assert protocol.program
        program = Path(protocol.program[0])
        if not program.is_absolute():
            return f"the path of a program begins with /, ./, ../ or ~/, unlike {str(program)!r}"
        if not program.is_file():
            return f"there is no program {program}; build it, or correct `program`"
        if not os.access(program, os.X_OK):
            return f"{program} is not executable; run chmod +x {program}"
        if protocol.early_data:
            return f"early_data is not for {self.name}; set early_data = false"
        if protocol.tls_group != BROWSERS_GROUP:
            return f"tls_group of {self.name} must be {BROWSERS_GROUP}, not {protocol.tls_group}"
        return None

    def window_segment_bytes(self, protocol: Protocol) -> int:
        return protocol.segment_bytes if protocol.in_kernel else QUIC_SEGMENT_BYTES


PROGRAM = Program()


@contextmanager
def _started(serving: Serving, address: str, port: int, upstream: str) -> Iterator[Daemon]:
    """The program for an address and a port; it may not listen yet when the context begins. Raises EyelevelError."""
    protocol, certificate = serving.protocol, serving.certificates[address]
    assert protocol.program
    log = serving.folder / f"program-{address}-{port}.log"
    log.touch()  # before the jail makes its user the owner of the folder's files
    values = {
        "address": address,
        "port": port,
        "certificate": certificate.chain,
        "key": certificate.key,
        "upstream": upstream,
        "alpn": HTTP1 if address in serving.http1 else protocol.http_version,
        "log": log,
    }
    command = [PLACEHOLDER.sub(lambda match: str(values[match[1]]), word) for word in protocol.program]
    jail = serving.jail(*readable(protocol))
    # Python's variables are those of the testbed's Python.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["HOME"] = str(serving.folder)
    with running(protocol.server, jailed(jail, command), log, environment=environment) as daemon:
        yield daemon


def _files(protocol: Protocol) -> list[Path]:
    """The files that the command of a program names, the program first."""
    words = (Path(word) for word in protocol.program or ())
    return [path for number, path in enumerate(words) if not number or (path.is_absolute() and path.is_file())]


def readable(protocol: Protocol) -> list[Path]:
    """The files and folders that a program can read: the folder of each file that its command names, or only the file
    if the folder is shared (`base.jail`). The folder of a virtual environment's Python is the environment."""
    folders, shared = [], shared_folders()
    for file in _files(protocol):
        environment = file.parent.parent
        folder = environment if (environment / "pyvenv.cfg").exists() else file.parent
        folders.append(file if folder.resolve() in shared else folder)
    return list(dict.fromkeys(folders))


def _free_port() -> int:
    """A port of 127.0.0.1 at which nothing listens. In a replay's namespace, nobody else takes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def await_listening(
    daemon: Daemon, endpoint: tuple[str, int], kind: socket.SocketKind, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Return when a socket of this `kind` is bound to `endpoint`, and listens there if it is TCP's. Raises
    EyelevelError when `daemon` ends before, or does not listen within `timeout_s`."""
    end_s = time.monotonic() + timeout_s
    with pidfd(daemon.process) as ended:
        while time.monotonic() < end_s:
            if endpoint in listening(kind):
                return
            # The kernel does not report that a program begins to listen, so look regularly.
            if first_readable(ended, timeout_s=LOOK_S) is not None:
                raise _failure(daemon)
    transport = "TCP" if kind == socket.SOCK_STREAM else "UDP"
    place = "{}:{}".format(*endpoint)
    raise EyelevelError(f"nothing listens at {place} over {transport} after {timeout_s:g} s; {daemon.failure()}")


def _failure(daemon: Daemon) -> EyelevelError:
    """The error to raise when a program has ended before it listened."""
    failure = daemon.failure()
    if daemon.process.poll() == UNSUPPORTED and NOT_RUN not in str(failure):
        return EyelevelError(f"unsupported: {failure}")
    return failure
