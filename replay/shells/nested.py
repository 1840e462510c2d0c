"""`python -m replay.shells.nested SPEC COMMAND…`: run a command on the network of Mahimahi's shells.

    this ─┬─ mm-delay ─ mm-link ─ mm-loss ─ holder      a network namespace for each shell
          └─ the command, in the holder's namespace

Mahimahi's shells refuse to run as root, obtain root's rights by being setuid, and hide their command's status. In a
replay's own namespaces, this process has all rights that they need, as root or not; `rights.c`, which is loaded into
them, makes them see that. The command is not their child: it keeps its rights, its status and its terminal.

Otherwise the shells are unchanged. Each starts a name server inside, which forwards queries through the emulated
network, and ends when that name server does. So queries to port 53 are redirected to the client's own name server.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError, reports_errors
from base.places import tool
from base.processes import first_readable, pidfd, run_program, stopped_at_the_end
from base.structure import from_json
from replay.shells.contract import ORDINARY_PRIORITY

RIGHTS = "rights.so"
# Prints its process ID, and ends when its standard input is closed, that is, with this process. It must not load
# RIGHTS, which would make `sh` see a wrong user.
HOLDER = ("env", "--unset=LD_PRELOAD", "sh", "-c", "echo $$ && exec cat")


@dataclass(frozen=True)
class NestedSpec:
    """The shells: the folder of their programs, and the words of their command lines in order, with programs by name.

    At their end, their timekeeping is written into the file `timekeeping`. The client's name server listens at
    `name_server_port`.
    """

    programs: Path
    words: tuple[str, ...]
    timekeeping: Path
    name_server_port: int


@reports_errors
def main(spec: NestedSpec, command: Sequence[str]) -> None:
    """Run `command` in the nested shells, and exit with its status."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the command, which gets it, too
    with _nest(spec) as (holder, shells):
        inside: list[str | Path] = [tool("nsenter"), f"--net=/proc/{holder}/ns/net", "--"]
        for transport in ("udp", "tcp"):
            rule = f"-t nat -A OUTPUT -o lo -p {transport} --dport 53 -j REDIRECT --to-ports {spec.name_server_port}"
            run_program([*inside, tool("iptables"), *rule.split()], "the client's name server would get no queries")
        status = _run([*inside, *command], shells)
    spec.timekeeping.write_text(f"{ORDINARY_PRIORITY}\n")
    sys.exit(status)


@contextmanager
def _nest(spec: NestedSpec) -> "Iterator[tuple[int, subprocess.Popen[bytes]]]":
    """The shells while the context lasts: the process in the innermost namespace, and the outermost shell."""
    words = [str(spec.programs / word) if word.startswith("mm-") else word for word in spec.words]
    environment = {**os.environ, "LD_PRELOAD": str(spec.programs / RIGHTS)}
    with stopped_at_the_end(
        subprocess.Popen(
            [*words, *HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # a terminal's Ctrl-C is only for the command
        )
    ) as shells:
        assert shells.stdin and shells.stdout
        if not (holder := shells.stdout.readline()):
            raise EyelevelError(f"Mahimahi's shells could not be started (status {shells.wait()})")
        yield int(holder), shells
        shells.stdin.close()
        if shells.wait():
            raise EyelevelError(f"Mahimahi's shells failed (status {shells.returncode})")


def _run(command: Sequence[str | Path], shells: "subprocess.Popen[bytes]") -> int:
    """The exit status of `command`, as a shell returns it. Raises EyelevelError when the shells end first."""
    with stopped_at_the_end(subprocess.Popen(command)) as process, pidfd(process) as ended, pidfd(shells) as fallen:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        if first_readable(ended, fallen) == fallen:
            raise EyelevelError(f"Mahimahi's shells ended before the client (status {shells.wait()})")
        status = process.wait()
        return status if status >= 0 else 128 - status


if __name__ == "__main__":
    main(from_json(sys.argv[1], NestedSpec, "the specification of the nested shells"), sys.argv[2:])
