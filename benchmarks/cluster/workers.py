"""Simulated workers, some in one process: Dask's own, each with its connections and its thread, on which runs are made
up (`made_up`). `simulate` says which parts of a true worker are left out."""

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask
from distributed import get_worker

from benchmarks.cluster.made_up import VERSIONS
from measure.campaign import remote, slot
from measure.cluster.addresses import security_of
from measure.cluster.keys import Role
from measure.cluster.nodes import NOTHING_ELSE, SilentWorker
from measure.host.canary import Canary
from measure.sites import completeness
from record.site import Site

LOOPBACK = "127.0.0.1"
# Each worker watches its machine, which is the same one for all here.
RARELY = {"distributed.admin.system-monitor.interval": "60s", "distributed.worker.memory.monitor-interval": "60s"}


def run_group(scheduler: str, number: int, size: int, folder: Path, joined: Callable[[], None]) -> None:
    """Be `size` workers of that `scheduler` until it is gone, with their files in `folder`; `number` is the group's.
    Calls `joined` when all of them are known to it."""
    logging.disable(logging.ERROR)  # each arrival, in many lines
    simulate()
    asyncio.run(_run_group(scheduler, number, size, folder, joined))


async def _run_group(scheduler: str, number: int, size: int, folder: Path, joined: Callable[[], None]) -> None:
    security = security_of(Role.WORKER, scheduler)
    with dask.config.set({"temporary-directory": str(folder), **NOTHING_ELSE, **RARELY}):
        workers = [
            SilentWorker(
                scheduler,
                nthreads=1,
                name=f"machine-{number}-{place}",
                host=LOOPBACK,
                protocol=scheduler.partition("://")[0],
                security=security,
                memory_limit=0,  # they share a process, whose memory is that of all
            )
            for place in range(size)
        ]
        await asyncio.gather(*workers)
        joined()
        nodes: list[Any] = list(workers)
        await asyncio.gather(*(node.finished() for node in nodes))


def simulate() -> None:
    """Leave out what measuring needs of a machine: namespaces, a browser, programs and their versions. Canaries always
    take the same time. Sites are read once for all workers of a process."""
    replacements = {
        "require_browsing": lambda activity: None,
        "versions": lambda *_, **__: VERSIONS,
        "digest": lambda site: digest_of(site.folder),
        "machine_name": lambda: str(get_worker().name),
        "time_canary": lambda browser: Canary(50.0, 800.0),
    }
    for module in (remote, slot):
        for name, replacement in replacements.items():
            if hasattr(module, name):
                setattr(module, name, replacement)


@cache
def digest_of(folder: Path) -> str:
    """The digest by which the site in `folder` is known."""
    return completeness.digest(Site.load(folder))
