"""Runs of a study that keeps a folder of each: made in blocks drawn from a seed, each until it counts.

<campaign>/<study>/<study>.json                              settings, versions, the machine
<campaign>/<study>/<site>/<network>/<protocol>/<n>/          a run that counts; its `run.json` says how it was made
<campaign>/<study>/<site>/<network>/<protocol>/rejected/     attempts that do not, and why
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import read_json, replacing_folder, write_atomically
from base.ownership import give_to_caller
from measure.campaign.attempt import REPLAY_FAILED, Circumstances
from measure.campaign.block import REPLAY_FAILURES_IN_A_ROW
from measure.campaign.plan import Block, Run, plan, seed_of
from measure.campaign.progress import in_words
from measure.campaign.results import GROWING, changes
from measure.campaign.slot import Slot
from measure.completeness import digest
from measure.host import affinity
from measure.host.machine import machine, versions
from measure.run import browser
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

RUN = "run.json"
REJECTED = "rejected"
# How often a run that does not count is made again before it is given up.
REPEATS = 3


@dataclass(frozen=True)
class Setting:
    """What is loaded, behind what, over what."""

    site: Site
    network: Network
    protocol: Protocol


@dataclass(frozen=True)
class Judged:
    """An attempt's verdict: why it does not count, or nothing; what a person may like to read of it in a line; and
    what `run.json` is to keep beside it."""

    reason: str
    told: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        return not self.reason


# Makes an attempt in a folder, with the seed of the network's losses, and judges it.
Maker = Callable[[Setting, int, Circumstances, Path], Judged]


@dataclass(frozen=True)
class Study:
    """What is to be made, and the folder of the campaign that it goes to.

    `settings` are those of the study's own; `captures` is whether it needs the programs that capture packets.
    """

    name: str
    campaign: Path
    sites: Mapping[str, Site]
    networks: Mapping[str, Network]
    protocols: Mapping[str, Protocol]
    runs: int
    seed: int
    make: Maker
    settings: Mapping[str, Any] = field(default_factory=dict)
    captures: bool = False

    @property
    def blocks(self) -> list[Block]:
        """All runs, in the order they are to be made."""
        return plan(self.sites, self.networks, list(self.protocols), self.runs, self.seed)

    def folder(self, run: Run) -> Path:
        """Where a run that counts lies."""
        return self.campaign / self.name / run.site / run.network / run.protocol / str(run.number)

    def setting(self, run: Run) -> Setting:
        """What `run` loads, behind what, over what."""
        return Setting(self.sites[run.site], self.networks[run.network], self.protocols[run.protocol])

    def document(self) -> dict[str, Any]:
        """All of it that results depend on."""
        return {
            "settings": {
                "seed": self.seed,
                "runs": self.runs,
                "repeats": REPEATS,
                **self.settings,
                "browser": browser.settings(),
                "sites": {name: {"url": site.url, "sha256": digest(site)} for name, site in self.sites.items()},
                "networks": {name: asdict(network) for name, network in self.networks.items()},
                "protocols": {name: asdict(protocol) for name, protocol in self.protocols.items()},
            },
            "versions": versions({one.server for one in self.protocols.values()}, capturing=self.captures),
            "machine": {**machine(), "cores": affinity.described(affinity.layout())},
            "begun_at": now_iso(),
        }


@dataclass(frozen=True)
class Watch:
    """Who is told of attempts: as one begins, as it ends (and whether it was the last), and of the machine."""

    begins: Callable[[Run, int], None]
    ends: Callable[[Run, Judged, bool], None]
    warns: Callable[[str], None]


def make_runs(study: Study, watch: Watch) -> list[Run]:
    """Make every run of `study` that is not there yet; returns those that were given up.

    Raises EyelevelError when it was begun otherwise, is being made by another process, or replays fail in a row.
    """
    given_up: list[Run] = []
    with _opened(study):
        for run in (run for block in study.blocks for run in block):
            _place(study, run)
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


def make_watched(study: Study, console: Console) -> list[Run]:
    """Make `study`, and tell of each attempt and of the time left; returns the runs that were given up."""
    planned = sum(len(block) for block in study.blocks)
    done = before = sum(counts(study.folder(run)) for block in study.blocks for run in block)
    began = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=planned, completed=done, left="")

        def begins(run: Run, attempt: int) -> None:
            again = f" (attempt {attempt})" if attempt > 1 else ""
            progress.update(task, description=f"{run}{again}")

        def ends(run: Run, judged: Judged, last: bool) -> None:
            nonlocal done
            done += judged.valid or last
            each_s = (time.monotonic() - began) / max(1, done - before)
            left = f"{in_words(each_s * (planned - done))} left" if done < planned else "done"
            progress.update(task, completed=done, left=left)
            told = judged.told if judged.valid else f"invalid: {judged.reason}{'; given up' if last else '; once more'}"
            line = f"[{done:{len(str(planned))}}/{planned}] {run}: {told} · {left}"
            console.print(line, markup=False, soft_wrap=True, style=None if judged.valid else "yellow")

        def warns(text: str) -> None:
            console.print(f"warning: {text}", markup=False, soft_wrap=True, style="yellow")

        return make_runs(study, Watch(begins, ends, warns))


def counts(folder: Path) -> bool:
    """Whether there is a run in `folder` that counts. Raises EyelevelError."""
    if not (folder / RUN).exists():
        return False
    try:
        return bool(json.loads((folder / RUN).read_text())["valid"])
    except (ValueError, KeyError, TypeError) as error:
        raise EyelevelError(f"{folder / RUN} is broken: {error!r}") from None


def runs_of(campaign: Path, study: str) -> list[tuple[Run, Path]]:
    """The runs of `study` in the folder of a campaign that count, and their folders, in the order of its document."""
    document = campaign / study / f"{study}.json"
    if not document.exists():
        return []
    settings = read_json(document)["settings"]
    found = []
    for site, network, protocol in product(*(settings[group] for group in GROWING)):
        folders = (campaign / study / site / network / protocol).glob("[0-9]*")
        numbers = sorted(int(folder.name) for folder in folders if counts(folder))
        runs = [Run(site, network, protocol, number) for number in numbers]
        found += [(run, campaign / study / site / network / protocol / str(run.number)) for run in runs]
    return found


def rejected_reasons(campaign: Path, study: str) -> list[str]:
    """Why attempts of `study` in the folder of a campaign do not count."""
    documents = (campaign / study).glob(f"*/*/*/{REJECTED}/[0-9]*/{RUN}")
    attempts = [read_json(document) for document in documents]
    return [attempt["reason"] for attempt in attempts if not attempt["valid"]]


def _kept(study: Study, run: Run, now: Circumstances) -> Judged:
    """Make an attempt at `run`, and put it where runs that count lie, or those that do not."""
    setting, rejected = study.setting(run), study.folder(run).parent / REJECTED
    number = 1 + len(list(rejected.glob(f"{run.number}-*")))
    seed = seed_of(run, study.seed) + number
    kept = rejected / f"{run.number}-{number}"
    with replacing_folder(kept) as folder:
        judged = study.make(setting, seed, now, folder)
        told = {"valid": judged.valid, "reason": judged.reason, "seed": seed, "network": asdict(setting.network)}
        told |= {"protocol": asdict(setting.protocol), "machine": now.machine, **judged.document}
        write_atomically(folder / RUN, json.dumps(told, indent=1) + "\n")
    give_to_caller(kept, study.campaign)
    _place(study, run)
    return judged


def _place(study: Study, run: Run) -> None:
    """Put an attempt at `run` that counts where those lie; also one of before, if that was ended just then."""
    counting = study.folder(run)
    rejected = counting.parent / REJECTED
    for kept in sorted(rejected.glob(f"{run.number}-*")):
        if counts(kept):
            kept.rename(counting)
            if not any(rejected.iterdir()):
                rejected.rmdir()


@contextmanager
def _opened(study: Study) -> Iterator[None]:
    """The study's folder with its document, and nobody else in it. Raises EyelevelError."""
    folder = study.campaign / study.name
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EyelevelError(f"{folder} is being measured by another process") from None
        document = folder / f"{study.name}.json"
        _settle(document, study.document())
        give_to_caller(document, study.campaign)
        yield
    finally:
        os.close(descriptor)


def _settle(path: Path, document: dict[str, Any]) -> None:
    """Keep `document`, with what was made before under other names. Raises EyelevelError when it differs."""
    if path.exists():
        old = read_json(path)
        for group in GROWING:
            document["settings"][group] = {**old["settings"][group], **document["settings"][group]}
        document["versions"] = {**old["versions"], **document["versions"]}
        if found := changes(old, document):
            raise EyelevelError(f"{path.parent} was begun otherwise: {'; '.join(found[:8])}; use another campaign name")
        document["settings"]["runs"] = max(old["settings"]["runs"], document["settings"]["runs"])
        document["begun_at"] = old["begun_at"]
    write_atomically(path, json.dumps(document, indent=1) + "\n")
