"""A lane, seen from the process that started it. A lane is a process on cores of its own (`measure.host.lanes`) that
measures one block after another (`measure.campaign.lane_process`).

    the starter ── a pair of sockets ── measure.campaign.lane_process ── replay, browser, films

All that the lane's process starts inherits its cores. The lane sends its block's events and rows to its starter, and
waits after each row until the starter has stored it: so one process writes all rows, whatever the number of lanes. The
lane ends when its starter ends.
"""

import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from base.errors import EyelevelError
from base.processes import end_within, pinned, python_process
from dataset.table import Row
from measure.campaign.block import Block, Event, Notify
from measure.campaign.store import FolderStore
from measure.host.canary import Canary
from measure.host.lanes import Lane
from tuning.defaults import DEFAULT_BROWSER

PROGRAM = "measure.campaign.lane_process"
# How long (s) a lane may take to end. Most of this is for its replay, which may take up to
# `replay.sandbox.TEARDOWN_TIMEOUT_S`.
END_S = 20.0


@dataclass(frozen=True)
class LaneSetting:
    """The setting that is sent to a lane first: which lane it is, the campaign's folder, the lane's canaries so far,
    how long a canary holds (`Slot`), the browser, and the folder by which loads in lanes of the same cores take turns
    (`measure.host.sharing`), None if no other lane has these cores."""

    lane: Lane
    folder: Path
    canaries: Sequence[Canary] = ()
    canary_s: float = 0.0
    browser: str = DEFAULT_BROWSER
    sharing: Path | None = None


@dataclass(frozen=True)
class Ending:
    """The block has been measured. With a `fault`, the block and the lane have ended early."""

    fault: Exception | None = None


Message = Event | Row | Ending


class RunningLane:
    """A running lane. `connection` is readable when there is a message."""

    def __init__(self, lane: Lane, process: "subprocess.Popen[bytes]", connection: Connection) -> None:
        self.lane = lane
        self.connection = connection
        self._process = process

    @property
    def process(self) -> int:
        """The lane's process number."""
        return self._process.pid

    def begin(self, block: Block, store: FolderStore) -> None:
        """Let the lane measure those runs of `block` that are open in `store`. Raises EyelevelError when the lane has
        ended."""
        self._send(block.open_in(store))

    def hear(self, store: FolderStore, notify: Notify = lambda _: None) -> Message:
        """Wait for the lane's next message and handle it: store a row and let the lane continue, or pass an event to
        `notify`. Raises the error that has ended the lane."""
        message = self.message()
        if isinstance(message, Row):
            store.keep(message)
            self.go_on()
        elif not isinstance(message, Ending):
            notify(message)
        return message

    def message(self) -> Message:
        """Wait for the lane's next message, and return it. Raises the error that has ended the lane."""
        try:
            message: Message = self.connection.recv()
        except (EOFError, OSError):
            raise self._failure() from None
        if isinstance(message, Ending) and message.fault:
            raise message.fault
        return message

    def go_on(self) -> None:
        """Let the lane continue after a row, which is stored by now. Raises EyelevelError when the lane has ended."""
        self._send(None)

    def stop(self) -> None:
        """Let the lane end soon, whatever it is doing."""
        self._process.terminate()

    def _send(self, content: object) -> None:
        try:
            self.connection.send(content)
        except OSError:
            raise self._failure() from None

    def _failure(self) -> EyelevelError:
        status = self._process.wait()
        return EyelevelError(f"lane {self.lane.number} has ended with status {status}; its output is above")


def stop_all(lanes: Iterable[RunningLane]) -> None:
    """Let all `lanes` end soon, in parallel, since each takes a while."""
    for lane in lanes:
        lane.stop()


@contextmanager
def running_lane(setting: LaneSetting) -> Iterator[RunningLane]:
    """Run a lane while the context lasts. When the context ends, the lane's work is interrupted."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # If we are killed, the kernel ends this process and what it has started.
        program, environment = python_process(PROGRAM, str(theirs.fileno()))
        process = subprocess.Popen(
            [*pinned(setting.lane.cores), *program],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # protects it from a terminal's Ctrl-C: we end it
        )
        theirs.close()
        try:
            with Connection(ours.detach()) as connection:
                lane = RunningLane(setting.lane, process, connection)
                connection.send(setting)
                yield lane
        finally:
            process.terminate()
            end_within(process, END_S)
