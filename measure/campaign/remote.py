"""The tasks of a worker of a Dask cluster: it is inspected before it gets work, and measures a block at a time.

A block is measured into a temporary folder on the worker's machine, and its evidence is sent back. Nothing here depends
on the scheduler.
"""

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from distributed import get_worker

from base.errors import EyelevelError
from base.privileges import require_browsing
from dataset.table import Row
from measure.campaign.block import Block, Event, Notice, measure_block
from measure.campaign.lane import Ending, LaneSetting, running_lane
from measure.campaign.lanes import sharing_folders
from measure.campaign.preparer import Preparer
from measure.campaign.slot import Slot, machine_name
from measure.campaign.store import FolderStore
from measure.host.canary import Canary
from measure.host.idle_priority import idle_priority
from measure.host.lanes import ONE_LANE, Lanes, working_on
from measure.host.machine import digests, versions
from measure.sites.completeness import digest
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Introduction:
    """A worker's machine: its name, the versions of all programs, and the fingerprints of its sites.

    `fault` is why it cannot measure, or None. `keep_validation` writes what was measured of its networks and protocols
    into a campaign's folder, whether they passed or not. `lanes`: how many blocks the machine measures at once, and
    where.
    """

    name: str
    versions: Mapping[str, str]
    sites: Mapping[str, str]
    fault: str | None = None
    keep_validation: Callable[[Path], None] | None = None
    lanes: Lanes = ONE_LANE


# Why networks or protocols failed, or None; and a function that writes all that was measured into a campaign's folder.
MeasuredSettings = tuple[str | None, Callable[[Path], None]]
# Measures networks and protocols; the folder is for temporary files.
Validation = Callable[[Path, Sequence[Network], Sequence[Protocol]], MeasuredSettings]


@dataclass(frozen=True)
class Question:
    """The requirements on a worker: the sites' folders, the networks and protocols, and the browsers. Also the programs
    that capture packets, if `captures`, and `further_programs` (`measure.host.machine.versions`).

    `validate`, a function at the top level of a module, measures the worker's networks and protocols first; None skips
    this.
    """

    sites: Mapping[str, Path]
    networks: tuple[Network, ...]
    protocols: tuple[Protocol, ...]
    browsers: tuple[str, ...]
    captures: bool
    further_programs: Mapping[str, str] = field(default_factory=dict)
    validate: Validation | None = None


@dataclass(frozen=True)
class MeasuredBlock:
    """A block that a worker measured: its rows in order, the evidence of each row (file name → content), and
    warnings."""

    rows: tuple[Row, ...]
    evidence: tuple[Mapping[str, bytes], ...]
    warnings: tuple[str, ...]


def introduce(question: Question) -> Introduction:
    """Inspect this machine before it gets work: which programs and sites it has, and whether it can measure at all."""
    try:
        require_browsing("a worker")
        lanes = lanes_of_worker()
        if get_worker().state.nthreads != lanes.count * lanes.loads_of_cores:
            raise EyelevelError(
                "a worker measures one run at a time, and this one has several threads; start it by 'eyelevel worker'"
            )
        sites = {name: digest(Site.load(folder)) for name, folder in question.sites.items()}
        programs = versions((), question.browsers, capturing=question.captures, further=question.further_programs)
        programs |= digests(question.browsers)
        introduction = Introduction(machine_name(), programs, sites, lanes=lanes)
        if question.validate is None:
            return introduction
        fault, keep = validation_of(question.validate, question.networks, question.protocols)
        return replace(introduction, fault=fault, keep_validation=keep)
    except EyelevelError as error:
        return Introduction(machine_name(), {}, {}, str(error))


def validation_of(validate: Validation, networks: Sequence[Network], protocols: Sequence[Protocol]) -> MeasuredSettings:
    """The result of `validate` on this machine, on all its cores, while nothing is measured in its lanes."""
    with (
        having(lane.number for lane in lanes_of_worker().places()),
        working_on(cores_of_worker()),
        tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="validate-") as temporary,
    ):
        return validate(Path(temporary), networks, protocols)


# (worker of this process, number of its lane) → the lock that the task that measures there holds.
_PLACES: dict[tuple[str, int], Lock] = {}


@contextmanager
def having(lanes: Iterable[int]) -> Iterator[None]:
    """Reserve the `lanes` with these numbers while the context lasts; first wait until they are free.

    Dask counts tasks and does not know lanes. A task of a campaign that was stopped, or a task that a campaign takes
    for lost, continues in its lane, while the resumed campaign may ask for the same lane.
    """
    with ExitStack() as stack:
        for lane in sorted(lanes):
            stack.enter_context(_PLACES.setdefault((get_worker().id, lane), Lock()))
        yield


def lanes_of_worker() -> Lanes:
    """The lanes of the worker that runs this task (`measure.cluster.nodes`)."""
    lanes: Lanes = getattr(get_worker(), "lanes", ONE_LANE)
    return lanes


def cores_of_worker() -> Collection[int]:
    """The processors of the machine whose worker runs this task: those of its lanes, and the others."""
    cores: Collection[int] = getattr(get_worker(), "cores", ())
    return cores or os.sched_getaffinity(0)


def measure_remotely(
    block: Block, canaries: Sequence[Canary], lane: int | None = None, browser: str = DEFAULT_BROWSER
) -> MeasuredBlock:
    """Measure `block` on this machine, or in a `lane` of it, with `browser`; `canaries` are those timed there so far.
    Raises EyelevelError."""
    warnings = list[str]()

    def notify(event: Event) -> None:
        if isinstance(event, Notice):
            warnings.append(event.text)

    # If a worker is killed, Dask removes its folder when the next worker starts there.
    with (
        having([] if lane is None else [lane]),
        tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="block-") as temporary,
    ):
        store = FolderStore(Path(temporary), earlier=block.earlier)
        if lane is None:
            with idle_priority(warn=warnings.append) as idle, Preparer(store, idle) as preparer:
                measure_block(block, store, Slot(canaries, browser=browser), notify, preparer)
        else:
            places = lanes_of_worker().places()
            one, folder_of = places[lane - 1], sharing_folders(Path(get_worker().local_directory), places)
            setting = LaneSetting(one, store.folder, canaries, browser=browser, sharing=folder_of[one])
            with running_lane(setting) as running:
                running.begin(block, store)
                while not isinstance(running.hear(store, notify), Ending):
                    pass
        evidence = tuple(
            {file.name: file.read_bytes() for file in (store.folder / row.folder).iterdir()} for row in store.rows
        )
        return MeasuredBlock(tuple(store.rows), evidence, tuple(warnings))
