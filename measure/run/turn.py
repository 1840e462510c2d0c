"""The turn of a load: the messages by which the visit in the replay and the process that prepared it agree on its
start.

    visit                                               other end
    "up"      the replay and the display are there  →
                                                  ←     "start"   it may start its browser
    "ready"   the browser shows an empty page     →
                                                  ←     "begin"   it is the load's turn
              (once its processors are idle, it loads the page)
    "painted" its film shows the page's first paint →   (if it is filmed)
    "quiet"   its page has been quiet for a while →
    "over"    nothing is measured any more        →

The messages pass through a pair of sockets; the visit's is its standard input. If the other end is closed, for any
reason, the load is no longer wanted.
"""

import os
import socket
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from base.errors import EyelevelError
from base.processes import first_readable
from browsers.browsertime.run import Turn
from measure.host.idleness import Idleness
from replay.cross_traffic import begin_cross_traffic

UP, START = b"up\n", b"start\n"
READY, BEGIN, PAINTED, QUIET, OVER = b"ready\n", b"begin\n", b"painted\n", b"quiet\n", b"over\n"
SIGN_BYTES = 64
STANDARD_INPUT = 0

# A load begins when its processors were idle for this share of the last IDLE_S. The remaining share allows for work
# that a machine always does, and for errors of the kernel, which counts in hundredths of a second (with two processors,
# two of ten may be wrong).
IDLE_SHARE = 0.75
IDLE_S = 0.05
LOOK_S = 0.01
# If others use the machine all the time, the load begins nevertheless after this time; the gates judge how they
# disturbed it. The time is long enough for others' short work to end: with a limit of 0.5 s, two of 36 runs were slower
# by a tenth or more.
LATEST_S = 3.0


def turn_of_visit(
    stamps: MutableMapping[str, float | None],
    *,
    is_prompted: bool,
    has_painted: Callable[[], bool] = lambda: False,
    latest_s: float = LATEST_S,
    idle_share: Callable[[], float | None] | None = None,
) -> Turn:
    """The turn of the load that this process makes, on its processors. If it `is_prompted`, signs pass through the
    standard input.

    `stamps` gets these entries: when the browser could `start`, when it was `ready`, when the load should `begin`, when
    the page had been `quiet` for a while (all s since 1970), and how idle the processors were at the beginning
    (`idle_share`; None if the kernel does not say). `has_painted` says whether the film shows the page's first paint.
    Background flows begin earlier; `cross_traffic_s` is for how long they had run when they were steady. The load waits
    for idle processors for at most `latest_s`. The function `idle_share` measures how idle they are; by default it
    measures those of this process.
    """
    prompter = _take_standard_input() if is_prompted else None

    def await_start() -> None:
        say(UP)
        # BEGIN may have come, too.
        if prompter and not _received(prompter, len(START)):
            raise EyelevelError("the load was given up before its browser started")
        stamps["start"] = time.time()

    def await_begin(ended: int) -> None:
        stamps["ready"] = time.time()
        say(READY)
        if prompter and first_readable(ended, prompter.fileno()) != ended and not _received(prompter):
            raise EyelevelError("the load was given up before it began")
        stamps["cross_traffic_s"] = begin_cross_traffic()
        look = idle_share or Idleness(os.sched_getaffinity(0), IDLE_S).look
        until_s = time.monotonic() + latest_s
        while ((share := look()) is None or share < IDLE_SHARE) and time.monotonic() < until_s:
            if first_readable(ended, timeout_s=LOOK_S) is not None:
                break
        stamps["idle_share"] = None if share is None else round(share, 3)
        stamps["begin"] = time.time()

    def look() -> None:
        if "painted" not in stamps and has_painted():
            stamps["painted"] = time.time()
            say(PAINTED)

    def say_quiet() -> None:
        stamps["quiet"] = time.time()
        say(QUIET)

    def say(sign: bytes) -> None:
        if prompter:
            with suppress(OSError):  # the other end is closed
                prompter.sendall(sign)

    return Turn(await_start, await_begin, look, say_quiet, partial(say, OVER))


def _take_standard_input() -> socket.socket:
    """The standard input, as a socket; programs that this process starts from now on get an empty one."""
    end = socket.socket(fileno=os.dup(STANDARD_INPUT))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), STANDARD_INPUT)
    return end


class Prompter:
    """The preparing process's side of the sockets to the visit. The visit inherits `standard_input`; then this process
    must close it."""

    def __init__(self) -> None:
        self._socket, self.standard_input = socket.socketpair()
        self._signs = b""

    def say_start(self) -> None:
        """Let the browser start when the replay is there."""
        self._say(START)

    def say_begin(self) -> None:
        """Let the load begin when it is ready."""
        self._say(BEGIN)

    def await_sign(self, ended: int, *signs: bytes, timeout_s: float | None = None) -> bytes | None:
        """Wait until the visit has sent one of `signs`, has ended, the descriptor `ended` is readable, or `timeout_s`
        has passed. Returns the first of `signs` that was sent; None if none was."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not any(sign in self._signs for sign in signs):
            rest_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            if first_readable(ended, end := self._socket.fileno(), timeout_s=rest_s) != end:
                break
            if not (more := _received(self._socket)):
                break
            self._signs += more
        return next((sign for sign in signs if sign in self._signs), None)

    def _say(self, sign: bytes) -> None:
        with suppress(OSError):  # the load has ended; its outcome says why
            self._socket.sendall(sign)

    def close(self) -> None:
        """Close both ends; a load that has not begun then ends."""
        self._socket.close()
        self.standard_input.close()


def _received(end: socket.socket, most: int = SIGN_BYTES) -> bytes:
    """The bytes that the other end sent, up to the number `most`; empty if that end was closed, even if it had unread
    bytes."""
    try:
        return end.recv(most)
    except ConnectionResetError:
        return b""
