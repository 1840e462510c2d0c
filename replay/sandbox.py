"""Runs a replay in fresh namespaces, which end with it, however it ends.

    caller ── setpriv ── unshare ── replay.inside (process 1 inside)
       └──────── leash (a pipe) ────────┘

The processes inside have their own process IDs, mounts, network and IPC. If started by an ordinary user, they remain
that user, with capabilities only within these namespaces. When process 1 ends, the kernel ends all others, and removes
their mounts and networks. The caller holds a leash: when it lets go or dies, process 1 ends in an orderly way. Should
that fail, the death signals along the chain end process 1 nevertheless.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, cache_dir
from base.portable import as_argument
from base.privileges import require_namespaces
from base.processes import end_within, first_readable
from replay.hops.registry import require_served_on
from replay.shells.registry import require_emulated
from replay.spec import ReplayOutcome, ReplaySpec
from servers.registry import require_served

TEARDOWN_TIMEOUT_S = 15.0


class Replay:
    """A running replay of a site, with a command as its client, in fresh namespaces.

    `pid` is the process from which all of its processes descend. The descriptor `ended` becomes readable when it has
    ended. The replay ends with the thread that started it, however that ends.
    """

    def __init__(
        self,
        spec: ReplaySpec,
        command: Sequence[str | Path],
        *,
        beginning: Sequence[str | Path] = (),
        **streams: int | None,
    ) -> None:
        """Start the replay, with a command line that begins with `beginning`. `streams` (stdin, stdout, stderr) are
        passed to the command as in `subprocess.Popen`.

        Raises EyelevelError when this user may not replay, no server serves the protocol, or the shells cannot emulate
        the network.
        """
        require_namespaces("replaying")
        require_served([spec.protocol])
        require_emulated(spec.shells, [spec.network], delayed_servers=any(spec.extra_rtts_ms.values()))
        require_served_on(spec.network, spec.protocol)
        self._site = spec.site.name
        leash_end, self._leash = os.pipe()
        self.ended, report_end = os.pipe()
        inside = [sys.executable, "-m", "replay.inside", str(leash_end), str(report_end), as_argument(spec), *command]
        try:
            self._process = subprocess.Popen(
                [*beginning, *namespaced("mount", "net", "ipc"), *inside],
                pass_fds=(leash_end, report_end),
                env={**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)},
                **streams,  # type: ignore[call-overload]
            )
        except BaseException:
            os.close(self._leash)
            os.close(self.ended)
            raise
        finally:
            os.close(leash_end)
            os.close(report_end)
        self.pid = self._process.pid

    def await_end(self) -> None:
        """Wait until the replay has ended."""
        first_readable(self.ended)

    def outcome(self) -> ReplayOutcome:
        """The outcome, when the whole replay has ended. Raises EyelevelError when it could not be set up, or a part of
        it failed while the command ran."""
        with os.fdopen(os.dup(self.ended), "rb") as reader:
            text = reader.read()
        status = self._process.wait()
        if not text:
            raise EyelevelError(f"the replay of {self._site} was killed, or failed (status {status})")
        outcome = json.loads(text)
        if outcome["error"]:
            raise EyelevelError(outcome["error"])
        return ReplayOutcome(outcome["status"], outcome["evidence"])

    def close(self) -> None:
        """End the whole replay, in an orderly way if possible; afterwards nothing of it remains. Call this once."""
        os.close(self._leash)
        end_within(self._process, TEARDOWN_TIMEOUT_S)
        os.close(self.ended)


def run(
    spec: ReplaySpec,
    command: Sequence[str | Path],
    observation: Callable[[int], AbstractContextManager[None]] | None = None,
    **streams: int | None,
) -> ReplayOutcome:
    """Replay `spec` and run `command` as its client; returns when the whole replay has ended.

    Meanwhile, the context of `observation` is open; its argument is the process from which all of the replay's
    processes descend. `streams` and errors are those of `Replay`.
    """
    with closing(Replay(spec, command, beginning=(), **streams)) as replay:
        with observation(replay.pid) if observation else nullcontext():
            replay.await_end()
        return replay.outcome()
