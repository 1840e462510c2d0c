"""Background flows of a replay, from outside: they are set up with it, begin on request, and end with it.

`replay.cross_traffic_flows` does the work, in a process of its own next to the servers.
"""

import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from base.errors import EyelevelError
from base.files import read_json
from base.portable import as_argument
from base.processes import running
from replay.spec import PRIVATE, ReplaySpec
from tuning.cross_traffic import Flow, flows_of, steady_s

FOLDER = PRIVATE / "cross_traffic"
# The socket for starting the flows: when it is the load's turn, the client sends BEGIN, and receives STEADY once the
# flows are steady.
CONTROL = FOLDER / "control"
BEGIN, STEADY = b"begin\n", "steady"
# The files that the process writes: one at its end, and one while it runs, with a row for each flow every 50 ms.
ACCOUNT, SAMPLES = "account.json", "samples.tsv"


@dataclass(frozen=True)
class CrossTrafficSpec:
    """The `flows`; `client`, the ID of a process in the client's network namespace; and `steady_s`, the seconds after
    which the flows are steady.

    Times on and off are drawn from `seed`. `logged`: whether servers log their congestion control.
    """

    flows: tuple[Flow, ...]
    client: int
    steady_s: float
    seed: int
    logged: bool = False


def cross_traffic_of(spec: ReplaySpec) -> tuple[Flow, ...]:
    """The background flows of a replay."""
    return spec.flows or flows_of(spec.network)


@contextmanager
def accompanied(spec: ReplaySpec, connection: socket.socket, evidence: dict[str, Any]) -> Iterator[None]:
    """Keep the flows of `spec` ready while the context lasts; they run at once unless they await the load's turn.

    The client waits at the other end of `connection`. At the end, the flows' account is put into `evidence`. Raises
    EyelevelError when one of them could not be set up, or ended.
    """
    if not (flows := cross_traffic_of(spec)):
        yield
        return
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    client, _, _ = struct.unpack("3i", peer)
    draws = random.Random(spec.seed)
    # The load meets the flows at a random phase of their steady state.
    settle_s = 0.0 if spec.flows else steady_s(spec.network) * (1 + draws.random())
    cross_traffic = CrossTrafficSpec(flows, client, round(settle_s, 3), draws.getrandbits(32), spec.qlog is not None)
    FOLDER.mkdir()
    command = [sys.executable, "-m", "replay.cross_traffic_flows", as_argument(cross_traffic)]
    try:
        with running("the cross traffic", command, FOLDER / "cross_traffic.log", stdout=subprocess.PIPE) as process:
            process.first_line()
            if not spec.cross_traffic_awaits_turn:
                begin_cross_traffic()
            yield
        if process.process.returncode not in (0, -signal.SIGTERM):
            raise process.failure()
    finally:
        if spec.cross_traffic_log and (FOLDER / SAMPLES).exists():
            shutil.copyfile(FOLDER / SAMPLES, spec.cross_traffic_log)
    evidence["cross_traffic"] = read_json(FOLDER / ACCOUNT)


def begin_cross_traffic() -> float:
    """Start the flows of this replay, if it has any, and wait until they are steady; returns how many seconds they have
    run by then. Raises EyelevelError when one ends instead."""
    if not CONTROL.exists():
        return 0.0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(str(CONTROL))
        control.sendall(BEGIN)
        with control.makefile("r") as lines:
            if not (line := lines.readline()).startswith(STEADY):
                raise EyelevelError("a background flow ended before the page began")
    return float(line.split()[1])
