"""A tree of processes at idle priority leaves the processor to others, and no effect remains when it is lifted."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from support.leaks import groups_folder, own_groups

from base.errors import EyelevelError
from base.processes import first_readable, pidfd
from measure.host.idle_priority import (
    NOT_NOW,
    IdlePriority,
    Policy,
    by_group,
    by_policy,
    holds,
    idle_priority,
    idle_priority_of_blocks,
    idle_threads,
    require_ordinary,
)

Way = Callable[[], AbstractContextManager[IdlePriority]]

# Constantly starts sessions and short-lived processes; prints a line when it has begun.
FORKING = "echo; while :; do setsid sh -c 'sh -c :; sh -c :'; done"


class Nothing(IdlePriority):
    """A method that is never available."""

    def beginning(self) -> list[str | Path]:
        return []

    def lift(self, root: int) -> None:
        pass


class Forever(Policy):
    """Keeps processes at idle priority for ever."""

    def lift(self, root: int) -> None:
        pass


@contextmanager
def forking(way: IdlePriority) -> Iterator[int]:
    """The root of a tree that constantly grows and shrinks, started in this `way`."""
    command = [*way.beginning(), "sh", "-c", FORKING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"\n"
            yield process.pid
        finally:
            tree = psutil.Process(process.pid)
            tree.suspend()
            descendants = tree.children(recursive=True)
            process.kill()
            process.wait()
            psutil.wait_procs(descendants)


def groups(prefix: str) -> set[Path]:
    try:
        return {*groups_folder().glob(f"{prefix}*")}
    except EyelevelError:
        return set()


@pytest.mark.needs_root
@pytest.mark.parametrize("way", [by_policy, by_group])
def test_a_lifted_tree_is_as_one_that_never_was_at_idle_priority(way: Way) -> None:
    with ExitStack() as ends:
        try:
            one = ends.enter_context(way())
        except (OSError, EyelevelError) as error:
            pytest.skip(f"needs control groups of version 1 that can be written: {error}")
        root = ends.enter_context(forking(one))
        with pytest.raises(EyelevelError, match=r"of this run (still has idle|is still in)"):
            require_ordinary(root)
        one.lift(root)
        require_ordinary(root)
        assert idle_threads(root) == []


def test_a_process_that_has_ended_or_is_ending_is_of_no_priority() -> None:
    with subprocess.Popen(["sleep", "0"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        require_ordinary(os.getpid())
    # An ending process frees its memory before it counts as ended, which takes a while for large memory.
    hold = "import sys; memory = bytearray(200 << 20); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, pidfd(process) as ended:
        assert process.stdout and process.stdout.read(1)
        process.kill()
        while first_readable(ended, timeout_s=0) is None:
            require_ordinary(os.getpid())


def test_what_is_begun_by_policy_is_idle_with_all_that_it_starts() -> None:
    script = "import os, threading, subprocess\n"
    script += "look = lambda: print(os.sched_getscheduler(threading.get_native_id()), flush=True)\n"
    script += "(thread := threading.Thread(target=look)).start(); thread.join()\n"
    script += "subprocess.run(['chrt', '-p', '0'])"
    command = [*Policy().beginning(), "python3", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    assert done.stdout.count("SCHED_IDLE") == 1 and f"{os.SCHED_IDLE}" in done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("way", [Nothing(), Forever()], ids=["never idle", "never lifted"])
def test_a_way_that_does_not_hold_is_found_out(way: IdlePriority) -> None:
    # Next to other tests, a trial as short as usual could be decided by chance.
    assert not holds(way, trial_s=0.1)


@pytest.mark.slow
def test_a_busy_process_takes_nothing_from_a_thread_that_waits_for_another_thread() -> None:
    # A thread that waits for Python's lock sleeps, so even a process at idle priority runs meanwhile.
    ended = Event()

    def compute() -> None:
        while not ended.is_set():
            pass

    (other := Thread(target=compute)).start()
    try:
        assert not holds(Forever(), trial_s=0.1)
    finally:
        ended.set()
        other.join()


def test_what_holds_leaves_nothing_behind() -> None:
    prefix, cores = own_groups(), os.sched_getaffinity(0)
    with idle_priority(prefix):
        pass
    assert groups(prefix) == set() and os.sched_getaffinity(0) == cores


@pytest.mark.needs_root
@pytest.mark.needs_control_groups
def test_the_group_of_a_campaign_that_was_killed_is_removed_by_one_of_another_group_and_a_living_ones_is_not() -> None:
    # Other measurements at the same time remove groups with the usual prefix.
    prefix = own_groups()
    elsewhere = Path(tempfile.mkdtemp(prefix="eyelevel-test-", dir=groups_folder()))
    script = "import sys; from contextlib import ExitStack; from pathlib import Path\n"
    script += "from measure.host.quota import new_group\n"
    script += f"with ExitStack() as stack: print(new_group(Path(sys.argv[1]), stack, {prefix!r}), flush=True); input()"
    command = [sys.executable, "-c", script, str(elsewhere)]
    try:
        with ExitStack() as ends:
            living, killed = (
                ends.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
                for _ in range(2)
            )
            assert living.stdout and killed.stdout
            groups_of_both = [Path(process.stdout.readline().strip()) for process in (living, killed) if process.stdout]
            killed.kill()
            killed.wait()
            assert all(group.is_dir() for group in groups_of_both)
            with idle_priority(prefix):
                assert [group.exists() for group in groups_of_both] == [True, False]
            living.communicate("\n")
            with idle_priority(prefix):
                assert not any(group.exists() for group in groups_of_both)
    finally:
        elsewhere.rmdir()


def test_where_no_way_holds_there_is_no_idle_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measure.host.idle_priority.holds", lambda _way: False)
    with idle_priority(own_groups()) as idle:
        assert idle is None


@pytest.mark.needs_root
def test_idle_priority_that_did_not_hold_is_tried_anew_before_later_blocks_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_busy, warnings = True, list[str]()
    monkeypatch.setattr("measure.host.idle_priority.holds", lambda _way: not is_busy)
    monkeypatch.setattr("measure.host.idle_priority.has_real_time_priority", lambda: True)
    with idle_priority_of_blocks(own_groups()) as before_block:
        assert before_block(warnings.append) is None and warnings == [NOT_NOW]
        is_busy = False
        idle = before_block(warnings.append)
        assert idle is not None and before_block(warnings.append) is idle and warnings == [NOT_NOW]


def test_a_user_who_may_not_lift_idle_priority_gets_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []

    @contextmanager
    def forbidden(*_: str) -> Iterator[IdlePriority]:
        raise EyelevelError("not permitted")
        yield

    monkeypatch.setattr("measure.host.idle_priority.by_policy", forbidden)
    monkeypatch.setattr("measure.host.idle_priority.by_group", forbidden)
    with idle_priority(own_groups(), warnings.append) as idle:
        assert idle is None and not warnings
