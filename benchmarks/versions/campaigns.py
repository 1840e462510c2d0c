"""Makes pairs of campaigns with two versions of this project, in turn, on one machine.

The folder of a comparison contains

versions.json        the plan: `Plan`
sites/               the sites, the same files for both versions
checkouts/           a checkout of each version (git worktrees), while campaigns are made
campaigns/03-before  a campaign of one block of each site and network; likewise 03-after
logs/03-before.txt   the campaign's output
made/03-before.json  written when the campaign is complete: its version, and how long it took
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from random import Random

from base.errors import EyelevelError
from base.files import locked, read_json, replacing_folder, write_json
from base.places import PROJECT, tool
from base.processes import last_line_of, stopped_at_the_end
from base.structure import structured
from dataset.table import RUNS, read_document
from measure.host.exclusive import measuring_alone
from record import collection
from record.formats import name_of, read_recording
from record.names import require_site_name
from record.site import write_site

BEFORE, AFTER = VERSIONS = ("before", "after")
PLAN = "versions.json"


@dataclass(frozen=True)
class Plan:
    """The plan of a comparison: the commits of both versions, what they measure, and the number of pairs of
    campaigns."""

    before: str
    after: str
    sites: tuple[str, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]
    seed: int
    blocks: int

    def commit(self, version: str) -> str:
        """The commit of BEFORE or AFTER."""
        return self.before if version == BEFORE else self.after


@dataclass(frozen=True)
class Turn:
    """One campaign of a pair (counted from 1), made by one version."""

    pair: int
    version: str

    @property
    def name(self) -> str:
        """The name of the campaign."""
        return f"{self.pair:02}-{self.version}"


def read_plan(folder: Path) -> Plan | None:
    """The plan of the comparison in `folder`, None when there is none. Raises EyelevelError."""
    path = folder / PLAN
    return structured(read_json(path), Plan, f"{path}: ") if path.exists() else None


def keep_plan(plan: Plan, folder: Path) -> None:
    """Write `plan` to `folder`.

    Raises EyelevelError when the comparison in `folder` has another plan; only its number of blocks may grow.
    """
    first = read_plan(folder)
    if first is None and folder.is_dir() and any(folder.iterdir()):
        raise EyelevelError(f"{folder} is there already, and is no comparison of versions; choose another folder")
    for name, value in asdict(first or plan).items():
        if name != "blocks" and value != getattr(plan, name):
            raise EyelevelError(f"{folder} was begun with other {name}: {value}; give the same, or another folder")
    if first and plan.blocks < first.blocks:
        raise EyelevelError(f"{folder} was begun with {first.blocks} blocks; give as many or more")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / PLAN, asdict(plan))


def turns(plan: Plan) -> list[Turn]:
    """All campaigns in their order. In every two pairs, each version begins one; the seed decides which."""
    order = []
    for pair in range(1, plan.blocks + 1):
        first = Random(f"{plan.seed}/{(pair - 1) // 2}").sample(VERSIONS, 2)
        order += [Turn(pair, version) for version in (first if pair % 2 else first[::-1])]
    return order


def is_made(turn: Turn, folder: Path) -> bool:
    """Whether a campaign of the comparison in `folder` was completed."""
    return record_of(turn, folder).exists()


def record_of(turn: Turn, folder: Path) -> Path:
    """The file that records how a campaign of the comparison in `folder` was made."""
    return folder / "made" / f"{turn.name}.json"


def campaign_of(turn: Turn, folder: Path) -> Path:
    """The folder of a campaign of the comparison in `folder`."""
    return folder / "campaigns" / turn.name


def make_all(plan: Plan, folder: Path, source: Mapping[str, Path]) -> Iterator[tuple[Turn, float]]:
    """Make the missing campaigns of `plan` in `folder`; yields each with its duration in seconds.

    `source`: the repository that has the commit of each version. Raises EyelevelError.
    """
    for name in ("logs", "made", "campaigns"):
        (folder / name).mkdir(exist_ok=True)
    with (
        locked(folder, f"another process makes the comparison in {folder}"),
        measuring_alone(),
        checkout(source[BEFORE], plan.before, folder / "checkouts" / BEFORE) as before,
        checkout(source[AFTER], plan.after, folder / "checkouts" / AFTER) as after,
    ):
        for site, place in product(plan.sites, (before, after)):
            shutil.copytree(folder / "sites" / site, place / "sites" / site)
        for turn in turns(plan):
            if not is_made(turn, folder):
                began_s = time.monotonic()
                make(turn, plan, folder, before if turn.version == BEFORE else after)
                yield turn, time.monotonic() - began_s


def make(turn: Turn, plan: Plan, folder: Path, place: Path) -> None:
    """Make or resume a campaign with the version that is checked out in `place`. Raises EyelevelError."""
    is_new = not campaign_of(turn, folder).exists()
    options = {
        "sites": ",".join(plan.sites),
        "net": ",".join(plan.networks),
        "proto": ",".join(plan.protocols),
        "runs": "1",
        "seed": str(plan.seed + turn.pair),
        "campaign": turn.name,
        "results": str(folder / "campaigns"),
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    # The campaign is ended by SIGTERM when this process ends for any reason. Only old options are used, since a version
    # may lack newer ones.
    command = [str(tool("setpriv")), "--pdeathsig", "TERM", sys.executable, "-m", "eyelevel", "campaign", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(place)}
    log = folder / "logs" / f"{turn.name}.txt"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--no-validate", "--plain"],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C on the terminal is for this process, which ends it
        )
        with stopped_at_the_end(process):
            status = process.wait()
    if status:
        raise EyelevelError(f"the campaign {turn.name} ended with status {status}: {last_line_of(log.read_text())}")
    document = read_document(campaign_of(turn, folder))
    measured, expected = document.machine.get("testbed") if document else None, version_in(place)
    if document is None or measured != expected:
        raise EyelevelError(f"{campaign_of(turn, folder)} was measured by {measured}, and should be by {expected}")
    begun = datetime.strptime(document.begun_at, "%Y-%m-%dT%H:%M:%S%z")
    seconds = (campaign_of(turn, folder) / RUNS).stat().st_mtime - begun.timestamp()
    write_json(record_of(turn, folder), {"version": measured, "seconds": seconds if is_new else None})


def sites_named(texts: Sequence[str]) -> dict[str, Path | None]:
    """The names of the given sites, each with the path of its recording if it was given by path (with a slash).

    Raises EyelevelError.
    """
    paths = [Path(text) if "/" in text else None for text in texts]
    return {require_site_name(name_of(path) if path else text): path for text, path in zip(texts, paths, strict=True)}


def copy_sites(sites: Mapping[str, Path | None], folder: Path) -> None:
    """Copy or import `sites` into `folder`/sites, from recordings by their paths; existing ones stay.

    Raises EyelevelError.
    """
    for name, recording in sites.items():
        place = folder / "sites" / name
        if place.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if recording:
            write_site(read_recording(recording), place)
            continue
        site = collection.choose_site(name)
        with replacing_folder(place) as new:
            shutil.copytree(site.folder, new, dirs_exist_ok=True)


def resolve(version: str) -> tuple[Path, str]:
    """The repository that contains `version`, and the full name of its commit.

    `version` is a commit of this repository, or the folder of a checkout. Raises EyelevelError, also for a checkout
    with changes, which no commit describes.
    """
    path = Path(version)
    is_checkout = path.is_dir() and (path / ".git").exists()
    repository = path.resolve() if is_checkout else PROJECT
    if is_checkout and git(repository, "status", "--porcelain"):
        raise EyelevelError(f"{version} has changes that are not committed; commit them")
    return repository, git(repository, "rev-parse", "--verify", f"{'HEAD' if is_checkout else version}^{{commit}}")


@contextmanager
def checkout(repository: Path, commit: str, place: Path) -> Iterator[Path]:
    """Check out `commit` into `place` for the duration of the block. A checkout that a killed process left there is
    removed first."""
    remove_checkout(repository, place)
    git(repository, "worktree", "add", "--detach", "--force", str(place), commit)
    try:
        # Programs in a jail cannot write compiled files, and would compile in every run.
        subprocess.run([sys.executable, "-m", "compileall", "-qq", place], check=False)
        yield place
    finally:
        remove_checkout(repository, place)


def remove_checkout(repository: Path, place: Path) -> None:
    """Remove a checkout, if it exists, and git's record of it."""
    if place.exists():
        with suppress(EyelevelError):  # an incomplete checkout, of which git has no record
            git(repository, "worktree", "remove", "--force", "--force", str(place))
        shutil.rmtree(place, ignore_errors=True)


def version_in(place: Path) -> str:
    """The version of the code in `place`, as campaigns record it (`measure.host.machine`)."""
    return git(place, "describe", "--always", "--dirty")


def git(repository: Path, *arguments: str) -> str:
    """The output of git in `repository`. Raises EyelevelError."""
    completed = subprocess.run(
        ["git", "-C", repository, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if completed.returncode:
        raise EyelevelError(f"git {' '.join(arguments)} in {repository}: {last_line_of(completed.stderr)}")
    return completed.stdout.strip()
