"""Measures on a Dask cluster. Each worker is a place that measures one block at a time, or one in each of its lanes.

Before a worker gets work, it is inspected (`remote.introduce`), and refused if it differs from this machine. If a
worker dies, its block is given to another. Results come back to the campaign's folder: evidence first, then the rows,
so a row's evidence always exists. A worker gets its next block before its results are written.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, Future

from base.errors import EyelevelError
from base.files import sync_file_system
from dataset.run_files import ATTEMPT
from dataset.table import require_document
from measure.campaign.block import Beginning, Block, Judgement, Notice
from measure.campaign.campaign import Campaign
from measure.campaign.place import Work
from measure.campaign.progress import ProgressDisplay
from measure.campaign.remote import Introduction, MeasuredBlock, Question, Validation, introduce, measure_remotely
from measure.campaign.results import Results, keep_lanes, lanes_fault
from measure.campaign.slot import canaries_of
from measure.cluster.addresses import security_of
from measure.cluster.keys import Role
from measure.host.canary import Canary
from measure.run.aliases import distinct
from measure.sites.completeness import digest

CONNECT_TIMEOUT_S = 30
# How long the scheduler may take to list its workers. Without this limit, a question that was under way when the
# connection was lost did not end.
ANSWER_S = 30.0
# The interval at which the list of workers is fetched, since Dask does not report newcomers and losses (s).
LOOK_S = 2.0
# A worker (by its address) or a machine (by its name), and the number of one of its lanes, None if it has no lanes.
Place = tuple[str, int | None]

# A block may itself kill the workers that measure it. When this many workers have died over one block, the campaign
# ends.
DEATHS = 5
# At most this many measured blocks, of 5 to 50 MB each, wait in memory to be written to disk; beyond that, workers
# wait, too.
MOST_WAITING = 10
# The number of blocks that are fetched at the same time.
FETCHERS = 4


class Cluster:
    """The workers of a Dask scheduler; each measures a block at a time, or one in each of its lanes.

    `scheduler` is the scheduler's address: with tls:// it is reached with this machine's keys as the head of a cluster,
    with tcp:// without keys. `validate` measures networks and protocols on each worker before it gets work; None skips
    this. The scheduler must answer within `connect_timeout_s`. Raises EyelevelError when the keys are missing.
    """

    def __init__(
        self,
        scheduler: str,
        campaign: Campaign,
        validate: Validation | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self.scheduler = scheduler
        self._connect_timeout_s = connect_timeout_s
        self._security = security_of(Role.HEAD, scheduler)
        self._campaign = campaign
        self._validate = validate
        self._refused: set[str] = set()
        self._machines: dict[str, str] = {}

    def measure(self, work: Work) -> None:
        """Measure on the workers. Raises EyelevelError when the measurement cannot continue."""
        try:
            client = Client(self.scheduler, timeout=self._connect_timeout_s, security=self._security)
        except (OSError, TimeoutError) as error:
            raise EyelevelError(f"there is no Dask scheduler at {self.scheduler}: {error}") from None
        with client:
            Dispatch(self, Scheduler(client, self.scheduler), work).run()

    def forget_all_but(self, workers: Collection[str]) -> None:
        """Forget workers that have left, since a newcomer may get the same address."""
        self._refused.intersection_update(workers)
        self._machines = {worker: self._machines[worker] for worker in workers if worker in self._machines}

    def machine_of(self, worker: str) -> str | None:
        """The machine of `worker`, or None unless the worker was admitted."""
        return self._machines.get(worker)

    def is_known(self, worker: str) -> bool:
        """Whether `worker` has been inspected."""
        return worker in self._machines or worker in self._refused

    def has_workers(self) -> bool:
        """Whether any worker was admitted."""
        return bool(self._machines)

    def refuse(self, worker: str) -> None:
        """Give `worker` no more work while it stays connected."""
        self._refused.add(worker)
        self._machines.pop(worker, None)

    def forget(self, worker: str) -> None:
        """Forget that `worker` was admitted, so that it is inspected again."""
        self._machines.pop(worker, None)

    def question(self) -> Question:
        """The question that each worker answers before it gets work."""
        campaign = self._campaign
        return Question(
            sites={name: site.folder for name, site in campaign.sites.items()},
            networks=tuple(campaign.networks.values()),
            protocols=tuple(distinct(campaign.protocols.values())),
            browsers=campaign.browsers,
            captures=campaign.method.captures,
            further_programs=campaign.further_programs(),
            validate=self._validate,
        )

    def admit(self, worker: str, outcome: object, results: Results, display: ProgressDisplay) -> None:
        """Admit or refuse `worker` according to `outcome`: its introduction, or the error that was raised instead. If
        `outcome` is None, the worker is gone, and may come back."""
        if isinstance(outcome, Introduction) and outcome.keep_validation:
            outcome.keep_validation(results.folder)
        if not isinstance(outcome, Introduction | BaseException):
            return
        fault = self._fault(outcome)
        if not fault and isinstance(outcome, Introduction):
            fault = lanes_fault(require_document(results.folder), outcome.name, outcome.lanes.record())
        if fault:
            self.refuse(worker)
            display.notify(Notice(f"the worker {worker} is refused: {fault}"))
        elif isinstance(outcome, Introduction):
            keep_lanes(results.folder, outcome.name, outcome.lanes.record())
            self._machines[worker] = outcome.name

    def places(self, worker: str) -> list[Place]:
        """The places of `worker`: its lanes, or the worker itself. Each measures a block at a time."""
        lanes = self._campaign.lanes
        numbers = range(1, lanes.count * lanes.loads_of_cores + 1)
        return [(worker, None)] if lanes.is_one else [(worker, lane) for lane in numbers]

    def _fault(self, introduction: Introduction | BaseException) -> str | None:
        """Why a worker must not measure, or None."""
        if isinstance(introduction, BaseException):
            return f"it could not be examined: {introduction!r}"
        if introduction.fault:
            return introduction.fault
        if (lanes := introduction.lanes.value()) != (wanted := self._campaign.lanes.value()):
            return f"it has LANES={lanes}, and the campaign LANES={wanted}: 'eyelevel worker --lanes {wanted}'"
        here = self._versions
        there = {name: introduction.versions.get(name, "absent") for name in here}
        differences = [
            f"{name} is {there[name]} there, {version} here" for name, version in here.items() if there[name] != version
        ]
        differences += [
            f"the site {name} differs"
            for name, fingerprint in self._fingerprints.items()
            if introduction.sites.get(name) != fingerprint
        ]
        return "; ".join(differences) or None

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        """The versions on this machine, cached: reading them takes a second, and hundreds of workers are compared with
        them."""
        return self._campaign.versions()

    @cached_property
    def _fingerprints(self) -> Mapping[str, str]:
        """Site → the fingerprint of its folder; cached for the same reasons as `_versions`."""
        return {name: digest(site) for name, site in self._campaign.sites.items()}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request to a worker: the value returned or the error raised, or None when the worker is gone."""

    future: Future[Any]
    value: object


