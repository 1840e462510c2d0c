"""Simulated workers, which carry out the runs of `made_up`. Several share a process.

They are workers of Dask, each with its own connections and its own thread. `simulate` lists the parts of a real worker
that are left out.
"""

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
# Each worker monitors its machine; here they all share one.
RARELY = {"distributed.admin.system-monitor.interval": "60s", "distributed.worker.memory.monitor-interval": "60s"}


def run_group(scheduler: str, number: int, size: int, folder: Path, joined: Callable[[], None]) -> None:
    """Run `size` workers of this `scheduler` until it is gone, with their files in `folder`; `number` is the group's.

    Calls `joined` when the scheduler knows all of them.
    """
    logging.disable(logging.ERROR)  # each arrival would log many lines
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
                memory_limit=0,  # they share a process, and so its memory
            )
            for place in range(size)
        ]
        await asyncio.gather(*workers)
        joined()
        nodes: list[Any] = list(workers)
        await asyncio.gather(*(node.finished() for node in nodes))


def simulate() -> None:
    """Replace everything that needs a measuring machine: namespaces, a browser, programs and their versions.

    Canaries always take the same time. Sites are read once for all workers of a process.
    """
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
    """The digest that identifies the site in `folder`."""
    return completeness.digest(Site.load(folder))
