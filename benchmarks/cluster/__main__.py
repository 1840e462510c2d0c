"""`python -m benchmarks.cluster`: whether the head of a cluster keeps up with its workers."""

import heapq
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import click
import psutil

from base.errors import EyelevelError, reports_errors
from base.places import PROJECT
from benchmarks.cluster.head import ACCOUNT
from benchmarks.cluster.made_up import NETWORKS, PROTOCOLS
from benchmarks.cluster.workers import LOOPBACK, run_group
from benchmarks.memory import pss_bytes
from dataset.plan import read_plan
from dataset.table import RUNS, Row, read_rows
from measure.campaign.status import status
from measure.cluster.keys import keys_folder, make_keys

SAMPLE_S = 1.0
JOIN_S = 300.0
# Fork before anything of Dask runs in this process, so that a child has all modules and no threads.
FORK = multiprocessing.get_context("fork")


@dataclass
class Group:
    """Workers in one process: when they joined, and when they were killed (seconds since 1970)."""

    process: ForkProcess
    joined: float
    killed: float | None = None


@dataclass(frozen=True)
class Size:
    """The size of a campaign: sites, runs of each setting, workers in a group (`group_size`), and how many groups are
    killed."""

    sites: int
    runs: int
    groups: int
    group_size: int
    deaths: int

    @property
    def planned(self) -> int:
        """The number of runs."""
        return self.sites * self.runs * len(NETWORKS) * len(PROTOCOLS)


@dataclass(frozen=True)
class Course:
    """A measured campaign: the times and costs that the head stored, the attempts, the number of blocks, the workers.

    `speed`: the factor by which runs were faster than their rows say. Each of `samples` has the number of attempts so
    far, and the processor time and memory that head and scheduler had used. `status_s`: the time that `eyelevel status`
    takes at the end, without the program's start.
    """

    account: Mapping[str, Any]
    rows: Sequence[Row]
    blocks: int
    groups: Sequence[Group]
    group_size: int
    speed: float
    samples: Sequence[Mapping[str, float]]
    status_s: float


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    """Run a cluster's scheduler on this machine's loopback, over TLS; yields its process and its address."""
    command = [sys.executable, "-m", "eyelevel", "scheduler", f"tls://{LOOPBACK}:0"]
    log = folder / "scheduler.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            words = process.stdout.readline().split() if process.stdout else []
            if not words:
                raise EyelevelError(f"the scheduler did not start: {log.read_text()}")
            yield psutil.Process(process.pid), words[-1]
        finally:
            process.terminate()


def start_group(address: str, number: int, size: int, folder: Path) -> Group:
    """Start `size` workers in a separate process, and wait until they have joined. Raises EyelevelError when they do
    not."""
    joined = FORK.Event()
    process = FORK.Process(target=run_group, args=(address, number, size, folder, joined.set), daemon=True)
    process.start()
    if not joined.wait(JOIN_S):
        raise EyelevelError(f"{size} workers have not joined {address} within {JOIN_S:.0f} s")
    return Group(process, time.time())


