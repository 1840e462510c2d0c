"""A cluster's scheduler and workers listen at one port each, accept only holders of its keys, and end on request."""

import asyncio
import io
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import psutil
import pytest
from distributed import Client
from distributed.comm.core import connect
from rich.console import Console
from support.lanes import CoresMethod, validate_cores
from support.processes import PATIENCE_S
from support.scripted import scripted_campaign, work_of

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Run
from eyelevel.program import INTERRUPTED
from films.policy import ALL_FILMS
from measure.campaign import cluster as cluster_of_workers
from measure.campaign.block import Block
from measure.campaign.cluster import Cluster, Dispatch, Scheduler
from measure.campaign.progress import ProgressDisplay
from measure.campaign.remote import lanes_of_worker, measure_remotely, validation_of
from measure.campaign.results import opened
from measure.cluster.addresses import security
from measure.cluster.keys import Role, keys_of, make_keys
from measure.cluster.nodes import private_folder
from measure.host.affinity import layout
from measure.host.lanes import Lanes, lanes_of
from measure.run.setting import Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

pytestmark = [pytest.mark.slow, pytest.mark.needs_namespaces]

# How long a client is tried that must not be let in.
REFUSED_S = 5
EYELEVEL = ("-m", "eyelevel")


@dataclass(frozen=True)
class Node:
    """A scheduler or a worker: its process, and its listening address."""

    process: "subprocess.Popen[str]"
    address: str


def environment_of(cache: Path) -> dict[str, str]:
    """The environment of a machine with this cache, which can import the functions that tests send to it.

    Each call creates another machine: a machine has only one worker.
    """
    lock = f"{cache}/lock-{time.monotonic_ns()}"
    places = {"EYELEVEL_CACHE": str(cache), "TMPDIR": str(cache), "EYELEVEL_MEASURING_LOCK": lock}
    return {**os.environ, **places, "PYTHONPATH": str(PROJECT / "tests")}


def node(cache: Path, *command: str, program: tuple[str, ...] = EYELEVEL) -> Node:
    """Start `eyelevel`, or another `program` in Python, with this command, and wait until it listens."""
    environment = environment_of(cache)
    line = [sys.executable, *program, *command]
    process = subprocess.Popen(line, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    words = process.stdout.readline().split()
    return Node(process, next(word for word in words if "://" in word).strip(","))


def end(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    make_keys(folder / "cluster")
    make_keys(folder / "others")
    return folder


@pytest.fixture(scope="module")
def cluster(cache: Path) -> Iterator[dict[str, Node]]:
    """A scheduler and a worker, as users start them."""
    scheduler = node(cache, "scheduler", "127.0.0.1:0")
    worker = node(cache, "worker", scheduler.address)
    try:
        yield {"scheduler": scheduler, "worker": worker}
    finally:
        end(worker.process, scheduler.process)


@contextmanager
def another_worker(
    cache: Path, cluster: dict[str, Node], *command: str, program: tuple[str, ...] = EYELEVEL
) -> Iterator[tuple[Node, Client]]:
    """Another worker of the cluster, and a client of its scheduler, which has forgotten the worker afterwards."""
    worker = node(cache, *command, program=program)
    try:
        with Client(cluster["scheduler"].address, security=security(keys_of(Role.HEAD, cache / "cluster"))) as client:
            client.wait_for_workers(2, PATIENCE_S)
            yield worker, client
            end(worker.process)
            while worker.address in client.scheduler_info()["workers"]:
                time.sleep(0.05)
    finally:
        end(worker.process)


def arguments(cache: Path, cluster: str = "cluster", role: Role = Role.HEAD) -> dict[str, Any]:
    return dict(security(keys_of(role, cache / cluster)).get_connection_args("client"))


def without_certificate(cache: Path) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=str(keys_of(Role.HEAD, cache / "cluster").ca))
    context.check_hostname = False
    return {"ssl_context": context}


def is_open(address: str, connection: dict[str, Any], patience_s: float = PATIENCE_S) -> bool:
    """Whether a node answers a client that connects in this way, within this time."""

    async def greet() -> bool:
        try:
            comm = await asyncio.wait_for(connect(address, patience_s, **connection), patience_s)
        except (OSError, TimeoutError):
            return False
        await comm.close()
        return True

    return asyncio.run(greet())


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_nobody_without_a_key_of_the_cluster_is_listened_to(cache: Path, cluster: dict[str, Node], name: str) -> None:
    address = cluster[name].address
    assert address.startswith("tls://127.0.0.1:")
    assert is_open(address, arguments(cache))
    assert is_open(address, arguments(cache, role=Role.WORKER))
    for connection in (arguments(cache, cluster="others"), without_certificate(cache)):
        assert not is_open(address, connection, REFUSED_S)
    assert not is_open(address.replace("tls", "tcp"), {}, REFUSED_S)


def test_each_listens_at_one_port_and_only_where_it_was_told(cluster: dict[str, Node]) -> None:
    for one in cluster.values():
        sockets = psutil.Process(one.process.pid).net_connections("all")
        places = [socket.laddr for socket in sockets if socket.status == psutil.CONN_LISTEN]
        assert [f"tls://{place.ip}:{place.port}" for place in places] == [one.address]


def test_work_is_done_in_the_worker_which_has_one_thread(cache: Path, cluster: dict[str, Node]) -> None:
    with Client(cluster["scheduler"].address, security=security(keys_of(Role.HEAD, cache / "cluster"))) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert (worker["nthreads"], worker["nanny"]) == (1, None)
        assert client.submit(os.getpid, pure=False).result(PATIENCE_S) == cluster["worker"].process.pid


@pytest.mark.needs_two_cores
def test_a_worker_with_two_lanes_measures_two_blocks_at_once_each_on_its_cores(
    cache: Path, cluster: dict[str, Node], tmp_path: Path
) -> None:
    command = ("worker", "--lanes", "2", cluster["scheduler"].address)
    with another_worker(cache, cluster, *command) as (worker, client):
        assert client.scheduler_info()["workers"][worker.address]["nthreads"] == 2
        there: dict[str, Any] = {"workers": [worker.address], "pure": False}
        assert client.submit(lanes_of_worker, **there).result(PATIENCE_S) == Lanes(2, lanes_of(2))
        os.mkfifo(meeting := tmp_path / "meeting")
        site = write_site(generate("demo-light"), tmp_path / "site")
        setting = Setting(site, networks.load()["dsl"], protocols.load()["tcp"])
        method = CoresMethod(meeting=meeting)
        blocks = [Block(n, {Run("site", "dsl", "tcp", n): setting}, method, 0, ALL_FILMS) for n in (1, 2)]
        futures = [client.submit(measure_remotely, block, [], block.number, **there) for block in blocks]
        measured = [future.result(PATIENCE_S) for future in futures]
    for lane, block in zip(lanes_of(2), measured, strict=True):
        assert [row.lane for row in block.rows] == [lane.number]
        (evidence,) = block.evidence
        assert json.loads(evidence["processor.json"])["affinity"] == list(lane.cores)


def test_a_worker_that_is_there_is_never_overlooked(cache: Path, cluster: dict[str, Node]) -> None:
    # Dask's client updates itself regularly, but not its list of workers, and keeps the last answer.
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        Client(cluster["scheduler"].address, security=security(keys_of(Role.HEAD, cache / "cluster"))) as client,
    ):
        for _ in range(200):
            assert Scheduler(client, "").workers() == [cluster["worker"].address]


