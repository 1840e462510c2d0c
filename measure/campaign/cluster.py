"""Measuring on a Dask cluster: each worker is one testbed's place, and gets a block at a time.

Workers are looked at before they are given work (`remote.introduce`), and refused when they differ from this machine.
A block whose worker dies is given to another. What was measured comes back to the campaign's folder: evidence first,
then the rows, so that a row's evidence is always there.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed import wait as wait_for

from base.errors import EyelevelError
from base.files import sync
from measure.campaign.block import Block
from measure.campaign.campaign import Campaign
from measure.campaign.progress import ProgressDisplay
from measure.campaign.remote import Introduction, MeasuredBlock, Question, Validation, introduce, measure_remotely
from measure.campaign.results import Results
from measure.campaign.slot import canaries_of
from measure.cluster.addresses import security_of
from measure.cluster.keys import Role
from measure.completeness import digest
from measure.run.aliases import distinct
from measure.run.evidence import ATTEMPT

CONNECT_TIMEOUT_S = 30
# How often it is looked whether workers came or went, which Dask does not tell.
LOOK_S = 2.0
# A worker that dies over a block may have died of it. So many are tried.
DEATHS = 5


class Cluster:
    """The workers of a Dask scheduler (see `campaign.Workers`).

    `scheduler` is its address, by TLS with the keys of this machine as the head of a cluster, or without (tcp://).
    `validate` measures networks and protocols on each worker before it gets work; None trusts them.
    Raises EyelevelError when there are no such keys.
    """

    def __init__(self, scheduler: str, campaign: Campaign, validate: Validation | None = None) -> None:
        self._scheduler = scheduler
        self._security = security_of(Role.HEAD, scheduler)
        self._campaign = campaign
        self._validate = validate
        self._refused: set[str] = set()
        self._machines: dict[str, str] = {}

    def measure(
        self, blocks: Iterable[Block], results: Results, display: ProgressDisplay, done: Callable[[Block], None]
    ) -> None:
        """Measure `blocks` into `results`, and call `done` after each. Raises EyelevelError."""
        try:
            client = Client(self._scheduler, timeout=CONNECT_TIMEOUT_S, security=self._security)
        except (OSError, TimeoutError) as error:
            raise EyelevelError(f"there is no Dask scheduler at {self._scheduler}: {error}") from None
        with client:
            self._measure(client, iter(blocks), results, display, done)

    def _measure(
        self,
        client: Client,
        coming: Iterator[Block],
        results: Results,
        display: ProgressDisplay,
        done: Callable[[Block], None],
    ) -> None:
        again: deque[Block] = deque()
        introductions: dict[Future[Any], str] = {}
        running: dict[Future[Any], tuple[str, Block]] = {}
        deaths: Counter[int] = Counter()
        while True:
            workers = connected_workers(client, self._scheduler)
            for worker in workers:
                if worker not in {*self._machines, *self._refused, *introductions.values()}:
                    introductions[self._submit_introduction(client, worker)] = worker
            busy = {worker for worker, _ in running.values()}
            for worker in [worker for worker in workers if worker in self._machines and worker not in busy]:
                block = again.popleft() if again else next(coming, None)
                if block is None:
                    break
                running[self._submit(client, worker, block, results)] = worker, block
                for run in block.settings:
                    display.begins(run, results.attempts(run) + 1)
            if not running and not introductions:
                if not again:
                    if (block := next(coming, None)) is None:
                        return
                    again.append(block)
                if workers:
                    raise EyelevelError(
                        f"none of the {len(workers)} workers of {self._scheduler} can measure; see above"
                    )
                display.warns(f"no worker is connected to {self._scheduler}; waiting for one")
                time.sleep(LOOK_S)
                continue
            if not running and not again and self._machines:
                return  # all is measured; who is still being looked at is not needed
            places = {**introductions, **{future: worker for future, (worker, _) in running.items()}}
            for future in _finished(places, client, self._scheduler):
                if future in introductions:
                    self._admit(future, introductions.pop(future), results, display)
                    continue
                worker, block = running.pop(future)
                if future.status == "finished":
                    bring_home(future.result(), block.repeats, results, display)
                    done(block)
                elif future.status == "error" and isinstance(fault := future.exception(), EyelevelError):
                    display.warns(f"the worker {worker} gets no more work: {fault}")
                    self._refuse(worker)
                    again.append(block)
                else:
                    display.warns(f"the worker {worker} is gone, block {block.number} is measured again elsewhere")
                    deaths[block.number] += 1
                    if deaths[block.number] == DEATHS:
                        raise EyelevelError(f"{DEATHS} workers were lost over block {block.number}")
                    self._refuse(worker)
                    future.cancel()
                    again.append(block)

    def _submit_introduction(self, client: Client, worker: str) -> Future[Any]:
        campaign = self._campaign
        question = Question(
            sites={name: site.folder for name, site in campaign.sites.items()},
            networks=tuple(campaign.networks.values()),
            protocols=tuple(distinct(campaign.protocols.values())),
            browser=campaign.loading.browser,
            captures=campaign.method.captures,
            validate=self._validate,
        )
        return _submit_to(worker, client, introduce, question)

    def _admit(self, future: Future[Any], worker: str, results: Results, display: ProgressDisplay) -> None:
        if future.status not in ("finished", "error"):
            future.cancel()  # it is gone, and may come again
            return
        outcome: Introduction | BaseException = future.result() if future.status == "finished" else future.exception()
        if isinstance(outcome, Introduction) and outcome.keep_validation:
            outcome.keep_validation(results.folder)
        if fault := self._fault(outcome):
            self._refuse(worker)
            display.warns(f"the worker {worker} is refused: {fault}")
        elif isinstance(outcome, Introduction):
            self._machines[worker] = outcome.name

    def _refuse(self, worker: str) -> None:
        self._refused.add(worker)
        self._machines.pop(worker, None)

    def _submit(self, client: Client, worker: str, block: Block, results: Results) -> Future[Any]:
        settings = {run: one for run, one in block.settings.items() if results.is_open(run, block.repeats)}
        earlier = {run: (results.attempts(run), results.failures(run)) for run in settings}
        canaries = canaries_of(self._machines[worker], results.rows)
        return _submit_to(worker, client, measure_remotely, replace(block, settings=settings), earlier, canaries)

    def _fault(self, introduction: Introduction | BaseException) -> str | None:
        """Why a worker must not measure, or None."""
        if isinstance(introduction, BaseException):
            return f"it could not be looked at: {introduction!r}"
        if introduction.fault:
            return introduction.fault
        here = self._campaign.versions()
        there = {name: introduction.versions.get(name, "absent") for name in here}
        differences = [
            f"{name} is {there[name]}, here {version}" for name, version in here.items() if there[name] != version
        ]
        differences += [
            f"the site {name} is another"
            for name, site in self._campaign.sites.items()
            if introduction.sites.get(name) != digest(site)
        ]
        return "; ".join(differences) or None


def _submit_to(worker: str, client: Client, function: Callable[..., object], *arguments: object) -> Future[Any]:
    return client.submit(function, *arguments, workers=[worker], allow_other_workers=False, pure=False, retries=0)


def connected_workers(client: Client, scheduler: str) -> list[str]:
    """The addresses of all workers, as the scheduler with the address `scheduler` says; waits while it is connected
    anew. Raises EyelevelError when it is gone."""
    while client.status in ("running", "connecting"):
        try:
            # Asked directly: what the client keeps of such answers is at times one without any workers.
            scheduler_itself: Any = client.scheduler
            return list(client.sync(scheduler_itself.identity, n_workers=-1)["workers"])
        except OSError:
            time.sleep(LOOK_S)
    raise EyelevelError(
        f"the scheduler {scheduler} is gone; start it and its workers again, then go on with the campaign"
    )


def _finished(places: Mapping[Future[Any], str], client: Client, scheduler: str) -> list[Future[Any]]:
    """Which futures have ended, or lost the worker that they are bound to; waits for a while until there is one.

    Raises EyelevelError when the scheduler is gone.
    """
    try:
        wait_for(list(places), timeout=LOOK_S, return_when="FIRST_COMPLETED")
    except TimeoutError:
        workers = connected_workers(client, scheduler)
        return [future for future, worker in places.items() if worker not in workers]
    except CancelledError:
        pass  # all are, when the scheduler is gone
    return [future for future in places if future.done()]


def bring_home(measured: MeasuredBlock, repeats: int, results: Results, display: ProgressDisplay) -> None:
    """Put what a worker measured into `results`; a row when its evidence is on the disk."""
    for warning in measured.warnings:
        display.warns(warning)
    for row, evidence in zip(measured.rows, measured.evidence, strict=True):
        folder = results.empty_run_folder(row.of, row.attempt)
        # Written last, since it says that all else is there (`attempt.is_made`).
        for name in sorted(evidence, key=lambda name: name == ATTEMPT):
            (folder / Path(name).name).write_bytes(evidence[name])
            sync(folder / Path(name).name)
        sync(folder)
        sync(folder.parent)
        results.keep_attempt(row)
        display.ends(row.of, row, given_up=results.is_given_up(row.of, repeats))
