"""The kernel's data on how long processes ran and waited agree with what the processes did."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from measure.host.process_times import Account, Schedstat, Taskstats

# A thread runs for 0.1 s of processor time, and ends. Then the main thread runs for 0.05 s, and prints the process's
# total.
THREADS = """
import sys, threading, time
def run(seconds):
    while time.thread_time() < seconds:
        pass
thread = threading.Thread(target=run, args=(0.1,))
thread.start()
thread.join()
before = time.thread_time()
run(before + 0.05)
print(time.process_time(), flush=True)
sys.stdin.read()
"""
# A process and its child have work on one core from the child's first moment on, so they wait for each other.
RIVALS = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.fork()
before = time.process_time()
while time.process_time() < before + 0.15:
    pass
sys.stdout.write(f"{os.getpid()}\\n")
sys.stdout.flush()
sys.stdin.read()
"""


def taskstats() -> Account:
    try:
        return Taskstats()
    except OSError:
        pytest.skip("need taskstats (run as root, in no container)")


@pytest.fixture(params=[taskstats, Schedstat])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    """Each source of the kernel's data."""
    with closing(request.param()) as account:
        yield account


def start(*command: str) -> "subprocess.Popen[str]":
    python = [sys.executable, "-c", *command]
    return subprocess.Popen(python, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_the_time_of_threads_that_have_ended_is_in(account: Account) -> None:
    with start(THREADS) as process:
        assert process.stdout
        own_s = float(process.stdout.readline())
        times = account.times(process.pid)
    assert times is not None
    assert own_s >= 0.15
    assert times.run_ns / 1e9 == pytest.approx(own_s, abs=0.02)


def test_rivals_for_one_core_wait_for_each_other(account: Account) -> None:
    with start(RIVALS) as process:
        assert process.stdout
        times = [account.times(int(process.stdout.readline())) for _ in range(2)]
    # Each runs while the other waits.
    waits = [(time.wait_ns or 0) / 1e9 for time in times if time]
    assert sum(waits) > 0.1


def test_a_process_that_has_ended_has_no_times(account: Account) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert account.times(process.pid) is None


def test_of_a_kernel_that_counts_no_waits_they_are_missing() -> None:
    times = Schedstat(lambda _: (0, 0)).times(os.getpid())
    assert times is not None and times.run_ns > 0
    assert times.wait_ns is None
