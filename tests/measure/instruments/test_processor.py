"""The processor's share in a load: the role of each process, how long it ran and waited, and when."""

import json
import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from base.errors import EyelevelError
from base.jail import START_JAILER
from base.places import tool
from browsers.chromium.program import BINARY
from browsers.registry import browser_named
from dataset.run_files import PROCESSOR
from dataset.table import PROCESSOR_COLUMNS
from measure.host.process_times import Account, ProcessTimes, kernel_account
from measure.instruments.processor import (
    FILM,
    MOST_SHARE,
    PERIOD_S,
    REST,
    ROLES,
    SERVERS,
    TIMED_ROLES,
    WAITING_ROLES,
    Birth,
    Sampler,
    kernels_birth_of,
    role_of,
    sampling,
    shares,
)
from replay import spec
from servers.registry import all_servers
from tuning.defaults import DEFAULT_BROWSER

BROWSER, NGINX = browser_named(DEFAULT_BROWSER), all_servers()["nginx"].programs
# A process whose child takes the given name and runs for 50 ms; both then wait until their input ends.
FAMILY = """
import subprocess, sys
burn = "import sys, time\\nwhile time.process_time() < 0.05: pass\\nprint(flush=True); sys.stdin.read()"
subprocess.run([sys.argv[1], "-c", burn], executable=sys.executable)
"""


class Fixed(Account):
    """The same times for every process."""

    name = "fixed"

    def __init__(self, times: ProcessTimes | None) -> None:
        self.now = times

    def times(self, process: int) -> ProcessTimes | None:
        return self.now


class OfThisProcess(Fixed):
    """An account of this process alone: it may have children of other tests, such as the shared browser."""

    def times(self, process: int) -> ProcessTimes | None:
        return super().times(process) if process == os.getpid() else None


def sampler(account: Account, root: int = 1 << 30, **further: Any) -> Sampler:
    return Sampler(root, BROWSER, NGINX, account, **further)


@pytest.mark.parametrize(
    ("switches", "part"),
    [
        ("", "browser"),
        ("--type=renderer --lang=en", "renderer"),
        ("--type=gpu-process", "gpu"),
        ("--type=utility --utility-sub-type=network.mojom.NetworkService", "network"),
        ("--type=utility --utility-sub-type=storage.mojom.StorageService", "browser"),
        ("--type=zygote", "browser"),
    ],
)
def test_a_process_of_chromium_has_its_part(switches: str, part: str) -> None:
    assert BROWSER.part(f"{BINARY} {switches}") == part
    assert BROWSER.part(f"/usr/bin/chromedriver {switches}") is None
    assert BROWSER.part("") is None


