"""A lane at work, seen by who started it: a process on cores of its own (`measure.host.lanes`), which measures a block
after another (`measure.campaign.lane_process`).

    whoever has the lane ── a pair of sockets ── measure.campaign.lane_process ── replay, browser, films

Whatever the process starts inherits its cores. It hands on the events of its block, and gives away a row and waits
before it goes on, so that one process writes all rows, whatever the number of lanes. It ends with who started it.
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
# How long the replay of a lane may take to end (its own limit is `replay.sandbox.TEARDOWN_TIMEOUT_S`), and the rest.
END_S = 20.0


@dataclass(frozen=True)
class LaneSetting:
    """The setting that a lane is given first: which lane it is, the folder of the campaign, the lane's canaries so far
    and how long one holds (`Slot`), and the browser."""

    lane: Lane
    folder: Path
    canaries: Sequence[Canary] = ()
    canary_s: float = 0.0
    browser: str = DEFAULT_BROWSER


@dataclass(frozen=True)
class Ending:
    """The block has been measured; or, with a `fault`, it and the lane end here."""

    fault: Exception | None = None


Message = Event | Row | Ending


class RunningLane:
    """A lane at work. `connection` has something to read when there is a message."""

    def __init__(self, lane: Lane, process: "subprocess.Popen[bytes]", connection: Connection) -> None:
        self.lane = lane
        self.connection = connection
        self._process = process

    @property
    def process(self) -> int:
        """The number of its process."""
        return self._process.pid

    def begin(self, block: Block, store: FolderStore) -> None:
        """Let it measure what is open of `block` in `store`. Raises EyelevelError when the lane has ended."""
        self._send(block.open_in(store))

    def hear(self, store: FolderStore, notify: Notify = lambda _: None) -> Message:
        """Wait for its next message and do what follows from it: a row is in `store` then, and the lane goes on;
        `notify` has an event. Raises what has ended the lane."""
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
        """Let it go on after a row, which is kept by now. Raises EyelevelError when the lane has ended."""
        self._send(None)

    def stop(self) -> None:
        """Let it end soon, whatever it does."""
        self._process.terminate()

    def _send(self, content: object) -> None:
        try:
            self.connection.send(content)
        except OSError:
            raise self._failure() from None

    def _failure(self) -> EyelevelError:
        status = self._process.wait()
        return EyelevelError(f"lane {self.lane.number} has ended with status {status}; what it printed is above")


def stop_all(lanes: Iterable[RunningLane]) -> None:
    """Let all `lanes` end soon, at once: each takes its time."""
    for lane in lanes:
        lane.stop()


@contextmanager
def running_lane(setting: LaneSetting) -> Iterator[RunningLane]:
    """Have a lane at work while the block runs; what it does when the block ends is broken off."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # The kernel ends it when we are killed, and what it has started then.
        program, environment = python_process(PROGRAM, str(theirs.fileno()))
        process = subprocess.Popen(
            [*pinned(setting.lane.cores), *program],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a terminal's Ctrl-C is not for it: we end it
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
