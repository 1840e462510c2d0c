"""The network namespace of a hop, for the programs that work in it."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of, run_program
from replay.spec import PRIVATE

FOLDER = PRIVATE / "hop"
# The name that our shells give to the device which leads to the servers, in the hop's namespace.
FAR_DEVICE = "ingress"
# The routing table for packets from the client: it treats every address as the hop's own.
TABLE = "201"


def lead_in(transports: Sequence[str]) -> str:
    """Make this namespace accept all packets of `transports` from the client as its own; returns the device on which
    they arrive. Raises EyelevelError."""
    names = [name for _, name in socket.if_nameindex() if name not in ("lo", FAR_DEVICE)]
    if len(names) != 1:
        raise EyelevelError(f"expected one device between hop and client, found {names or 'none'}")
    (near,) = names
    commands = [f"route add local default dev lo table {TABLE}"]
    commands += [f"rule add iif {near} ipproto {transport} lookup {TABLE}" for transport in transports]
    run_program([tool("ip"), "-batch", "-"], "packets cannot be led into the hop", "\n".join(commands))
    return near


def version(program: Path, option: str) -> str:
    """The first line that `program` prints about its version. Raises EyelevelError."""
    completed = subprocess.run([program, option], capture_output=True, text=True, check=False)
    if completed.returncode:
        raise EyelevelError(f"{program} does not run: {last_line_of(completed.stderr)}")
    return completed.stdout.splitlines()[0]
