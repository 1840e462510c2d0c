"""How idle processors are, by the kernel's counters."""

import os
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path

STAT = Path("/proc/stat")
# The columns of a processor's line in /proc/stat (proc(5)), and the number of their units in a second.
IDLE, IOWAIT = 4, 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Idleness:
    """The recent idleness of `cores`. The kernel counts in hundredths of a second."""

    def __init__(
        self, cores: Collection[int], window_s: float, stat: Path = STAT, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`window_s`: the length of time considered, by the clock `now` (s); `stat`: the kernel's counters."""
        self._stat, self._now = stat, now
        self._names = {f"cpu{core}" for core in cores}
        self._window_s = window_s
        self._looks: deque[tuple[float, int]] = deque()

    def look(self) -> float | None:
        """The share of the last `window_s` in which the cores were idle. None if the first look was less than
        `window_s` ago, or if the kernel does not report all cores."""
        now_s, text = self._now(), self._stat.read_text()
        lines = [fields for line in text.splitlines() if (fields := line.split())[0] in self._names]
        if len(lines) < len(self._names):
            return None
        self._looks.append((now_s, sum(int(fields[IDLE]) + int(fields[IOWAIT]) for fields in lines)))
        # Compare with the newest look that is at least `window_s` old.
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= self._window_s:
            self._looks.popleft()
        (before_s, before), (_, now) = self._looks[0], self._looks[-1]
        if now_s - before_s < self._window_s:
            return None
        return min(1.0, (now - before) / TICKS_PER_S / (len(lines) * (now_s - before_s)))
