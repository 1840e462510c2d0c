"""The study: runs of every network and protocol in an order drawn from a seed, each until it counts."""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eyelevel.clock import now_iso
from eyelevel.errors import EyelevelError
from eyelevel.files import replacing_folder, write_atomically
from eyelevel.ownership import give_to_caller
from measure.campaign.attempt import REPLAY_FAILED, Circumstances
from measure.campaign.block import REPLAY_FAILURES_IN_A_ROW
from measure.campaign.plan import Block, Run, plan, seed_of
from measure.campaign.results import GROWING, changes
from measure.campaign.slot import Slot
from measure.completeness import digest
from measure.host import affinity
from measure.host.machine import machine, versions
from measure.run import browser
from measure.studies.packets import DOCUMENT, FOLDER, REJECTED, RUN, setting_folder
from measure.studies.packets.attempt import Judged, Setting, make
from measure.studies.packets.ping import ECHOES, TOLERANCE, TOLERANCE_MS
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

# How often a run that does not count is made again before it is given up.
REPEATS = 3


@dataclass(frozen=True)
class Study:
    """What is to be captured, and the folder of the campaign that it goes to."""

    campaign: Path
    site: Site
    networks: Mapping[str, Network]
    protocols: Mapping[str, Protocol]
    runs: int
    seed: int

    @property
    def blocks(self) -> list[Block]:
        """All runs, in the order they are to be made."""
        return plan([self.site.name], self.networks, list(self.protocols), self.runs, self.seed)

    def folder(self, run: Run) -> Path:
        """Where a run that counts lies."""
        return setting_folder(self.campaign, run.site, run.network, run.protocol) / str(run.number)

    def document(self) -> dict[str, Any]:
        """All of it that results depend on."""
        return {
            "settings": {
                "seed": self.seed,
                "runs": self.runs,
                "repeats": REPEATS,
                "ping": {"echoes": ECHOES, "tolerance_ms": TOLERANCE_MS, "tolerance": TOLERANCE},
                "browser": browser.settings(),
                "sites": {self.site.name: {"url": self.site.url, "sha256": digest(self.site)}},
                "networks": {name: asdict(network) for name, network in self.networks.items()},
                "protocols": {name: asdict(protocol) for name, protocol in self.protocols.items()},
            },
            "versions": versions({protocol.transport for protocol in self.protocols.values()}, capturing=True),
            "machine": {**machine(), "cores": affinity.described(affinity.layout())},
            "begun_at": now_iso(),
        }


def with_added_rtt(network: Network, delays_ms: Iterable[float]) -> dict[str, Network]:
    """`network` with each of `delays_ms` added to its round trip, by name: lte, lte+10ms, …"""
    named = [replace(network, name=f"{network.name}+{ms:g}ms") if ms else network for ms in delays_ms]
    grown = [replace(one, min_rtt_ms=one.min_rtt_ms + ms) for one, ms in zip(named, delays_ms, strict=True)]
    return {one.name: one for one in grown}


@dataclass(frozen=True)
class Watch:
    """Who is told of attempts: as one begins, as it ends, and of the machine."""

    begins: Callable[[Run, int], None]
    ends: Callable[[Run, Judged, bool], None]
    warns: Callable[[str], None]


def capture(study: Study, watch: Watch) -> list[Run]:
    """Make every run of `study` that is not there yet; returns those that were given up.

    Raises EyelevelError when it was begun otherwise, is being made by another process, or replays fail in a row.
    """
    given_up: list[Run] = []
    with _opened(study):
        slot, failures = Slot(), 0
        for number, block in enumerate(study.blocks, start=1):
            left = [run for run in block if not counts(study.folder(run))]
            now = slot.circumstances(number, watch.warns) if left else None
            for run in left:
                assert now
                for attempt in range(1, REPEATS + 2):
                    watch.begins(run, attempt)
                    judged = _kept(study, run, now)
                    watch.ends(run, judged, attempt > REPEATS)
                    failures = failures + 1 if judged.reason.startswith(f"{REPLAY_FAILED}:") else 0
                    if failures == REPLAY_FAILURES_IN_A_ROW:
                        raise EyelevelError(f"{failures} replays in a row failed, the last with: {judged.reason}")
                    if judged.valid:
                        break
                else:
                    given_up.append(run)
    return given_up


def counts(folder: Path) -> bool:
    """Whether there is a run in `folder` that counts."""
    return (folder / RUN).exists() and bool(json.loads((folder / RUN).read_text())["valid"])


def _kept(study: Study, run: Run, now: Circumstances) -> Judged:
    """Make an attempt at `run`, and put it where runs that count lie, or those that do not."""
    counting = study.folder(run)
    rejected = counting.parent / REJECTED
    number = 1 + len(list(rejected.glob(f"{run.number}-*")))
    with replacing_folder(rejected / f"{run.number}-{number}") as folder:
        setting = Setting(study.site, study.networks[run.network], study.protocols[run.protocol])
        judged = make(setting, seed_of(run, study.seed) + number, now, folder)
    kept = rejected / f"{run.number}-{number}"
    if judged.valid:
        kept = kept.rename(counting)
        if not any(rejected.iterdir()):
            rejected.rmdir()
    give_to_caller(kept, study.campaign)
    return judged


@contextmanager
def _opened(study: Study) -> Iterator[None]:
    """The study's folder with its document, and nobody else in it. Raises EyelevelError."""
    folder = study.campaign / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EyelevelError(f"{folder} is being measured by another process") from None
        _settle(folder / DOCUMENT, study.document())
        give_to_caller(folder / DOCUMENT, study.campaign)
        yield
    finally:
        os.close(descriptor)


def _settle(path: Path, document: dict[str, Any]) -> None:
    """Keep `document`, with what was captured before under other names. Raises EyelevelError when it differs."""
    if path.exists():
        old: dict[str, Any] = json.loads(path.read_text())
        for group in GROWING:
            document["settings"][group] = {**old["settings"][group], **document["settings"][group]}
        document["versions"] = {**old["versions"], **document["versions"]}
        if found := changes(old, document):
            raise EyelevelError(f"{path.parent} was begun otherwise: {'; '.join(found[:8])}; use another campaign name")
        document["settings"]["runs"] = max(old["settings"]["runs"], document["settings"]["runs"])
        document["begun_at"] = old["begun_at"]
    write_atomically(path, json.dumps(document, indent=1) + "\n")


def total(blocks: Sequence[Block]) -> int:
    """How many runs there are in `blocks`."""
    return sum(len(block) for block in blocks)