@dataclass(frozen=True)
class Presence:
    """The workers that are connected."""

    workers: list[str]


class Scheduler:
    """The Dask scheduler at `address`, used through its `client`."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self.address = address

    def submit(self, worker: str, function: Callable[..., object], *arguments: object) -> Future[Any]:
        """Call `function` on `worker` and on no other."""
        there: Any = {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}
        return self._client.submit(function, *arguments, **there)

    def workers(self) -> list[str]:
        """The addresses of all connected workers. While the client reconnects, this waits. Raises EyelevelError when
        the scheduler is gone."""
        while self._client.status in ("running", "connecting"):
            try:
                # Ask the scheduler directly: the client's cached answer is sometimes empty although workers are there.
                scheduler_itself: Any = self._client.scheduler
                return list(self._client.sync(scheduler_itself.ncores, callback_timeout=ANSWER_S))
            except OSError:
                time.sleep(LOOK_S)
        raise EyelevelError(
            f"the scheduler {self.address} no longer responds; start it and its workers again, then resume the campaign"
        )


class Dispatch:
    """Hands blocks to the workers of `cluster` and takes their results, until all of `work` is measured or its next
    block may not begin. Fetches the list of workers every `look_s`."""

    def __init__(self, cluster: Cluster, scheduler: Scheduler, work: Work, look_s: float = LOOK_S) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._work = work
        self._coming = iter(work.blocks)
        self._results = work.results
        self._display = work.display
        self._look_s = look_s
        self._workers: list[str] = []
        self._next_look = 0.0
        self._again: deque[Block] = deque()
        self._introductions: dict[Future[Any], str] = {}
        self._running: dict[Future[Any], tuple[Place, Block]] = {}
        # Looks for workers are numbered. These are the numbers of the latest look that was begun, of the latest that
        # has ended, and of the latest that had begun when a worker was last admitted, refused or lost.
        self._looks = self._last_look = self._doubted_look = 0
        # Events: Dask's thread adds futures that have ended; our threads add the results of futures, and lists of
        # workers.
        self._news: SimpleQueue[Future[Any] | Outcome | Presence | EyelevelError] = SimpleQueue()
        self._ended: deque[Future[Any]] = deque()
        self._fetching: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(FETCHERS + 1, thread_name_prefix="dispatch")
        self._measured: deque[tuple[Block, MeasuredBlock]] = deque()
        self._deaths: Counter[int] = Counter()
        # The canaries of each machine and lane, including those of blocks that have not been written yet.
        self._canaries: dict[Place, list[Canary]] = {}

    def run(self) -> None:
        """Measure all blocks. Raises EyelevelError."""
        try:
            self._run()
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while True:
            self._look_for_workers()
            self._hand_out()
            if self._measured:
                self._write_first()
                self._take_news(0.0)
                continue
            if not self._running and not self._introductions:
                if (block := self._next_block()) is None:
                    return
                self._again.appendleft(block)
                self._require_workers()
            elif not self._running and not self._again and self._cluster.has_workers():
                return  # all is measured; do not wait for workers that are still being inspected
            is_looking = self._looks != self._last_look
            self._take_news(self._look_s if is_looking else max(0.0, self._next_look - time.monotonic()))

    def _look_for_workers(self) -> None:
        """Begin to fetch the list of workers, if the last look was long enough ago. In a thread, since a busy scheduler
        answers slowly."""
        if self._looks == self._last_look and time.monotonic() >= self._next_look:
            self._looks += 1
            self._threads.submit(self._look)

    def _look(self) -> None:
        try:
            self._news.put(Presence(self._scheduler.workers()))
        except EyelevelError as error:
            self._news.put(error)
        except Exception as error:
            # Without an event, the main loop would never look again, nor notice that a worker is gone.
            text = f"the scheduler {self._scheduler.address} does not list its workers: {error!r}"
            self._news.put(EyelevelError(text))

    def _meet(self, workers: list[str]) -> None:
        """Compare this list of workers with the previous one: inspect newcomers, and give up on requests to workers
        that left."""
        self._workers = workers
        self._cluster.forget_all_but(workers)
        self._last_look = self._looks
        self._next_look = time.monotonic() + self._look_s
        newcomers = set(self._introductions.values())
        for worker in self._workers:
            if worker not in newcomers and not self._cluster.is_known(worker):
                self._follow(future := self._scheduler.submit(worker, introduce, self._cluster.question()))
                self._introductions[future] = worker
        # Dask never ends a future that is bound to a worker that has left.
        present = set(self._workers)
        places = {**self._introductions, **{future: worker for future, ((worker, _), _) in self._running.items()}}
        for future in [future for future, worker in places.items() if worker not in present]:
            self._end(Outcome(future, None))

    def _hand_out(self) -> None:
        """Give a block to each idle place, unless too many measured blocks wait to be written."""
        if len(self._measured) >= MOST_WAITING:
            return
        for place in self._free_places():
            if (block := self._next_block()) is None:
                return
            if block.share > self._free_share(place):
                # Do not begin a later block in its stead: this one might then wait for ever.
                self._again.appendleft(block)
                continue
            self._follow(future := self._submit(place, block))
            self._running[future] = place, block
            for run in block.settings:
                self._display.notify(Beginning(run, self._results.attempts(run) + 1))

    def _next_block(self) -> Block | None:
        """The block to measure next; None if none is left, or if it may not begin.

        `may_begin` is asked here, since a block may have waited for hours: for a worker, or for the result of a worker
        that died.
        """
        block = self._again.popleft() if self._again else next(self._coming, None)
        if block and self._work.may_begin(block):
            return block
        self._again.clear()
        return None

    def _free_places(self) -> list[Place]:
        busy = {place for place, _ in self._running.values()}
        known = [worker for worker in self._workers if self._cluster.machine_of(worker)]
        return [place for worker in known for place in self._cluster.places(worker) if place not in busy]

    def _free_share(self, place: Place) -> Fraction:
        """The share of the processors of `place` that no block takes."""
        worker, lane = place
        lanes = self._work.campaign.lanes
        cores = None if lane is None else lanes.set_of(lane)
        return 1 - sum(
            (
                block.share
                for (one, other), block in self._running.values()
                if one == worker and (None if other is None else lanes.set_of(other)) == cores
            ),
            Fraction(),
        )

    def _submit(self, place: Place, block: Block) -> Future[Any]:
        worker, lane = place
        canaries = list(self._canaries_of(worker, lane))
        browser = self._work.campaign.loading.browser
        return self._scheduler.submit(worker, measure_remotely, block.open_in(self._results), canaries, lane, browser)

    def _canaries_of(self, worker: str, lane: int | None) -> list[Canary]:
        machine = self._cluster.machine_of(worker) or ""
        if (machine, lane) not in self._canaries:
            self._canaries[machine, lane] = canaries_of(machine, self._results.rows, lane)
        return self._canaries[machine, lane]

    def _follow(self, future: Future[Any]) -> None:
        future.add_done_callback(self._news.put)

    def _take_news(self, patience_s: float) -> None:
        """Handle all events that have come; if none has, wait up to `patience_s` for one."""
        try:
            self._take(self._news.get(timeout=patience_s))
            while True:
                self._take(self._news.get_nowait())
        except Empty:
            pass
        while self._ended and len(self._fetching) < min(FETCHERS, MOST_WAITING - len(self._measured)):
            future = self._ended.popleft()
            if future in self._running or future in self._introductions:
                self._fetching.add(future)
                self._threads.submit(self._fetch, future)

    def _take(self, news: Future[Any] | Outcome | Presence | EyelevelError) -> None:
        if isinstance(news, EyelevelError):
            raise news
        if isinstance(news, Presence):
            self._meet(news.workers)
        elif isinstance(news, Outcome):
            self._fetching.discard(news.future)
            self._end(news)
        else:
            self._ended.append(news)

    def _fetch(self, future: Future[Any]) -> None:
        """Fetch the result of `future`. Runs in a thread, since it takes as long as the network needs.

        There is no timeout: cancelling one fetch would cancel all that Dask has under way. If the worker dies now, the
        result never comes; the next look for workers then cancels `future`.
        """
        value: object = None
        try:
            value = future.exception() if future.status == "error" else future.result()
        finally:
            # Report the outcome even after an error: then the value is None.
            self._news.put(Outcome(future, value))

    def _end(self, outcome: Outcome) -> None:
        """Handle the outcome of a request to a worker: a result, an error, or the worker's loss."""
        future, value = outcome.future, outcome.value
        if future in self._introductions:
            self._cluster.admit(self._introductions.pop(future), value, self._results, self._display)
            self._doubted_look = self._looks
        elif future in self._running:
            (worker, _), block = self._running.pop(future)
            if isinstance(value, MeasuredBlock):
                for machine, lane in {(row.machine, row.lane) for row in value.rows} & self._canaries.keys():
                    self._canaries[machine, lane] += canaries_of(machine, value.rows, lane)
                self._measured.append((block, value))
            elif isinstance(value, EyelevelError):
                self._display.notify(Notice(f"the worker {worker} gets no more work: {value}"))
                self._cluster.refuse(worker)
                self._doubted_look, self._next_look = self._looks, 0.0
                self._again.append(block)
            else:
                self._lose(worker, block)
        # Drop the future in any case: its result is here, or its worker is gone and none will come.
        future.cancel()

    def _lose(self, worker: str, block: Block) -> None:
        text = f"the worker {worker} no longer responds; block {block.number} is measured again elsewhere"
        self._display.notify(Notice(text))
        self._deaths[block.number] += 1
        if self._deaths[block.number] == DEATHS:
            raise EyelevelError(f"{DEATHS} workers were lost over block {block.number}")
        # A worker that is still connected is inspected again.
        self._cluster.forget(worker)
        self._doubted_look, self._next_look = self._looks, 0.0
        self._again.append(block)

    def _write_first(self) -> None:
        """Write the block that has waited longest into the results."""
        block, measured = self._measured.popleft()
        bring_home(measured, block.repeats, self._results, self._display)
        self._work.end(block)

    def _require_workers(self) -> None:
        """Show a notice when blocks wait and no worker is connected. Raises EyelevelError when all connected workers
        were refused."""
        if self._last_look <= self._doubted_look:
            return
        if not self._workers:
            self._display.notify(Notice(f"no worker is connected to {self._scheduler.address}; waiting for one"))
        elif not self._cluster.has_workers():
            raise EyelevelError(
                f"none of the {len(self._workers)} workers of {self._scheduler.address} can measure; see above"
            )


def bring_home(measured: MeasuredBlock, repeats: int, results: Results, display: ProgressDisplay) -> None:
    """Write what a worker measured into `results`: the evidence first, and the rows when all evidence is on the disk.

    The whole file system is synchronised, twice. That takes about as long as synchronising one file, and a run has a
    dozen files.
    """
    for warning in measured.warnings:
        display.notify(Notice(warning))
    folders = [results.empty_run_folder(row.of, row.attempt) for row in measured.rows]
    # This file is written last, since it states that all others are complete (`method.is_made`).
    for is_last in (False, True):
        for folder, evidence in zip(folders, measured.evidence, strict=True):
            for name in evidence:
                if (name == ATTEMPT) == is_last:
                    (folder / Path(name).name).write_bytes(evidence[name])
        sync_file_system(results.folder)
    results.keep(*measured.rows)
    last = {row.of: row for row in measured.rows}
    for row in measured.rows:
        display.notify(Judgement(row, given_up=row is last[row.of] and results.is_given_up(row.of, repeats)))
