"""Loads that share processors: no browser starts while another load waits for its first paint, and loads are
counted."""

import os
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.host.sharing import ALONE, SharedProcessors, mean_number

PATIENCE_S = 60.0


class Clock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_who_has_the_processors_alone_waits_for_nobody() -> None:
    with ALONE.starting(), ALONE.painting():
        pass
    ALONE.end()
    assert ALONE.concurrent_loads == 1.0


def test_the_mean_number_of_loads_counts_those_that_were_under_way_before() -> None:
    log = "0 +1\n4 +1\n8 -1\n10 -1\n12 +1\n"
    assert mean_number(log, 4, 10) == pytest.approx((4 * 2 + 2 * 1) / 6)
    assert mean_number(log, 0, 10) == pytest.approx((4 + 8 + 2) / 10)
    # Lines of other processes may be in another order than their times.
    assert mean_number("4 +1\n0 +1\n10 -1\n8 -1\n", 4, 10) == pytest.approx(10 / 6)
    assert mean_number("3 +1\n3 -1\n", 3, 3) == 1.0


def test_each_load_knows_how_many_were_under_way(tmp_path: Path, clock: Clock) -> None:
    one, other = (SharedProcessors(tmp_path, clock=clock) for _ in range(2))
    with one.painting():
        clock.now_s = 1.0
        with other.painting():
            clock.now_s = 2.0
    other.end()
    clock.now_s = 4.0
    one.end()
    assert (one.concurrent_loads, other.concurrent_loads) == (1.25, 2.0)
    clock.now_s = 9.0
    one.end()  # no load has begun since
    assert one.concurrent_loads == 1.25
    one.expect()
    one.end()  # this load did not begin
    assert one.concurrent_loads is None


class Steps:
    """Threads that enter a context each, in an order that the test notes; all wait for a lock first."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def enter(self, name: str, context: AbstractContextManager[None]) -> None:
        """Let a thread enter `context`, and leave it at once. Returns when it waits for a lock, or has ended."""

        def run() -> None:
            with context:
                self.order.append(name)

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()
        deadline_s = time.monotonic() + PATIENCE_S
        while waiting_threads() < len(self._threads) and self._threads[-1].is_alive():
            assert time.monotonic() < deadline_s, f"{name} neither waits for a lock nor goes on"
            time.sleep(0.01)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def waiting_threads() -> int:
    """How many threads of this process wait for a lock on a file, by the kernel's list of locks (proc(5))."""
    locks = map(str.split, Path("/proc/locks").read_text().splitlines())
    return sum(words[1] == "->" and words[5] == str(os.getpid()) for words in locks)


def test_a_browser_starts_when_no_other_load_waits_for_its_first_paint(tmp_path: Path) -> None:
    steps = Steps()
    # Loads wait for their first paint together.
    with SharedProcessors(tmp_path).painting(), SharedProcessors(tmp_path).painting():
        steps.enter("starts", SharedProcessors(tmp_path).starting())
        steps.order.append("painted")
    steps.join()
    assert steps.order == ["painted", "starts"]


def test_one_browser_starts_at_a_time_and_no_load_begins_meanwhile(tmp_path: Path) -> None:
    steps = Steps()
    with SharedProcessors(tmp_path).starting():
        steps.enter("begins", SharedProcessors(tmp_path).painting())
        steps.enter("starts", SharedProcessors(tmp_path).starting())
        steps.order.append("started")
    steps.join()
    # A browser that waits to start takes its turn before a load that waits to begin.
    assert steps.order == ["started", "starts", "begins"]


def test_a_load_does_not_begin_while_a_browser_waits_to_start(tmp_path: Path) -> None:
    steps = Steps()
    with SharedProcessors(tmp_path).painting():
        steps.enter("starts", SharedProcessors(tmp_path).starting())
        steps.enter("begins", SharedProcessors(tmp_path).painting())
        steps.order.append("painted")
    steps.join()
    assert steps.order == ["painted", "starts", "begins"]


def test_a_process_that_ends_holds_up_nobody(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from measure.host.sharing import SharedProcessors\n"
        "with SharedProcessors(pathlib.Path(sys.argv[1])).starting():\n"
        "    print('starts', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "starts\n"
    process.kill()
    process.communicate()
    with SharedProcessors(tmp_path).starting():
        pass


def test_without_its_folder_nothing_is_shared(tmp_path: Path) -> None:
    sharing = SharedProcessors(tmp_path / "gone")
    with pytest.raises(EyelevelError, match=r"loads cannot share processors: .*gone/wanted: No such file"):
        sharing.starting().__enter__()
