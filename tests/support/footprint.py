"""The resources that a campaign uses besides its results, measured before each of its blocks.

At that moment, at most one run is prepared and none is under way. As a program, this module measures a grid's page RUNS
times over each of two protocols, and writes a line of JSON each time.
"""

import json
import os
import sys
import tempfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from base.places import cache_dir
from dataset.table import Cell
from eyelevel.study_command import study_command
from studies.grid import STUDY
from studies.study import Measurement, Request
from support.leaks import MARK, pids_marked

KINDS = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")


@dataclass(frozen=True)
class Footprint:
    """The resources of a campaign's processes.

    `descriptors` and `memory_bytes` (resident) belong to the measuring process, and so do the `mounts` that it sees.
    `namespaces` are those with at least one of the campaign's processes, `temporary_files` all files in its temporary
    folder, and `cached_files` those in the cache. `cgroups` and `kernel_networks` are those of the whole machine. The
    latter are network namespaces, including those without processes; None if this process is not root.
    """

    processes: int
    descriptors: int
    memory_bytes: int
    mounts: int
    namespaces: int
    temporary_files: int
    cached_files: int
    cgroups: int
    kernel_networks: int | None


def look() -> Footprint:
    """The footprint of this process and of all processes with the mark of its test session."""
    pids = {*pids_marked(f"{MARK}={os.environ[MARK]}"), os.getpid()}
    namespaces = set()
    for pid in pids:
        with suppress(OSError):  # the process may have ended
            namespaces |= {Path(f"/proc/{pid}/ns/{kind}").readlink() for kind in KINDS}
    return Footprint(
        processes=len(pids),
        descriptors=len([*Path("/proc/self/fd").iterdir()]),
        memory_bytes=psutil.Process().memory_info().rss,
        mounts=len(Path("/proc/self/mountinfo").read_text().splitlines()),
        namespaces=len(namespaces),
        temporary_files=_files_in(Path(tempfile.gettempdir())),
        cached_files=_files_in(cache_dir() / "grid") + len([*cache_dir().iterdir()]),
        cgroups=max(int(line.split()[2]) for line in Path("/proc/cgroups").read_text().splitlines()[1:]),
        kernel_networks=_kernel_networks(),
    )


def _files_in(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*"))


def _kernel_networks() -> int | None:
    try:
        slabs = Path("/proc/slabinfo").read_text().splitlines()
    except PermissionError:
        return None
    return next((int(line.split()[1]) for line in slabs if line.startswith("net_namespace ")), None)


def main(results: Path, runs: int, output: Path) -> None:
    """Measure a page of 5 KB `runs` times over each of two protocols into `results`."""

    def watched(request: Request) -> Measurement:
        measurement = STUDY.campaign(request)

        def enough(folder: Path) -> Collection[Cell]:
            with output.open("a") as file:
                file.write(json.dumps(asdict(look())) + "\n")
            return measurement.enough(folder)

        return replace(measurement, enough=enough)

    options = ["--preset", "controlled", "--counts", "1", "--sizes", "5KB", "--net", "controlled-clean"]
    options += ["--proto", "tcp+,quic", "--runs", str(runs), "--no-validate", "--plain", "--results", str(results)]
    study_command(replace(STUDY, campaign=watched)).main(options, standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
