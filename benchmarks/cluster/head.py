"""The head in a separate process: the engine as `eyelevel campaign` calls it, with a campaign of simulated runs."""

import cProfile
import json
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.cluster.made_up import MadeUpRuns, campaign
from measure.campaign import cluster
from measure.campaign.cluster import Cluster
from measure.campaign.engine import measure
from measure.campaign.progress import ProgressDisplay

PATH = click.Path(path_type=Path)
ACCOUNT = "head.json"


@click.command()
@click.argument("scheduler")
@click.argument("folder", type=PATH)
@click.option("--sites", type=int, required=True)
@click.option("--runs", type=int, required=True)
@click.option("--speed", type=float, required=True)
@click.option("--evidence-share", type=float, required=True)
@click.option("--profile", type=PATH)
def main(
    scheduler: str, folder: Path, sites: int, runs: int, speed: float, evidence_share: float, profile: Path | None
) -> None:
    """Measure a campaign of made-up runs into FOLDER on the workers of SCHEDULER; store its costs next to FOLDER."""
    measured = campaign(folder, sites, runs, MadeUpRuns(speed=speed, evidence_share=evidence_share))
    syncs = count_syncs()
    profiler = cProfile.Profile() if profile else None
    begun = time.time()
    with (folder.parent / "head.log").open("w") as log:
        display = partial(ProgressDisplay, Console(file=log, width=200), plain=True)
        if profiler:
            profiler.enable()
        try:
            measure(measured, display, Cluster(scheduler, measured).measure)
        finally:
            if profiler:
                profiler.disable()
                profiler.dump_stats(str(profile))
    used = resource.getrusage(resource.RUSAGE_SELF)
    written = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    account = {
        "begun": begun,
        "ended": time.time(),
        "cpu_s": used.ru_utime + used.ru_stime,
        "memory_bytes": 1024 * used.ru_maxrss,
        "written_bytes": int(written["wchar"]),
        "writes": int(written["syscw"]),
        "syncs": syncs[0],
    }
    (folder.parent / ACCOUNT).write_text(json.dumps(account))


def count_syncs() -> list[int]:
    """A list with one number: how often this process has waited for the disk from now on."""
    count = [0]

    def counting(synchronise: Callable[[Any], None]) -> Callable[[Any], None]:
        def counted(what: Any) -> None:
            count[0] += 1
            synchronise(what)

        return counted

    # The functions are looked up by name, since an older version may not have both.
    for module, name in ((os, "fsync"), (cluster, "sync_file_system")):
        if synchronise := getattr(module, name, None):
            setattr(module, name, counting(synchronise))
    return count


if __name__ == "__main__":
    main()
