"""A cluster's scheduler and workers: Dask processes, each of which listens at one port of the given address.

They have no dashboard and no HTTP server. A worker has no nanny (Dask's process that restarts a worker), since it
would open one more port through which others can run programs.
"""

import asyncio
import os
import signal
import stat
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import dask
from distributed import Scheduler, Worker
from distributed.comm.core import connect
from distributed.core import Server
from distributed.security import Security
from distributed.utils import get_ip

from base.errors import EyelevelError
from base.processes import last_line_of
from measure.cluster.addresses import bracketed, security_of
from measure.cluster.keys import Role
from measure.host.lanes import ONE_LANE, Lanes, cores_beside, working_on

# If the scheduler does not answer, try again after this time (s).
LOOK_S = 2.0
CONNECT_TIMEOUT_S = 10.0
# How long (s) a node may take to close its connection to the scheduler.
FAREWELL_S = 5.0
# Turn off HTTP servers, and threads that sample a node many times a second, since they would disturb measurements.
NOTHING_ELSE = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
}


class SilentScheduler(Scheduler):
    """A scheduler without an HTTP server."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing."""


class SilentWorker(Worker):
    """A worker without an HTTP server. Its tasks read its attributes: the machine's `lanes`, with a thread for each,
    and all of the machine's `cores`. With lanes, the worker itself runs on cores outside them."""

    lanes: Lanes = ONE_LANE
    cores: frozenset[int] = frozenset()

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing."""


def run_scheduler(address: str, announce: Callable[[str], None]) -> None:
    """Run a cluster's scheduler at `address` until SIGINT or SIGTERM. When it listens, `announce` is called with its
    address.

    Raises EyelevelError.
    """
    security = security_of(Role.HEAD, address)
    asyncio.run(_run_scheduler(address, security, announce))


async def _run_scheduler(address: str, security: Security | None, announce: Callable[[str], None]) -> None:
    parts = urlsplit(address)
    with dask.config.set({"temporary-directory": str(private_folder()), **NOTHING_ELSE}):
        scheduler: Scheduler = SilentScheduler(
            host=bracketed(str(parts.hostname)), port=parts.port or 0, protocol=parts.scheme, security=security
        )

        async def life() -> None:
            await _started(scheduler, f"the scheduler cannot listen at {address}")
            announce(scheduler.address)
            await _ended(scheduler)

        await _until_signal(life(), lambda: scheduler.close(reason="signal"))


def run_worker(scheduler: str, host: str | None, announce: Callable[[str], None], lanes: Lanes = ONE_LANE) -> None:
    """Be a worker of the cluster with this `scheduler` until SIGINT or SIGTERM, or until the scheduler is gone.

    The worker measures as many blocks at once as it has `lanes`. It listens at the address `host`, by default at the
    one from which the scheduler is reached. `announce` reports what the worker waits for, and when it has joined.
    Raises EyelevelError.
    """
    security = security_of(Role.WORKER, scheduler)
    cores = frozenset(os.sched_getaffinity(0))
    # If cores remain outside the lanes, Dask's own work and the sending of evidence run there and take no time from
    # lanes.
    with working_on(cores_beside(lanes.lanes, cores)):
        asyncio.run(_run_worker(scheduler, host, security, announce, lanes, cores))


async def _run_worker(
    scheduler: str,
    host: str | None,
    security: Security | None,
    announce: Callable[[str], None],
    lanes: Lanes,
    cores: frozenset[int],
) -> None:
    parts = urlsplit(scheduler)
    worker: Worker | None = None
    with dask.config.set({"temporary-directory": str(private_folder()), **NOTHING_ELSE}):

        async def life() -> None:
            nonlocal worker
            await _wait_for(scheduler, security, announce)
            place = bracketed(host or get_ip(str(parts.hostname)))
            worker = SilentWorker(
                scheduler,
                nthreads=lanes.count * lanes.loads_of_cores,
                host=place,
                protocol=parts.scheme,
                security=security,
            )
            worker.lanes, worker.cores = lanes, cores
            await _started(worker, f"a worker cannot listen at {place}, or join {scheduler}")
            announce(f"this worker listens at {worker.address}, and measures for {scheduler}")
            await _ended(worker)
            raise EyelevelError(f"the scheduler {scheduler} no longer responds; start this worker again later")

        async def farewell() -> None:
            if worker:
                # The worker may be measuring; the measurement ends with this process.
                await worker.close(timeout=FAREWELL_S, executor_wait=False, reason="signal")

        await _until_signal(life(), farewell)


async def _wait_for(scheduler: str, security: Security | None, announce: Callable[[str], None]) -> None:
    """Return when `scheduler` answers and accepts our certificate. Dask itself would retry silently."""
    arguments = security.get_connection_args("worker") if security else {}
    reason = None
    while True:
        try:
            comm = await asyncio.wait_for(connect(scheduler, CONNECT_TIMEOUT_S, **arguments), 2 * CONNECT_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            if (new_reason := _reason_of(error)) != reason:
                announce(f"waiting for {scheduler}: {new_reason}")
            reason = new_reason
            await asyncio.sleep(LOOK_S)
        else:
            await comm.close()
            return


def _reason_of(error: BaseException) -> str:
    """The root cause of `error`, in one line."""
    while error.__cause__:
        error = error.__cause__
    return last_line_of(str(error), type(error).__name__)


async def _started(node: Server, fault: str) -> None:
    try:
        await node
    except (RuntimeError, ValueError, OSError) as error:
        raise EyelevelError(f"{fault}: {_reason_of(error)}") from None


async def _ended(node: Server) -> None:
    await node.finished()


async def _until_signal(life: Awaitable[None], farewell: Callable[[], Awaitable[object]]) -> None:
    """Await `life`; on SIGINT or SIGTERM, cancel it and await `farewell`."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    living, stopping = asyncio.ensure_future(life), asyncio.ensure_future(stop.wait())
    await asyncio.wait({living, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if living.done():
        await living
        return
    living.cancel()
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(farewell(), 2 * FAREWELL_S)


def private_folder(parent: Path | None = None) -> Path:
    """This user's folder for temporary files of nodes, which nobody else can read or change. It is in `parent`, by
    default the usual place for such files.

    Dask puts it into Python's path. All nodes share it, so that a node removes what a killed one has left. Raises
    EyelevelError when somebody else made it.
    """
    folder = Path(parent or tempfile.gettempdir(), f"eyelevel-cluster-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise EyelevelError(f"{folder} is not a folder of yours alone; remove it, or set TMPDIR to a folder of yours")
    return folder
