"""Canaries: the machine's present speed, measured by the same small tasks before each block.

The tasks are a processor task and a page load, both independent of what is measured. If they take longer, the machine
has changed (another tenant, heat, a different clock rate), and runs will take longer, too.
"""

import hashlib
import os
import subprocess
import time
import timeit
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from base.errors import EyelevelError
from base.jail import Jail, jailed
from base.namespaces import namespaced
from base.processes import last_line_of
from browsers.registry import browser_named
from tuning.defaults import DEFAULT_BROWSER

# Takes about 50 ms on a machine of 2023. The fastest of the repetitions shows what the processor can do.
HASHED_BYTES = 1 << 20
HASHES = 25
REPETITIONS = 3

PAGE_TIMEOUT_S = 60
# A browser may crash once for reasons other than the machine.
TRIES = 3
# A page that needs layout, scripts and painting, and no network.
PAGE = Path(__file__).with_name("canary.html")
# A folder in memory inside the jail; it vanishes with the jail.
PRIVATE = Path("/dev/shm")
PICTURE = PRIVATE / "canary.png"
SCRIPT = f'"$@" && test -s {PICTURE}'

# The usual time is the median of this many of the first canaries, the present time that of this many of the last. If
# the present time exceeds the usual by DRIFT, the machine has drifted. On a shared machine of two cores, a single
# canary is off by up to a third.
USUAL = 5
RECENT = 3
DRIFT = 1.25
# If a single canary exceeds the usual time by this factor, the runs after it do not count (`gates.machine_busy`). Two
# campaigns on such a machine, the second with compilers and other campaigns running, had 143 canaries: one took more
# than twice as long as usual. The runs after canaries that took 1.25 to 2 times as long were up to 8 % slower in SI and
# PLT than their setting's median.
BUSY = 2.0


@dataclass(frozen=True)
class Canary:
    """The times (ms) of the processor task (its fastest repetition) and of the page load in a fresh browser."""

    cpu_ms: float
    page_ms: float


def time_canary(browser: str = DEFAULT_BROWSER) -> Canary:
    """Time the tasks now. Raises EyelevelError when the browser cannot be run."""
    for _ in range(TRIES - 1):
        with suppress(EyelevelError):
            return Canary(round(_cpu_ms(), 2), round(_page_ms(browser), 1))
    return Canary(round(_cpu_ms(), 2), round(_page_ms(browser), 1))


def slowness(canaries: Sequence[Canary], recent: int = 1) -> float:
    """The median time of the last `recent` of `canaries` (one machine's, in order) over their usual time, for the task
    that has slowed more; 1 while there are too few canaries."""
    if len(canaries) < USUAL + recent:
        return 1.0
    usual, now = canaries[:USUAL], canaries[-recent:]
    return max(
        median(canary.cpu_ms for canary in now) / median(canary.cpu_ms for canary in usual),
        median(canary.page_ms for canary in now) / median(canary.page_ms for canary in usual),
    )


def drift(canaries: Sequence[Canary]) -> str | None:
    """A warning if the machine has become slower since the start; otherwise None."""
    factor = slowness(canaries, RECENT)
    return f"this machine takes {factor:.2f} times as long as at the campaign's start" if factor > DRIFT else None


def _cpu_ms() -> float:
    data = bytes(HASHED_BYTES)
    times_s = timeit.repeat(lambda: hashlib.blake2b(data).digest(), number=HASHES, repeat=REPETITIONS)
    return 1000 * min(times_s)


def _page_ms(browser: str) -> float:
    """The time to load the page in fresh namespaces and a jail: the browser can reach nothing, and leaves nothing
    behind even if it or this process is killed."""
    one = browser_named(browser)
    screenshot = one.screenshot_command(PAGE.as_uri(), PICTURE)
    jail = Jail(readable=(PAGE, Path(screenshot[0]), *one.readable()))
    command = [*namespaced("mount", "net"), *jailed(jail, ["sh", "-c", SCRIPT, "sh", *screenshot])]
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(PRIVATE))
    environment = {**os.environ, **folders}
    started = time.perf_counter()
    try:
        completed = subprocess.run(
            command, env=environment, cwd="/", capture_output=True, timeout=PAGE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise EyelevelError(f"the canary's page did not load within {PAGE_TIMEOUT_S} s") from None
    if completed.returncode:
        last = last_line_of(completed.stderr.decode(errors="replace"))
        raise EyelevelError(f"the canary's page did not load: {last}")
    return 1000 * (time.perf_counter() - started)
