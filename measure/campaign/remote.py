"""The tasks of a Dask cluster's worker: it is looked at before it is given work, and measures a block at a time.

A block is measured into a temporary folder on the worker's machine, and its evidence travels back.
Nothing here knows of the scheduler.
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
from measure.campaign.preparer import Preparer
from measure.campaign.slot import Slot, machine_name
from measure.campaign.store import FolderStore
from measure.host.canary import Canary
from measure.host.idle_priority import idle_priority
from measure.host.lanes import ONE_LANE, Lanes, working_on
from measure.host.machine import versions
from measure.sites.completeness import digest
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Introduction:
    """A worker's machine: its name, the versions of all programs, and the fingerprints of its sites.

    `fault` is why it cannot measure, if it cannot. `keep_validation` keeps in a campaign's folder what was measured of
    networks and protocols there, passed or not. `lanes`: how many blocks it measures at once, and where.
    """

    name: str
    versions: Mapping[str, str]
    sites: Mapping[str, str]
    fault: str | None = None
    keep_validation: Callable[[Path], None] | None = None
    lanes: Lanes = ONE_LANE


# The fault of networks and protocols, if they have one, and what keeps all that was measured in a campaign's folder.
MeasuredSettings = tuple[str | None, Callable[[Path], None]]
# Measures networks and protocols, in a folder for what it needs meanwhile.
Validation = Callable[[Path, Sequence[Network], Sequence[Protocol]], MeasuredSettings]


@dataclass(frozen=True)
class Question:
    """The requirements on a worker: the sites' folders, the networks and protocols, the browsers, the programs that
    capture packets if `captures`, and those of `servers` and `further_programs` (`measure.host.machine.versions`).

    `validate`: measures its networks and protocols before, a function of a module; None trusts them.
    """

    sites: Mapping[str, Path]
    networks: tuple[Network, ...]
    protocols: tuple[Protocol, ...]
    browsers: tuple[str, ...]
    captures: bool
    servers: frozenset[str] = frozenset()
    further_programs: Mapping[str, str] = field(default_factory=dict)
    validate: Validation | None = None


@dataclass(frozen=True)
class MeasuredBlock:
    """A block that a worker measured: its rows in order, all evidence (the files of each row's folder by their names),
    and warnings."""

    rows: tuple[Row, ...]
    evidence: tuple[Mapping[str, bytes], ...]
    warnings: tuple[str, ...]


def introduce(question: Question) -> Introduction:
    """Look at this machine before it is given work: what it is, and whether it can measure at all."""
    try:
        require_browsing("a worker")
        lanes = lanes_of_worker()
        if get_worker().state.nthreads != lanes.count:
            raise EyelevelError(
                "one worker is one place to measure, and this one has several threads; start it by 'eyelevel worker'"
            )
        sites = {name: digest(Site.load(folder)) for name, folder in question.sites.items()}
        programs = versions(
            question.servers, question.browsers, capturing=question.captures, further=question.further_programs
        )
        introduction = Introduction(machine_name(), programs, sites, lanes=lanes)
        if question.validate is None:
            return introduction
        fault, keep = validation_of(question.validate, question.networks, question.protocols)
        return replace(introduction, fault=fault, keep_validation=keep)
    except EyelevelError as error:
        return Introduction(machine_name(), {}, {}, str(error))


def validation_of(validate: Validation, networks: Sequence[Network], protocols: Sequence[Protocol]) -> MeasuredSettings:
    """The result of `validate` on this machine, with all its cores, while nothing is measured in its lanes."""
    with (
        having(lane.number for lane in lanes_of_worker().lanes),
        working_on(cores_of_worker()),
        tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="validate-") as temporary,
    ):
        return validate(Path(temporary), networks, protocols)


# The locks of each worker of this process and each of its lanes, held by the task that measures there.
_PLACES: dict[tuple[str, int], Lock] = {}


@contextmanager
def having(lanes: Iterable[int]) -> Iterator[None]:
    """Have the `lanes` with these numbers to oneself while the block runs, and wait for them before.

    Dask counts tasks, and knows of no lanes. A task that a campaign has left running when it was stopped, or takes for
    lost, goes on in its lane, while the same campaign, begun again, may ask for that lane.
    """
    with ExitStack() as stack:
        for lane in sorted(lanes):
            stack.enter_context(_PLACES.setdefault((get_worker().id, lane), Lock()))
        yield


def lanes_of_worker() -> Lanes:
    """The lanes of the worker that this is a task of (`measure.cluster.nodes`)."""
    lanes: Lanes = getattr(get_worker(), "lanes", ONE_LANE)
    return lanes


def cores_of_worker() -> Collection[int]:
    """The processors of the machine of the worker that this is a task of: those of its lanes, and those beside them."""
    cores: Collection[int] = getattr(get_worker(), "cores", ())
    return cores or os.sched_getaffinity(0)


def measure_remotely(
    block: Block, canaries: Sequence[Canary], lane: int | None = None, browser: str = DEFAULT_BROWSER
) -> MeasuredBlock:
    """Measure `block` on this machine, or in a `lane` of it, whose canaries so far, in `browser`, are `canaries`.
    Raises EyelevelError."""
    warnings = list[str]()

    def notify(event: Event) -> None:
        if isinstance(event, Notice):
            warnings.append(event.text)

    # Dask removes the folder of a worker that was killed when the next one starts there.
    with (
        having([] if lane is None else [lane]),
        tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="block-") as temporary,
    ):
        store = FolderStore(Path(temporary), earlier=block.earlier)
        if lane is None:
            with idle_priority() as idle, Preparer(store, idle) as preparer:
                measure_block(block, store, Slot(canaries, browser=browser), notify, preparer)
        else:
            one = next(one for one in lanes_of_worker().lanes if one.number == lane)
            with running_lane(LaneSetting(one, store.folder, canaries, browser=browser)) as running:
                running.begin(block, store)
                while not isinstance(running.hear(store, notify), Ending):
                    pass
        evidence = tuple(
            {file.name: file.read_bytes() for file in (store.folder / row.folder).iterdir()} for row in store.rows
        )
        return MeasuredBlock(tuple(store.rows), evidence, tuple(warnings))
