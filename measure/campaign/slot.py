"""A slot makes one run at a time: a machine or a lane, with its canaries, its layout of cores and its failed
replays."""

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from base.errors import EyelevelError
from dataset.table import Row
from measure.host import timekeeping
from measure.host.affinity import layout
from measure.host.canary import BUSY, USUAL, Canary, drift, slowness, time_canary
from measure.host.sharing import ALONE, Sharing
from measure.run.gates import REPLAY
from measure.run.setting import Circumstances
from tuning.defaults import DEFAULT_BROWSER

# A canary takes two thirds of a second; one a minute shows a busy machine as well as one before each block. On slow
# networks, blocks take longer than that anyway.
CANARY_MAX_AGE_S = 60.0
WAY_OUT = "resume when it is idle, or begin another campaign if it stays slower"

# After this many failures in a row, the rest of the campaign would fail, too.
REPLAY_FAILURES_IN_A_ROW = 5

# Machines made from one image may have the same host name.
MACHINE_ID = Path("/etc/machine-id")


class Slot:
    """This machine, or the `lane` with this number; this process runs on its cores. The slot times canaries in
    `browser`; `canaries` are the earlier ones. Once there are enough canaries to know the usual time, a canary holds
    for all blocks that begin within `canary_s`. `sharing`: the loads of other slots with the same cores. If the machine
    is busy, the slot waits up to `patience_s`, with a new canary every `pause_s`."""

    patience_s = 900.0
    pause_s = 10.0

    def __init__(
        self,
        canaries: Iterable[Canary] = (),
        canary_s: float = CANARY_MAX_AGE_S,
        browser: str = DEFAULT_BROWSER,
        lane: int | None = None,
        sharing: Sharing = ALONE,
    ) -> None:
        self.machine = machine_name()
        self.lane = lane
        self._replay_failures = 0
        self._layout = layout()
        self._canaries = list(canaries)
        self._canary_s = canary_s
        self._browser = browser
        self._sharing = sharing
        self._last: tuple[float, Circumstances] | None = None

    def circumstances(self, block: int, warn: Callable[[str], None], *, shared: bool = False) -> Circumstances:
        """The machine's state now, before (a part of) `block`. Calls `warn` when the machine has become slower.
        `shared`: other slots measure on the same cores meanwhile.

        Waits while the machine is too busy for valid runs. Raises EyelevelError when it stays too busy.
        """
        now = self._state(block, warn, shared=shared)
        return replace(now, sharing=self._sharing) if shared else now

    def _state(self, block: int, warn: Callable[[str], None], *, shared: bool) -> Circumstances:
        if self._last and self._still_holds(block, *self._last, shared=shared):
            # A canary appears only in the rows of the block before which it was timed.
            now = replace(self._last[1], block=block, canary=None)
            self._last = self._last[0], now
            return now
        self._canaries.append(self.timed_canary())
        until = time.monotonic() + self.patience_s
        while (factor := slowness(self._canaries)) > BUSY:
            if time.monotonic() > until:
                raise EyelevelError(
                    f"{self.machine} has taken {factor:.1f} times as long as usual for too long; {WAY_OUT}"
                )
            warn(f"{self.machine} is busy: it takes {factor:.1f} times as long as usual; waiting")
            time.sleep(self.pause_s)
            self._canaries[-1] = self.timed_canary()
        if slower := drift(self._canaries):
            warn(slower)
        now = Circumstances(block, self.machine, self._canaries[-1], factor, self._layout, self.lane)
        self._last = time.monotonic(), now
        return now

    def has_real_time_priority(self) -> bool:
        """Whether the network emulator runs with real-time priority (`measure.host.timekeeping`)."""
        return timekeeping.has_real_time_priority()

    def count(self, row: Row) -> None:
        """Count `row`. Raises EyelevelError when replays fail repeatedly, since the rest of the campaign would fail,
        too."""
        self._replay_failures = self._replay_failures + 1 if row.gate == REPLAY.name else 0
        if self._replay_failures == REPLAY_FAILURES_IN_A_ROW:
            raise EyelevelError(f"{self._replay_failures} replays in a row failed, the last with: {row.reason}")

    def timed_canary(self) -> Canary:
        """Time a canary now. Raises EyelevelError when the browser cannot be run."""
        with self._sharing.starting():
            return time_canary(self._browser)

    def _still_holds(self, block: int, timed_at_s: float, last: Circumstances, *, shared: bool) -> bool:
        """Whether the canary of `last`, timed at `timed_at_s` (monotonic), is recent enough for `block`."""
        # A block that begins again had rejected runs, perhaps because the machine was busy.
        is_repeated = block == last.block
        if shared and not is_repeated:
            return True  # a canary would disturb the other loads, and they would disturb it
        is_usual_known = len(self._canaries) > USUAL
        return time.monotonic() - timed_at_s < self._canary_s and is_usual_known and not is_repeated


def canaries_of(machine: str, rows: Iterable[Row], lane: int | None = None) -> list[Canary]:
    """The canaries of `machine`, or of its `lane`, from `rows`, in order."""
    of_place = [row for row in rows if (row.machine, row.lane) == (machine, lane)]
    rows_of_machine = [row for row in of_place if row.canary_cpu_ms and row.canary_page_ms]
    # All rows of a block that share a canary have the same values.
    canaries = dict.fromkeys((row.block, row.canary_cpu_ms or 0, row.canary_page_ms or 0) for row in rows_of_machine)
    return [Canary(cpu_ms, page_ms) for _, cpu_ms, page_ms in canaries]


def machine_name() -> str:
    """The machine's host name, with a suffix that distinguishes machines of the same name."""
    try:
        # The machine ID is confidential, but a keyed hash of it is not (machine-id(5)).
        number = blake2b(MACHINE_ID.read_bytes().strip(), key=b"eyelevel", digest_size=4)
        return f"{platform.node()}-{number.hexdigest()}"
    except OSError:
        return platform.node()
