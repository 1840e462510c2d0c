"""Measuring on a Dask cluster: each worker is one testbed's place, and gets a block at a time.

Workers are looked at before they are given work (`remote.introduce`), and refused when they differ from this machine.
A block whose worker dies is given to another. What was measured comes back to the campaign's folder: evidence first,
then the rows, so that a row's evidence is always there.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed import wait as wait_for

from eyelevel.errors import EyelevelError
from eyelevel.files import sync_file, sync_folder
from measure.block import Block, is_left
from measure.campaign import Campaign
from measure.completeness import digest
from measure.evidence import ATTEMPT
from measure.machine import versions
from measure.progress import Watch
from measure.remote import Introduction, Measured, introduce, measure_remotely
from measure.results import Results
from measure.slot import canaries_of

CONNECT_TIMEOUT_S = 30
# How often it is looked whether workers came or went, which Dask does not tell.
LOOK_S = 2.0
# A worker that dies over a block may have died of it. So many are tried.
DEATHS = 5


class Cluster:
    """The workers of a Dask scheduler (see `campaign.Workers`)."""

    def __init__(self, scheduler: str, campaign: Campaign) -> None:
        self._scheduler = scheduler
        self._campaign = campaign
        self._refused: set[str] = set()
        self._machines: dict[str, str] = {}

    def measure(self, blocks: Iterable[Block], results: Results, watch: Watch, done: Callable[[Block], None]) -> None:
        """Measure `blocks` into `results`, and call `done` after each. Raises EyelevelError."""
        try:
            client = Client(self._scheduler, timeout=CONNECT_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            raise EyelevelError(f"there is no Dask scheduler at {self._scheduler}: {error}") from None
        with client:
            self._measure(client, iter(blocks), results, watch, done)

    def _measure(
        self, client: Client, coming: Iterable[Block], results: Results, watch: Watch, done: Callable[[Block], None]
    ) -> None:
        source, again = iter(coming), deque[Block]()
        running: dict[Future[Any], tuple[str, Block]] = {}
        deaths: dict[int, int] = {}
        while True:
            for worker in self._idle(client, {worker for worker, _ in running.values()}, watch):
                block = again.popleft() if again else next(source, None)
                if block is None:
                    break
                running[self._submit(client, worker, block, results)] = worker, block
                for run in block.settings:
                    watch.begins(run, results.attempts(run) + 1)
            if not running:
                if not again:
                    return
                raise EyelevelError(f"{self._scheduler} has no worker that can measure: {self._why()}")
            for future in _finished(running, client):
                worker, block = running.pop(future)
                if future.status == "finished":
                    bring_home(future.result(), block.repeats, results, watch)
                    done(block)
                elif future.status == "error" and isinstance(fault := future.exception(), EyelevelError):
                    watch.warns(f"the worker {worker} gets no more work: {fault}")
                    self._refused.add(worker)
                    self._machines.pop(worker, None)
                    again.append(block)
                else:
                    deaths[block.number] = deaths.get(block.number, 0) + 1
                    watch.warns(f"the worker {worker} is gone, block {block.number} is measured again elsewhere")
                    if deaths[block.number] == DEATHS:
                        raise EyelevelError(f"{DEATHS} workers in a row were lost over block {block.number}")
                    future.cancel()
                    again.append(block)

    def _submit(self, client: Client, worker: str, block: Block, results: Results) -> Future[Any]:
        left = {
            run: setting for run, setting in block.settings.items() if is_left(run, results, self._campaign.repeats)
        }
        tried = {run: (results.attempts(run), results.failures(run)) for run in left}
        canaries = canaries_of(self._machines[worker], results.rows)
        return client.submit(
            measure_remotely,
            Block(block.number, left, block.repeats, block.films),
            tried,
            canaries,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def _idle(self, client: Client, busy: Iterable[str], watch: Watch) -> list[str]:
        """The workers that may measure now; those that were not known are looked at."""
        workers = client.scheduler_info(n_workers=-1)["workers"]
        new = [address for address in workers if address not in self._machines and address not in self._refused]
        if new:
            sites = {name: site.folder for name, site in self._campaign.sites.items()}
            transports = {protocol.transport for protocol in self._campaign.protocols.values()}
            told = client.run(introduce, sites, transports, workers=new, on_error="return")
            for address, introduction in told.items():
                if fault := self._fault(introduction, workers[address]):
                    self._refused.add(address)
                    watch.warns(f"the worker {address} is refused: {fault}")
                else:
                    self._machines[address] = introduction.name
        taken = set(busy)
        return [address for address in workers if address in self._machines and address not in taken]

    def _fault(self, introduction: Introduction | BaseException, known: Mapping[str, object]) -> str | None:
        """Why a worker must not measure, or None."""
        if isinstance(introduction, BaseException):
            return f"it could not be looked at: {introduction!r}"
        if introduction.fault:
            return introduction.fault
        if known.get("nthreads") != 1:
            return f"it has {known.get('nthreads')} threads; one worker is one place: start it with --nthreads 1"
        here = versions({protocol.transport for protocol in self._campaign.protocols.values()})
        there = {name: introduction.versions.get(name, "absent") for name in here}
        found = [f"{name} is {there[name]}, here {version}" for name, version in here.items() if there[name] != version]
        found += [
            f"the site {name} is another"
            for name, site in self._campaign.sites.items()
            if introduction.sites.get(name) != digest(site)
        ]
        return "; ".join(found) or None

    def _why(self) -> str:
        return f"all {len(self._refused)} were refused, see above" if self._refused else "none is connected"


def _finished(running: Mapping[Future[Any], tuple[str, Block]], client: Client) -> list[Future[Any]]:
    """Which of `running` have ended, or lost their worker; waits for a while until there is one."""
    try:
        wait_for(list(running), timeout=LOOK_S, return_when="FIRST_COMPLETED")
    except TimeoutError:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        return [future for future, (worker, _) in running.items() if worker not in workers]
    return [future for future in running if future.done()]


def bring_home(measured: Measured, repeats: int, results: Results, watch: Watch) -> None:
    """Put what a worker measured into `results`; a row when its evidence is on the disk."""
    for warning in measured.warnings:
        watch.warns(warning)
    for row, evidence in zip(measured.rows, measured.evidence, strict=True):
        folder = results.empty_run_folder(row.of, row.attempt)
        # Written last, since it says that all else is there (`attempt.is_made`).
        for name in sorted(evidence, key=lambda name: name == ATTEMPT):
            (folder / Path(name).name).write_bytes(evidence[name])
            sync_file(folder / Path(name).name)
        sync_folder(folder)
        sync_folder(folder.parent)
        results.append(row)
        watch.ends(row.of, row, given_up=not is_left(row.of, results, repeats))
