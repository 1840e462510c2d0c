"""Running a replay in fresh namespaces, which end with it, whatever ends it.

    caller ── setpriv ── unshare ── replay.inside (process 1 inside)
       └──────── leash (a pipe) ────────┘

The processes inside have their own process ids, mounts, network, and IPC; those of an ordinary user keep that user, and
have capabilities over these namespaces alone. When process 1 ends, the kernel ends all others and drops their mounts
and networks. The caller holds a leash: it lets go of it, or dies, and process 1 ends in order; should that fail, the
death signals along the chain end it all the same.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, cache_dir
from base.privileges import require_namespaces
from base.processes import end_within
from base.structure import to_json
from replay.spec import ReplayOutcome, ReplaySpec
from servers.registry import require_served

TEARDOWN_TIMEOUT_S = 15.0


def run(
    spec: ReplaySpec,
    command: Sequence[str | Path],
    observation: Callable[[int], AbstractContextManager[None]] | None = None,
    **streams: int | None,
) -> ReplayOutcome:
    """Replay `spec` and run `command` as its client; returns when all of it has ended.

    Meanwhile the context of `observation` is open, which is given the process from which all of the replay's descend.
    `streams` (stdin, stdout, stderr) are handed to the command as in `subprocess.Popen`. Raises
    EyelevelError when the replay could not be set up, or a part of it failed while the command ran.
    """
    require_namespaces("replaying")
    require_served([spec.protocol])
    leash_end, leash = os.pipe()
    report, report_end = os.pipe()
    inside = [sys.executable, "-m", "replay.inside", str(leash_end), str(report_end), to_json(spec), *command]
    process = subprocess.Popen(
        [*namespaced("mount", "net", "ipc"), *inside],
        pass_fds=(leash_end, report_end),
        env={**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)},
        **streams,  # type: ignore[call-overload]
    )
    os.close(leash_end)
    os.close(report_end)
    try:
        with os.fdopen(report, "rb") as reader, observation(process.pid) if observation else nullcontext():
            text = reader.read()
        process.wait()
    finally:
        os.close(leash)
        end_within(process, TEARDOWN_TIMEOUT_S)
    if not text:
        status = process.returncode
        raise EyelevelError(f"the replay of {spec.site.name} was killed, or failed (status {status})")
    outcome = json.loads(text)
    if outcome["error"]:
        raise EyelevelError(outcome["error"])
    return ReplayOutcome(outcome["status"], outcome["evidence"])