def test_a_child_is_counted_for_what_its_name_says() -> None:
    python = [sys.executable, "-c", FAMILY, "film-recorder"]
    with (
        subprocess.Popen(python, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        closing(kernel_account()) as account,
    ):
        assert process.stdout
        process.stdout.readline()
        samples = sampler(account, process.pid)
        samples.sample()
        assert samples.run_ms[FILM][-1] >= 50
        assert samples.run_ms[REST][-1] > 0
        assert samples.run_ms[SERVERS][-1] == 0


def test_nginxs_application_is_a_server() -> None:
    command: list[str | Path] = [tool("uwsgi-core"), "-c", "print(flush=True); input()"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, executable=sys.executable, **pipes) as process:
        assert process.stdout
        # The kernel has no command line of a process that has just been started.
        process.stdout.readline()
        assert role_of(process.pid, BROWSER, NGINX) == SERVERS
        process.communicate(b"\n")


@pytest.mark.parametrize(("folder", "role"), [(spec.SERVERS, SERVERS), (spec.PRIVATE / "names", REST)])
def test_all_that_a_program_of_the_users_executes_is_a_server_and_its_jailer_is_not(
    folder: Path, role: str, tmp_path: Path
) -> None:
    (script := tmp_path / "server").write_text("#!/bin/sh\nexec cat\n")
    script.chmod(0o700)
    # A jailer, and process 1 of its jail with the same command line.
    jailer = (
        "import os, subprocess, sys; os.waitpid(first, 0) if (first := os.fork()) else subprocess.run(sys.argv[-1:])"
    )
    jailer += f"  # {START_JAILER}"
    command: list[str | Path] = [sys.executable, "-c", jailer, "--writable", folder, "--", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b"cat runs\n")
        assert process.stdout.readline() == b"cat runs\n"
        (first,) = psutil.Process(process.pid).children()
        (cat,) = first.children()
        programs = {"uwsgi": "", str(script): ""}
        assert [role_of(one, BROWSER, programs) for one in (process.pid, first.pid, cat.pid)] == [REST, REST, role]
        process.stdin.close()


def test_times_add_up_and_those_of_before_stay_when_a_process_has_ended() -> None:
    process = subprocess.Popen(["sleep", "100"])
    account = Fixed(ProcessTimes(2_000_000, 1_000_000))
    samples = sampler(account, process.pid)
    samples.sample()
    account.now = ProcessTimes(5_000_000, 1_500_000)
    samples.sample()
    process.kill()
    process.wait()
    samples.sample()
    assert samples.run_ms[REST] == [2, 5, 5]
    assert samples.wait_ms[REST] == [1, 1.5, 1.5]


def test_sleep_that_the_kernel_counts_as_waiting_is_left_out() -> None:
    now_s = 1000.0
    account = Fixed(ProcessTimes(0, 7_000_000_000))
    process = subprocess.Popen(["sleep", "100"])
    samples = sampler(account, process.pid, clock=lambda: now_s)
    try:
        for wait_ms in (7000, 7000, 7150, 7360, 17_560, 17_610):
            account.now = ProcessTimes(0, wait_ms * 1_000_000)
            samples.sample()
            now_s += 0.1
    finally:
        process.kill()
        process.wait()
    # In 0.2 s, one thread can have waited for 200 ms, but not for 210 ms or 10 s.
    assert samples.wait_ms[REST] == [7000, 7000, 7150, 7150, 7150, 7200]
    assert samples.impossible == 2


def test_as_many_threads_as_there_are_may_wait() -> None:
    now_s = 1000.0
    account = OfThisProcess(ProcessTimes(0, 0))
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    samples = sampler(account, os.getpid(), clock=lambda: now_s)
    try:
        for wait_ms in (0, 0, 0, 790):
            account.now = ProcessTimes(0, wait_ms * 1_000_000)
            samples.sample()
            now_s += 0.1
    finally:
        stop.set()
    # In 0.2 s, the three threads and the main thread can have waited for 790 ms together; a process with a single
    # thread cannot.
    assert samples.wait_ms[REST][-1] == 790


def test_the_last_sample_is_of_the_end_however_far_apart_samples_are() -> None:
    class Ending(Fixed):
        """The load ends while the first sample is taken."""

        def times(self, process: int) -> ProcessTimes | None:
            samples.ended.set()
            return super().times(process)

    samples = sampler(Ending(ProcessTimes(1_000_000, 0)), os.getpid())
    samples.run(())
    assert len(samples.at_s) == 2


@pytest.mark.needs_two_cores
def test_a_process_that_got_the_number_of_one_that_ended_counts_for_nothing() -> None:
    others, cores = dict[int, Birth](), os.sched_getaffinity(0)
    with subprocess.Popen(["sleep", "100"]) as root:
        account = Fixed(ProcessTimes(5_000_000, 1_000_000))
        samples = sampler(account, root.pid, birth_of=lambda process: others.get(process) or kernels_birth_of(process))
        os.sched_setaffinity(root.pid, {min(cores)})
        samples.sample()
        assert samples.affinity == {min(cores)}
        # From here on, a later process has the same PID, and may run on other processors.
        others[root.pid] = Birth(1, 1 << 40)
        os.sched_setaffinity(root.pid, cores)
        account.now = ProcessTimes(9_000_000, 1_000_000)
        samples.sample()
        assert samples.run_ms[REST] == [5, 5]
        assert samples.affinity == {min(cores)}
        root.kill()


def test_a_number_whose_process_has_run_for_less_than_before_is_another_processs() -> None:
    with subprocess.Popen(["sleep", "100"]) as root:
        account = Fixed(ProcessTimes(5_000_000, 1_000_000))
        samples = sampler(account, root.pid)
        samples.sample()
        account.now = ProcessTimes(1_000_000, 0)
        samples.sample()
        account.now = ProcessTimes(6_000_000, 0)
        samples.sample()
        assert samples.run_ms[REST] == [5, 5, 5]
        root.kill()


def test_waits_that_the_kernel_does_not_count_are_missing_and_not_zero() -> None:
    process = subprocess.Popen(["sleep", "100"])
    samples = sampler(Fixed(ProcessTimes(2_000_000, None)), process.pid)
    samples.sample()
    process.kill()
    process.wait()
    assert samples.run_ms[REST] == [2]
    assert samples.wait_ms[REST] == [None]


def test_sampling_ends_at_once_and_leaves_its_samples_and_its_cost(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with sampling(process.pid, tmp_path, BROWSER, NGINX):
        process.communicate()
    samples = json.loads((tmp_path / PROCESSOR).read_text())
    assert set(samples["run_ms"]) == set(samples["wait_ms"]) == set(ROLES)
    assert {len(values) for values in samples["run_ms"].values()} == {len(samples["at_s"])}
    assert len(samples["at_s"]) >= 1 and samples["own_ms"] > 0
    assert PERIOD_S * MOST_SHARE <= 0.0005


def test_a_kernel_that_does_not_answer_is_an_error_that_an_attempt_can_have(tmp_path: Path) -> None:
    class Mute(Fixed):
        def times(self, process: int) -> ProcessTimes | None:
            raise OSError(105, "No buffer space available")

    with (
        pytest.raises(EyelevelError, match=r"how long processes ran: .*No buffer space"),
        sampling(os.getpid(), tmp_path, BROWSER, NGINX, account_of_times=lambda: Mute(None)),
    ):
        pass
    assert not (tmp_path / PROCESSOR).exists()


def whole(folder: Path, **changes: object) -> Path:
    """A folder with samples at 0, 10 and 20 s; between two samples, each role runs for 100 ms and waits for 30 ms."""
    document: dict[str, object] = {
        "at_s": [0.0, 10.0, 20.0],
        "run_ms": {role: [0.0, 100.0, 200.0] for role in ROLES},
        "wait_ms": {role: [0.0, 30.0, 60.0] for role in ROLES},
    }
    (folder / PROCESSOR).write_text(json.dumps({**document, **changes}))
    return folder


def test_the_columns_are_of_the_load_alone(tmp_path: Path) -> None:
    columns = shares(whole(tmp_path), 5, 15)
    assert columns == {**{f"{role}_cpu_ms": 100 for role in TIMED_ROLES}, "processor_wait_ms": 30 * len(WAITING_ROLES)}


def test_the_table_of_runs_has_a_column_for_each() -> None:
    assert tuple(f"{role}_cpu_ms" for role in TIMED_ROLES) == PROCESSOR_COLUMNS


def test_a_load_without_samples_of_its_time_has_no_columns(tmp_path: Path) -> None:
    assert shares(tmp_path, 5, 15) == {}
    assert shares(whole(tmp_path), -1, 15) == {}
    assert shares(whole(tmp_path), 5, 21) == {}
    assert shares(whole(tmp_path, at_s=[]), 5, 21) == {}


def test_where_waits_are_not_counted_that_column_is_empty(tmp_path: Path) -> None:
    waits = {role: [0.0, 30.0, 60.0] for role in ROLES} | {"renderer": [0.0, None, None]}
    columns = shares(whole(tmp_path, wait_ms=waits), 5, 15)
    assert columns["processor_wait_ms"] is None
    assert columns["renderer_cpu_ms"] == 100
