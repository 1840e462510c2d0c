"""What a worker of a Dask cluster does: it is looked at before it is given work, and measures a block at a time.

A block is measured into a temporary folder on the worker's machine, and its evidence travels back.
Nothing here knows of the scheduler.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from distributed import get_worker

from base.errors import EyelevelError
from base.privileges import require_root
from measure.campaign.block import Block, ReplayFailures, measure_block
from measure.campaign.plan import Run
from measure.campaign.results import Row, counted, emptied, is_machines_fault, is_over_time, run_folder
from measure.campaign.slot import Slot, machine_name
from measure.completeness import digest
from measure.host.canary import Canary
from measure.host.machine import machine, versions
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
    """What a worker is looked at for: the sites' folders, the networks and protocols, and servers.

    `validated`: whether it is to be held to `make validate`'s quick form.
    """

    sites: Mapping[str, Path]
    networks: tuple[Network, ...]
    protocols: tuple[Protocol, ...]
    servers: tuple[str, ...]
    validated: bool


@dataclass(frozen=True)
class Measured:
    """A block that a worker measured: its rows in order, all evidence (the files of each row's folder by their names),
    and warnings."""

    rows: tuple[Row, ...]
    evidence: tuple[Mapping[str, bytes], ...]
    warnings: tuple[str, ...]


class Travelling:
    """A folder that takes a block's attempts in the place of the campaign's (see `measure.campaign.block.Store`)."""

    def __init__(self, folder: Path, tried: Mapping[Run, tuple[int, int]]) -> None:
        """`tried`: how often each run had been tried before, and how often it had failed (`Results.failures`)."""
        self.folder = folder
        self.rows: list[Row] = []
        self._attempts = Counter({run: attempts for run, (attempts, _) in tried.items()})
        self._failures = Counter({run: failures for run, (_, failures) in tried.items()})
        self._valid: set[Run] = set()

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        return self._attempts[run]

    def failures(self, run: Run) -> int:
        """How often `run` has been tried and did not count, for which it may be given up."""
        own = [row for row in self.rows if row.of == run]
        return self._failures[run] + counted(len(own), sum(map(is_machines_fault, own)), sum(map(is_over_time, own)))

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""
        return run in self._valid

    def run_folder(self, run: Run, attempt: int) -> Path:
        """Where an attempt's evidence lies; the same place as in the campaign."""
        return run_folder(self.folder, run, attempt)

    def empty_run_folder(self, run: Run, attempt: int) -> Path:
        """The same, made anew."""
        return emptied(self.run_folder(run, attempt))

    def append(self, row: Row) -> None:
        """Add the row of an attempt."""
        self.rows.append(row)
        self._attempts[row.of] += 1
        if row.valid:
            self._valid.add(row.of)


class Heard:
    """Takes note of warnings, for whoever watches the campaign (see `measure.campaign.block.Watcher`)."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def begins(self, run: Run, attempt: int) -> None:
        """Nobody watches here."""

    def ends(self, run: Run, row: Row, *, given_up: bool) -> None:
        """Nobody watches here."""


def introduce(question: Question) -> Introduction:
    """Look at this machine before it is given work: what it is, and whether it can measure at all."""
    try:
        require_root("a worker")
        if get_worker().state.nthreads != 1:
            raise EyelevelError("one worker is one place to measure; start it with --nthreads 1")
        sites = {name: digest(Site.load(folder)) for name, folder in question.sites.items()}
        known = Introduction(machine_name(), machine(), versions(question.servers), sites)
        return validated(known, question) if question.validated else known
    except EyelevelError as error:
        return Introduction(machine_name(), {}, {}, {}, str(error))


def validated(known: Introduction, question: Question) -> Introduction:
    """`known` of this machine, held to the quick form of `make validate`, with what that measured."""
    fault = None
    with tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="validate-") as temporary:
        try:
            validate_campaign(Path(temporary), question.networks, question.protocols)
        except EyelevelError as error:
            fault = f"make validate fails there: {error}"
        return replace(known, fault=fault, validation=kept_entries(Path(temporary)))


def measure_remotely(block: Block, tried: Mapping[Run, tuple[int, int]], canaries: Sequence[Canary]) -> Measured:
    """Measure `block` on this machine, whose canaries so far are `canaries`. Raises EyelevelError."""
    heard = Heard()
    # Dask removes the folder of a worker that was killed when the next one starts there.
    with tempfile.TemporaryDirectory(dir=get_worker().local_directory, prefix="block-") as temporary:
        store = Travelling(Path(temporary), tried)
        slot = Slot(canaries)
        circumstances = partial(slot.circumstances, block.number, heard.warnings.append)
        measure_block(block, store, circumstances, ReplayFailures(), heard)
        evidence = tuple(
            {file.name: file.read_bytes() for file in (store.folder / row.folder).iterdir()} for row in store.rows
        )
        return Measured(tuple(store.rows), evidence, tuple(heard.warnings))
