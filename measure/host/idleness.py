"""Whether processors have nothing to do, as the kernel counts it."""

import os
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path

STAT = Path("/proc/stat")
# Columns of a processor's line in it (proc(5)), and how many of their units are a second.
IDLE, IOWAIT = 4, 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Idleness:
    """How idle `cores` have been lately. The kernel counts in hundredths of a second."""

    def __init__(
        self, cores: Collection[int], window_s: float, stat: Path = STAT, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`window_s`: the time that is looked back on, by the clock `now` (s); `stat`: the kernel's counts."""
        self._stat, self._now = stat, now
        self._names = {f"cpu{core}" for core in cores}
        self._window_s = window_s
        self._looks: deque[tuple[float, int]] = deque()

    def look(self) -> float | None:
        """The share of the last `window_s` in which the cores had nothing to do; None when nobody has looked for so
        long, or the kernel does not tell of all of them."""
        now_s, text = self._now(), self._stat.read_text()
        lines = [fields for line in text.splitlines() if (fields := line.split())[0] in self._names]
        if len(lines) < len(self._names):
            return None
        self._looks.append((now_s, sum(int(fields[IDLE]) + int(fields[IOWAIT]) for fields in lines)))
        # The newest look that is old enough is the one to compare with.
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= self._window_s:
            self._looks.popleft()
        (before_s, before), (_, now) = self._looks[0], self._looks[-1]
        if now_s - before_s < self._window_s:
            return None
        return min(1.0, (now - before) / TICKS_PER_S / (len(lines) * (now_s - before_s)))
