"""Measuring on a Dask cluster: each worker is one testbed's place, and gets a block at a time.

Workers are looked at before they are given work (`remote.introduce`), and refused when they differ from this machine.
A block whose worker dies is given to another. What was measured comes back to the campaign's folder: evidence first,
then the rows, so that a row's evidence is always there.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed import wait as wait_for

from base.errors import EyelevelError
from base.files import sync_file, sync_folder
from measure.campaign.block import Block, is_left
from measure.campaign.campaign import Campaign
from measure.campaign.progress import Watch
from measure.campaign.remote import Introduction, Measured, Question, introduce, measure_remotely
from measure.campaign.results import Results
from measure.campaign.slot import canaries_of
from measure.completeness import digest
from measure.host.machine import versions
from measure.run.aliases import distinct
from measure.run.evidence import ATTEMPT
from measure.validate.record import keep_entries

CONNECT_TIMEOUT_S = 30
# How often it is looked whether workers came or went, which Dask does not tell.
LOOK_S = 2.0
# A worker that dies over a block may have died of it. So many are tried.
DEATHS = 5


class Cluster:
    """The workers of a Dask scheduler (see `campaign.Workers`).

    `validated`: whether each is held to `make validate`'s quick form before it gets work.
    """

    def __init__(self, scheduler: str, campaign: Campaign, *, validated: bool = True) -> None:
        self._scheduler = scheduler
        self._campaign = campaign
        self._validated = validated
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
        self, client: Client, coming: Iterator[Block], results: Results, watch: Watch, done: Callable[[Block], None]
    ) -> None:
        again: deque[Block] = deque()
        asked: dict[Future[Any], str] = {}
        running: dict[Future[Any], tuple[str, Block]] = {}
        deaths: Counter[int] = Counter()
        while True:
            workers = _workers(client)
            for worker in workers:
                if worker not in {*self._machines, *self._refused, *asked.values()}:
                    asked[self._ask(client, worker)] = worker
            busy = {worker for worker, _ in running.values()}
            for worker in [worker for worker in workers if worker in self._machines and worker not in busy]:
                block = again.popleft() if again else next(coming, None)
                if block is None:
                    break
                running[self._submit(client, worker, block, results)] = worker, block
                for run in block.settings:
                    watch.begins(run, results.attempts(run) + 1)
            if not running and not asked:
                if not again:
                    if (block := next(coming, None)) is None:
                        return
                    again.append(block)
                if workers:
                    raise EyelevelError(
                        f"none of the {len(workers)} workers of {self._scheduler} can measure; see above"
                    )
                watch.warns(f"no worker is connected to {self._scheduler}; waiting for one")
                time.sleep(LOOK_S)
                continue
            if not running and not again and self._machines:
                return  # all is measured; who is still being looked at is not needed
            places = {**asked, **{future: worker for future, (worker, _) in running.items()}}
            for future in _finished(places, client):
                if future in asked:
                    self._admit(future, asked.pop(future), results, watch)
                    continue
                worker, block = running.pop(future)
                if future.status == "finished":
                    bring_home(future.result(), block.repeats, results, watch)
                    done(block)
                elif future.status == "error" and isinstance(fault := future.exception(), EyelevelError):
                    watch.warns(f"the worker {worker} gets no more work: {fault}")
                    self._refuse(worker)
                    again.append(block)
                else:
                    watch.warns(f"the worker {worker} is gone, block {block.number} is measured again elsewhere")
                    deaths[block.number] += 1
                    if deaths[block.number] == DEATHS:
                        raise EyelevelError(f"{DEATHS} workers were lost over block {block.number}")
                    self._refuse(worker)
                    future.cancel()
                    again.append(block)

    def _ask(self, client: Client, worker: str) -> Future[Any]:
        campaign = self._campaign
        question = Question(
            sites={name: site.folder for name, site in campaign.sites.items()},
            networks=tuple(campaign.networks.values()),
            protocols=tuple(distinct(campaign.protocols.values())),
            servers=tuple({protocol.server for protocol in campaign.protocols.values()}),
            validated=self._validated,
        )
        return client.submit(introduce, question, workers=[worker], allow_other_workers=False, pure=False, retries=0)

    def _admit(self, future: Future[Any], worker: str, results: Results, watch: Watch) -> None:
        if future.status not in ("finished", "error"):
            future.cancel()  # it is gone, and may come again
            return
        known: Introduction | BaseException = future.result() if future.status == "finished" else future.exception()
        if isinstance(known, Introduction) and known.validation:
            keep_entries(results.folder, known.validation)
        if fault := self._fault(known):
            self._refuse(worker)
            watch.warns(f"the worker {worker} is refused: {fault}")
        elif isinstance(known, Introduction):
            self._machines[worker] = known.name

    def _refuse(self, worker: str) -> None:
        self._refused.add(worker)
        self._machines.pop(worker, None)

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

    def _fault(self, introduction: Introduction | BaseException) -> str | None:
        """Why a worker must not measure, or None."""
        if isinstance(introduction, BaseException):
            return f"it could not be looked at: {introduction!r}"
        if introduction.fault:
            return introduction.fault
        here = versions({protocol.server for protocol in self._campaign.protocols.values()})
        there = {name: introduction.versions.get(name, "absent") for name in here}
        found = [f"{name} is {there[name]}, here {version}" for name, version in here.items() if there[name] != version]
        found += [
            f"the site {name} is another"
            for name, site in self._campaign.sites.items()
            if introduction.sites.get(name) != digest(site)
        ]
        return "; ".join(found) or None


def _workers(client: Client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _finished(places: Mapping[Future[Any], str], client: Client) -> list[Future[Any]]:
    """Which futures have ended, or lost the worker that they are bound to; waits for a while until there is one."""
    try:
        wait_for(list(places), timeout=LOOK_S, return_when="FIRST_COMPLETED")
    except TimeoutError:
        workers = _workers(client)
        return [future for future, worker in places.items() if worker not in workers]
    return [future for future in places if future.done()]


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
