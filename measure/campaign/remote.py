"""What a worker of a Dask cluster does: it is looked at before it is given work, and measures a block at a time.

A block is measured into a temporary folder on the worker's machine, and its evidence travels back.
Nothing here knows of the scheduler.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from distributed import get_worker

from base.errors import EyelevelError
from base.privileges import require_root
from measure.campaign.block import Block, ReplayFailures, measure_block
from measure.campaign.slot import Slot, machine_name
from measure.campaign.store import FolderStore
from measure.completeness import digest
from measure.host.canary import Canary
from measure.host.machine import machine, versions
from measure.table import Row, Run
from measure.validate.record import ValidationEntry, kept_entries, validate_campaign
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Introduction:
    """A worker's machine: its name, what it is, the versions of all programs, and the fingerprints of its sites.

    `fault` is why it cannot measure, if it cannot. `validation` is what was measured of networks and protocols there
    (`measure.validate.record`), passed or not.
    """

    name: str
    machine: Mapping[str, object]
    versions: Mapping[str, str]
    sites: Mapping[str, str]
    fault: str | None = None
    validation: Sequence[ValidationEntry] = ()


@dataclass(frozen=True)
class Question:
    """What a worker must have: the sites' folders, the networks and protocols, servers, the browser,
    and whether the programs that capture packets.

    `validated`: whether its networks and protocols are measured before, by `make validate`'s quick form.
    """

    sites: Mapping[str, Path]
    networks: tuple[Network, ...]
    protocols: tuple[Protocol, ...]
    servers: tuple[str, ...]
    browser: str
    captures: bool
    validated: bool


@dataclass(frozen=True)
class MeasuredBlock:
    """A block that a worker measured: its rows in order, all evidence (the files of each row's folder by their names),
    and warnings."""

    rows: tuple[Row, ...]
    evidence: tuple[Mapping[str, bytes], ...]
    warnings: tuple[str, ...]


class Warnings:
    """Collects warnings for whoever displays the campaign; an observer of a block that displays nothing."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def begins(self, run: Run, attempt: int) -> None:
        """Nothing is displayed here."""

    def ends(self, run: Run, row: Row, *, given_up: bool) -> None:
        """Nothing is displayed here."""


def introduce(question: Question) -> Introduction:
    """Look at this machine before it is given work: what it is, and whether it can measure at all."""
    try:
        require_root("a worker")
        if get_worker().state.nthreads != 1:
            raise EyelevelError("one worker is one place to measure; start it with --nthreads 1")
        sites = {name: digest(Site.load(folder)) for name, folder in question.sites.items()}
        introduction = Introduction(
            machine_name(), machine(), versions(question.servers, question.browser, capturing=question.captures), sites
        )
        return validated(introduction, question) if question.validated else introduction
    except EyelevelError as error:
        return Introduction(machine_name(), {}, {}, {}, str(error))


def validated(introduction: Introduction, question: Question) -> Introduction:
    """`introduction` of this machine, held to the quick form of `make validate`, with what that measured."""
    fault = None
    with tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="validate-") as temporary:
        try:
            validate_campaign(Path(temporary), question.networks, question.protocols)
        except EyelevelError as error:
            fault = f"make validate fails there: {error}"
        return replace(introduction, fault=fault, validation=kept_entries(Path(temporary)))


def measure_remotely(block: Block, earlier: Mapping[Run, tuple[int, int]], canaries: Sequence[Canary]) -> MeasuredBlock:
    """Measure `block` on this machine, whose canaries so far are `canaries`; `earlier` as in `FolderStore`.

    Raises EyelevelError.
    """
    warnings = Warnings()
    # Dask removes the folder of a worker that was killed when the next one starts there.
    with tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="block-") as temporary:
        store = FolderStore(Path(temporary), earlier)
        slot = Slot(canaries)
        circumstances = partial(slot.circumstances, block.number, warnings.texts.append)
        measure_block(block, store, circumstances, ReplayFailures(), warnings)
        evidence = tuple(
            {file.name: file.read_bytes() for file in (store.folder / row.folder).iterdir()} for row in store.rows
        )
        return MeasuredBlock(tuple(store.rows), evidence, tuple(warnings.texts))