def test_a_scheduler_that_does_not_answer_is_asked_again(
    cache: Path, cluster: dict[str, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that was lost with its connection was never answered, and the campaign waited for ever."""
    scheduler, pauses = cluster["scheduler"], list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        scheduler.process.send_signal(signal.SIGCONT)

    monkeypatch.setattr(cluster_of_workers, "time", SimpleNamespace(sleep=pause))
    with Client(scheduler.address, security=security(keys_of(Role.HEAD, cache / "cluster"))) as client:
        monkeypatch.setattr(cluster_of_workers, "ANSWER_S", 0.2)
        scheduler.process.send_signal(signal.SIGSTOP)
        try:
            assert Scheduler(client, "").workers() == [cluster["worker"].address]
        finally:
            scheduler.process.send_signal(signal.SIGCONT)  # if there was no pause, too
    assert pauses


def test_a_port_that_is_taken_is_one_line(cache: Path, cluster: dict[str, Node]) -> None:
    address = cluster["scheduler"].address
    command = [sys.executable, "-m", "eyelevel", "scheduler", address]
    second = subprocess.run(
        command, cwd=PROJECT, env=environment_of(cache), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert second.returncode == 1
    last = second.stderr.splitlines()[-1]
    assert last.startswith(f"eyelevel: the scheduler cannot listen at {address}: ")
    assert "Address already in use" in last


def test_a_machine_has_one_worker(cache: Path, cluster: dict[str, Node]) -> None:
    lock = psutil.Process(cluster["worker"].process.pid).environ()["EYELEVEL_MEASURING_LOCK"]
    environment = {**environment_of(cache), "EYELEVEL_MEASURING_LOCK": lock}
    command = [sys.executable, "-m", "eyelevel", "worker", cluster["scheduler"].address]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stderr=subprocess.PIPE, text=True) as second:
        assert second.stderr
        line = next(line for line in second.stderr if line.startswith("waiting for the measurement that "))
        assert f"(process {cluster['worker'].process.pid}: " in line
        second.send_signal(signal.SIGINT)
        assert second.wait(PATIENCE_S) == INTERRUPTED


def test_a_worker_whose_scheduler_ends_says_so(cache: Path) -> None:
    scheduler = node(cache, "scheduler", "127.0.0.1:0")
    environment = environment_of(cache)
    command = [sys.executable, "-m", "eyelevel", "worker", scheduler.address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=PROJECT, env=environment, text=True, **pipes) as worker:  # type: ignore[call-overload]
        try:
            assert "measures for" in worker.stdout.readline()
            scheduler.process.send_signal(signal.SIGTERM)
            assert scheduler.process.wait(PATIENCE_S) == 0
            _, errors = worker.communicate(timeout=PATIENCE_S)
            message = f"eyelevel: the scheduler {scheduler.address} no longer responds; start this worker again later"
            assert (worker.returncode, errors.splitlines()[-1]) == (1, message)
        finally:
            worker.kill()
            end(scheduler.process)


def test_a_campaign_whose_scheduler_ends_while_a_worker_is_busy_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(cache))
    scheduler = node(cache, "scheduler", "127.0.0.1:0")
    worker = node(cache, "worker", scheduler.address)

    class EndingScheduler(Scheduler):
        def submit(self, worker: str, *_: object) -> Any:
            future = client.submit(time.sleep, 600, workers=[worker], pure=False)
            while not client.processing()[worker]:
                time.sleep(0.05)
            scheduler.process.kill()
            return future

    display = ProgressDisplay(Console(file=io.StringIO()), [], 0)
    try:
        with (
            opened(tmp_path / "campaign", CampaignDocument(CampaignSettings(seed=1, runs=1))) as results,
            Client(scheduler.address, timeout=10, security=security(keys_of(Role.HEAD))) as client,
            pytest.raises(EyelevelError, match=f"the scheduler {scheduler.address} no longer responds; start it and"),
        ):
            campaign, address = scripted_campaign(tmp_path), scheduler.address
            work = work_of(campaign, results, display)
            Dispatch(Cluster(address, campaign), EndingScheduler(client, address), work).run()
    finally:
        end(worker.process, scheduler.process)


def test_a_worker_of_another_cluster_waits_and_says_why(cache: Path, cluster: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").symlink_to(cache / "others")
    environment = environment_of(tmp_path)
    command = [sys.executable, "-m", "eyelevel", "worker", cluster["scheduler"].address]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout
            assert worker.stdout.readline().startswith(f"waiting for {cluster['scheduler'].address}: ")
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0
        finally:
            worker.kill()


def test_the_folder_for_temporary_files_is_the_users_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path)
    assert private_folder(tmp_path) == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(EyelevelError, match="is not a folder of yours alone; remove it"):
        private_folder(tmp_path)
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EyelevelError, match="is not a folder of yours alone; remove it"):
        private_folder(tmp_path)


# Starts a worker for the scheduler at an address, with one lane of these processors.
WORKER_OF_LANE = """
import json, sys
from measure.cluster.nodes import run_worker
from measure.host.lanes import Lane, Lanes
lanes = Lanes(1, (Lane(1, tuple(json.loads(sys.argv[2]))),))
run_worker(sys.argv[1], None, lambda text: print(text, flush=True), lanes)
"""


@pytest.mark.needs_two_cores
def test_a_worker_works_beside_its_lanes_where_a_core_remains_and_validates_with_all_its_cores(
    cache: Path, cluster: dict[str, Node]
) -> None:
    cores, scheduler = sorted(os.sched_getaffinity(0)), cluster["scheduler"].address
    command = (scheduler, json.dumps(cores[:-1]))
    with another_worker(cache, cluster, *command, program=("-c", WORKER_OF_LANE)) as (worker, client):
        # A task of Dask itself.
        assert psutil.Process(worker.process.pid).cpu_affinity() == cores[-1:]
        there: dict[str, Any] = {"workers": [worker.address], "pure": False}
        assert client.submit(os.sched_getaffinity, 0, **there).result(PATIENCE_S) == {cores[-1]}
        fault, _ = client.submit(validation_of, validate_cores, (), (), **there).result(PATIENCE_S)
        assert fault == str(cores)
        assert client.submit(os.sched_getaffinity, 0, **there).result(PATIENCE_S) == {cores[-1]}


def test_a_worker_whose_lanes_have_all_cores_works_on_all_of_them(cache: Path, cluster: dict[str, Node]) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if layout(cores):
        pytest.skip("lanes of so many cores have some for analyses")
    command = (cluster["scheduler"].address, json.dumps(cores))
    with another_worker(cache, cluster, *command, program=("-c", WORKER_OF_LANE)) as (worker, _):
        assert psutil.Process(worker.process.pid).cpu_affinity() == cores


def test_a_worker_ends_at_once_by_a_signal_though_it_measures(cache: Path, cluster: dict[str, Node]) -> None:
    with another_worker(cache, cluster, "worker", cluster["scheduler"].address) as (worker, client):
        _future = client.submit(time.sleep, 600, workers=[worker.address], pure=False)
        while not client.processing()[worker.address]:
            time.sleep(0.05)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE_S) == 0
        while worker.address in client.scheduler_info()["workers"]:
            time.sleep(0.05)