def measure(folder: Path, size: Size, speed: float, options: Sequence[str]) -> Course:
    """Run a campaign in `folder`. Groups are killed at regular intervals, and others replace them."""
    os.environ |= {"EYELEVEL_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    (folder / "cache").mkdir()
    make_keys(keys_folder())
    campaign = folder / "results" / "made-up"
    campaign.parent.mkdir()
    kills = deque(size.planned * (place + 1) // (size.deaths + 1) for place in range(size.deaths))
    samples: list[dict[str, float]] = []
    groups: list[Group] = []
    errors = folder / "head.err"
    with scheduler(folder) as (scheduler_process, address), errors.open("w") as error_file:
        head: psutil.Popen | None = None
        try:
            for number in range(size.groups):
                groups.append(start_group(address, number, size.group_size, folder))
            command = [sys.executable, "-m", "benchmarks.cluster.head", address, str(campaign), *options]
            head = psutil.Popen(command, cwd=PROJECT, stderr=error_file)
            while head.poll() is None:
                time.sleep(SAMPLE_S)
                done = attempts(campaign / RUNS)
                if kills and done >= kills[0]:
                    kills.popleft()
                    victim = next(group for group in groups if group.killed is None)
                    victim.process.kill()
                    victim.killed = time.time()
                    groups.append(start_group(address, len(groups), size.group_size, folder))
                samples.append(sample(done, head, scheduler_process))
        finally:
            if head and head.poll() is None:
                head.kill()
                head.wait()
            for group in groups:
                group.process.kill()
                group.process.join()
    if head.returncode:
        raise EyelevelError(f"the head failed: {errors.read_text()[-2000:]}")
    account = json.loads((campaign.parent / ACCOUNT).read_text())
    started = time.perf_counter()
    status(campaign)
    status_s = time.perf_counter() - started
    blocks = len(read_plan(campaign))
    return Course(account, read_rows(campaign), blocks, groups, size.group_size, speed, samples, status_s)


def attempts(table: Path) -> int:
    """The number of rows so far."""
    try:
        with table.open("rb") as file:
            return sum(1 for _ in file) - 1
    except FileNotFoundError:
        return 0


def sample(done: int, head: psutil.Process, scheduler_process: psutil.Process) -> dict[str, float]:
    """Processor time and memory of both processes after `done` attempts."""
    values: dict[str, float] = {"attempts": done}
    for name, process in (("head", head), ("scheduler", scheduler_process)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        values |= {f"{name}_cpu_s": used.user + used.system, f"{name}_bytes": pss_bytes(process)}
    return values


def seconds_of_blocks(course: Course) -> list[float]:
    """The time that each block of the plan took on its worker (s), with all its attempts."""
    seconds = [0.0] * course.blocks
    for row in course.rows:
        seconds[row.block - 1] += row.seconds / course.speed
    return seconds


def lives(course: Course) -> list[tuple[float, float]]:
    """When each worker joined and was killed, in seconds from the campaign's beginning; infinity if it was not."""
    begun = course.account["begun"]
    return [
        (max(0.0, group.joined - begun), float("inf") if group.killed is None else group.killed - begun)
        for group in course.groups
        for _ in range(course.group_size)
    ]


def ideal_s(blocks: Sequence[float], workers: Sequence[tuple[float, float]]) -> float:
    """How long `blocks` take if each of `workers` (start and end of its life) gets the next block at once.

    If a worker dies, its block is the next one that a free worker gets.
    """
    free = [(begin, place) for place, (begin, _) in enumerate(workers)]
    heapq.heapify(free)
    coming, again, end = deque(blocks), list[tuple[float, float]](), 0.0
    while coming or again:
        now, place = heapq.heappop(free)
        if again and (again[0][0] <= now or not coming):
            lost_at, block = heapq.heappop(again)
            now = max(now, lost_at)
        else:
            block = coming.popleft()
        if now + block > workers[place][1]:
            heapq.heappush(again, (max(now, workers[place][1]), block))
            continue
        end = max(end, now + block)
        heapq.heappush(free, (now + block, place))
    return end


def summary(course: Course) -> dict[str, float]:
    """The numbers that describe a measured campaign."""
    account, count = course.account, len(course.rows)
    took_s = account["ended"] - account["begun"]
    blocks, workers = seconds_of_blocks(course), lives(course)
    available_s = sum(min(end, took_s) - begin for begin, end in workers)
    of_scheduler = [one for one in course.samples if "scheduler_bytes" in one]
    return {
        "workers": course.group_size * sum(group.killed is None for group in course.groups),
        "deaths": course.group_size * sum(group.killed is not None for group in course.groups),
        "attempts": count,
        "runs_per_s": count / took_s,
        "took_s": took_s,
        "efficiency": ideal_s(blocks, workers) / took_s,
        "measuring": sum(blocks) / available_s,
        "head_cpu_s": account["cpu_s"],
        "head_cpu_ms_per_run": 1000 * account["cpu_s"] / count,
        "head_memory_bytes": account["memory_bytes"],
        "scheduler_cpu_s": of_scheduler[-1]["scheduler_cpu_s"],
        "scheduler_memory_bytes": max(one["scheduler_bytes"] for one in of_scheduler),
        "written_bytes_per_run": account["written_bytes"] / count,
        "writes_per_run": account["writes"] / count,
        "syncs_per_run": account["syncs"] / count,
        "status_s": course.status_s,
    }


def quarters(course: Course) -> list[float]:
    """The head's processor time per attempt (ms) in each quarter of the campaign."""
    count = len(course.rows)
    moments = [one for one in course.samples if "head_cpu_s" in one]
    ends = [[one for one in moments if one["attempts"] <= count * part / 4][-1] for part in range(5)]
    return [
        1000 * (after["head_cpu_s"] - before["head_cpu_s"]) / max(1, after["attempts"] - before["attempts"])
        for before, after in pairwise(ends)
    ]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--groups", default=20, show_default=True, help="Processes of simulated workers.")
@click.option("--group-size", default=10, show_default=True, help="Workers in each.")
@click.option("--deaths", default=6, show_default=True, help="Groups that are killed, one after the other.")
@click.option("--sites", default=38, show_default=True, help="With 4 networks and 5 protocols.")
@click.option("--runs", default=31, show_default=True, help="Runs of each setting.")
@click.option("--speed", default=10.0, show_default=True, help="How many times as fast as true runs.")
@click.option("--evidence-share", default=0.1, show_default=True, help="Share of the bytes of a true run's evidence.")
@click.option("--profile", type=click.Path(path_type=Path), help="Where to put the head's profile (cProfile).")
@click.option("--json", "into", type=click.Path(path_type=Path), help="Where to put the numbers as JSON.")
@reports_errors
def main(
    groups: int,
    group_size: int,
    deaths: int,
    sites: int,
    runs: int,
    speed: float,
    evidence_share: float,
    profile: Path | None,
    into: Path | None,
) -> None:
    """Measure the head of a cluster of simulated workers.

    Example: python -m benchmarks.cluster --groups 2 --sites 2 --runs 3 --deaths 1
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = [f"--sites={sites}", f"--runs={runs}", f"--speed={speed}", f"--evidence-share={evidence_share}"]
    options += [f"--profile={profile.absolute()}"] if profile else []
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        course = measure(Path(temporary), Size(sites, runs, groups, group_size, deaths), speed, options)
    numbers = {**summary(course), "head_cpu_ms_per_run_by_quarter": [round(one, 2) for one in quarters(course)]}
    for name, value in numbers.items():
        click.echo(f"{name:30} {value if isinstance(value, list) else f'{value:,.4g}'}")
    if into:
        into.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
