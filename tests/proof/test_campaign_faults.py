"""If any process of a campaign is killed at any moment, each planned run still exists exactly once in the end.

Takes about ten minutes; the moments and victims are drawn from a fixed seed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.campaigns import assert_whole, rows
from support.processes import descendants
from support.programs import is_called, served_protocols

from base.places import PROJECT
from servers.registry import server_of
from tuning.protocols import Protocol

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="faults")]

KILLS = 50
SERVER_KILLS = 4
WORKER_KILLS = 4
SEED = 7
# How many campaigns may end before they begin, because the killed process did not belong to a run yet.
REFUSALS = 5
# The names of programs in /proc/PID/comm, which keeps the first 15 letters.
VICTIMS = ("orchestrator", "chromium", "film-recorder", "nginx", "quic_server", "mm-net", "node", "uwsgi")
PATIENCE_S = 20
# Processes of a validation before the campaign are not the campaign's.
OPTIONS = ["--plain", "--no-validate"]
CAMPAIGN = ["--net", "dsl", "--proto", "tcp,quic", "--sites", "demo-light", "--campaign", "faults"]


def start(folder: Path, *more: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "eyelevel", "campaign", *CAMPAIGN, *OPTIONS, "--results", str(folder), *more]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def kill_one(draw: random.Random, orchestrator: "subprocess.Popen[bytes]", wanted: str) -> str | None:
    """Kill a process called `wanted` as soon as one exists; return what was killed, or None if none appeared."""
    if wanted == "orchestrator":
        orchestrator.kill()
        orchestrator.wait()
        return wanted
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and orchestrator.poll() is None:
        below = descendants(orchestrator.pid)
        if victims := [pid for pid, name in below if is_called(name, wanted)]:
            try:
                os.kill(draw.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                continue
            return wanted
        time.sleep(0.1)
    return None


def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    killed: Counter[str] = Counter()
    refusals = 0
    options = ["--runs", "12", "--repeats", "30", "--films", "all"]
    running = start(tmp_path, *options)
    try:
        while killed.total() < KILLS:
            # The delay is random, so that kills do not always follow the same event, and any part of a run may be hit
            # in its middle.
            time.sleep(draw.uniform(0.5, 9.0))
            if running.poll() is not None:
                last_lines = (tmp_path / "log").read_text()[-2000:]
                if running.returncode == 1:
                    # The killed program was being asked for its version, before the first run.
                    refusals += 1
                    assert last_lines.splitlines()[-1].startswith("eyelevel: "), last_lines
                    assert refusals <= REFUSALS, last_lines
                else:
                    assert running.returncode in (0, -signal.SIGKILL), last_lines
                assert running.returncode or killed.total() >= KILLS, "done before all kills: give it more runs"
                # Use the same options: the kill may have ended the campaign before it began.
                running = start(tmp_path, *options)
                continue
            if what := kill_one(draw, running, draw.choice(VICTIMS)):
                killed[what] += 1
        if running.poll() is None:
            assert running.wait(1800) == 0, (tmp_path / "log").read_text()[-2000:]
        else:
            assert start(tmp_path, *options).wait(1800) == 0, (tmp_path / "log").read_text()[-2000:]
    finally:
        running.kill()
        running.wait()
    print(f"killed: {dict(killed)}; attempts: {len(rows(tmp_path / 'faults'))}")
    assert_whole(tmp_path / "faults", runs=24)


@pytest.mark.parametrize("protocol", served_protocols())
def test_a_campaign_of_which_a_server_is_killed_has_each_run_once(protocol: Protocol, tmp_path: Path) -> None:
    draw, programs = random.Random(SEED), list(server_of(protocol).programs)
    running = start(tmp_path, "--proto", protocol.name, "--runs", "4", "--repeats", "30", "--films", "all")
    kills = 0
    try:
        # Until this file exists, programs are asked for their versions. If one was killed then, the campaign would not
        # begin.
        while not (tmp_path / "faults" / "campaign.json").exists():
            assert running.poll() is None, (tmp_path / "log").read_text()[-2000:]
            time.sleep(0.1)
        while kills < SERVER_KILLS and running.poll() is None:
            time.sleep(draw.uniform(0.5, 4.0))
            kills += kill_one(draw, running, programs[kills % len(programs)]) is not None
        assert running.wait(1200) == 0, (tmp_path / "log").read_text()[-2000:]
    finally:
        running.kill()
        running.wait()
    assert kills == SERVER_KILLS, "done before all kills: give it more runs"
    assert any(row["valid"] == "false" for row in rows(tmp_path / "faults")), "no kill hit a load"
    assert_whole(tmp_path / "faults", runs=4)


def test_a_cluster_whose_workers_are_killed_has_the_same_runs(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    with scheduler(tmp_path) as address:
        workers = [worker(tmp_path, address, number) for number in range(2)]
        campaign = start(tmp_path, "--runs", "4", "--repeats", "30", "--dask", address, "--trust-workers")
        try:
            for number in range(2, 2 + WORKER_KILLS):
                time.sleep(draw.uniform(8.0, 20.0))
                if campaign.poll() is not None:
                    break
                victim = workers.pop(draw.randrange(len(workers)))
                victim.kill()
                victim.wait()
                workers.append(worker(tmp_path, address, number))
            assert campaign.wait(1200) == 0, (tmp_path / "log").read_text()[-3000:]
        finally:
            for process in (campaign, *workers):
                process.kill()
                process.wait()
    assert "no longer responds; block" in (tmp_path / "log").read_text()
    assert_whole(tmp_path / "faults", runs=8)


def test_a_campaign_on_two_workers_has_the_plan_and_form_of_one_without(tmp_path: Path) -> None:
    alone, cluster = tmp_path / "alone", tmp_path / "cluster"
    for folder in (alone, cluster):
        folder.mkdir()
    assert start(alone, "--runs", "1").wait(300) == 0
    with scheduler(tmp_path) as address:
        workers = [worker(tmp_path, address, number) for number in range(2)]
        try:
            assert start(cluster, "--runs", "1", "--dask", address, "--trust-workers").wait(300) == 0, (
                cluster / "log"
            ).read_text()
        finally:
            for process in workers:
                process.kill()
                process.wait()
    first, second = alone / "faults", cluster / "faults"
    assert (first / "plan.csv").read_text() == (second / "plan.csv").read_text()
    keys = ("site", "network", "protocol", "run", "valid", "block", "machine")
    assert sorted([row[key] for key in keys] for row in rows(first) if row["valid"] == "true") == sorted(
        [row[key] for key in keys] for row in rows(second) if row["valid"] == "true"
    )
    kept = [{str(file.relative_to(folder)) for file in folder.glob("runs/*/*/*/1-1/*")} for folder in (first, second)]
    assert kept[0] == kept[1]
    assert_whole(second, runs=2)


def test_a_worker_that_differs_is_refused_and_a_sound_one_is_not(tmp_path: Path) -> None:
    with scheduler(tmp_path) as address:
        crowded = worker(tmp_path, address, 0, threads=2)
        try:
            assert start(tmp_path, "--runs", "1", "--dask", address).wait(300) == 1
            log = (tmp_path / "log").read_text()
            assert "is refused: a worker measures one run at a time, and this one has several threads" in log
            assert f"none of the 1 workers of {address} can measure" in log
            sound = worker(tmp_path, address, 1)
            try:
                # This requires that `make validate` passes on this machine, and nothing else.
                assert start(tmp_path, "--dask", address).wait(600) == 0, (tmp_path / "log").read_text()
            finally:
                sound.kill()
                sound.wait()
        finally:
            crowded.kill()
            crowded.wait()
    assert_whole(tmp_path / "faults", runs=2)
    (validated,) = json.loads((tmp_path / "faults" / "validation.json").read_text())
    assert all(check["passed"] for check in validated["checks"])
    assert {setting["name"] for setting in validated["passed"]} == {"dsl", "tcp", "quic"}


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """A Dask scheduler on this machine; yields its address."""
    scheduler_file = folder / "scheduler.json"
    command = [
        *DASK,
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        str(scheduler_file),
    ]
    with (folder / "scheduler.log").open("ab") as log:
        environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(folder)}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=PROJECT, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not scheduler_file.exists() or not scheduler_file.read_text():
            assert process.poll() is None and time.monotonic() < deadline, (folder / "scheduler.log").read_text()
            time.sleep(0.1)
        yield json.loads(scheduler_file.read_text())["address"]
    finally:
        process.kill()
        process.wait()


def worker(folder: Path, address: str, number: int, threads: int = 1) -> "subprocess.Popen[bytes]":
    """A Dask worker on this machine, without the process that would restart it."""
    command = [
        *DASK,
        "worker",
        address,
        "--nthreads",
        str(threads),
        "--no-nanny",
        "--no-dashboard",
        "--name",
        f"slot{number}",
    ]
    command += ["--host", "127.0.0.1", "--local-directory", str(folder / f"worker{number}")]
    with (folder / f"worker{number}.log").open("ab") as log:
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=PROJECT, env=environment)


DASK = [sys.executable, "-m", "dask"]
