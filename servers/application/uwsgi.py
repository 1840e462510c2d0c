"""Runs the application (`servers.application.wsgi`) in uWSGI, next to a server that passes requests on to it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from base.errors import EyelevelError
from base.jail import jailed
from base.places import PROJECT, tool
from base.processes import Daemon, first_readable, pidfd, running
from servers.application.wsgi import READY
from servers.contract import Serving

# uWSGI's program, and the option that prints its version, for servers that use it.
PROGRAMS = {"uwsgi": "--version"}

START_TIMEOUT_S = 20.0

# The packages of the application, and of what it imports.
PACKAGES = ("base", "record", "servers")

THREADS = 8
# At most this many connections wait for a thread.
BACKLOG = 1024
# A response occupies a thread while it waits for its think time. Without NGINX, which stores responses, it also
# occupies one until the browser has accepted it. So there are as many threads as a page may have requests at once.
WAITING_THREADS = 512
# In a request over HTTP, the header field that has the request's target as the browser sent it.
TARGET_FIELD = "X-Eyelevel-Target"
# A connection is closed when the client reads nothing of a response, or sends nothing of a request, for this long (s).
SLOWEST_S = 600


class RunningApplication:
    """The application in uWSGI; it may still be loading its responses."""

    def __init__(self, socket: Path, daemon: Daemon, ready: BufferedReader) -> None:
        """The application listens at `socket`, and speaks uWSGI's protocol or HTTP/1.1 there. From `ready`, this
        process reads `READY`, or the reason for a failure."""
        self.socket = socket
        self._daemon = daemon
        self._ready = ready

    def await_ready(self) -> None:
        """Return when the application answers requests. Raises EyelevelError, with the reason, when it fails."""
        with pidfd(self._daemon.process) as ended:
            first_readable(self._ready.fileno(), ended, timeout_s=START_TIMEOUT_S)
        # Empty if uWSGI has ended, or is not ready in time.
        answer = self._ready.readline().decode().strip()
        if answer != READY:
            raise EyelevelError(answer) if answer else self._daemon.failure()


def most_connections(serving: Serving) -> int:
    """The most connections that the application can have; further ones are refused."""
    return BACKLOG + _threads(serving)


def _threads(serving: Serving) -> int:
    return WAITING_THREADS if serving.think_time else THREADS


@contextmanager
def running_application(
    serving: Serving, *, over_http: bool = False, port: int | None = None
) -> Iterator[RunningApplication]:
    """The application, which runs while the context lasts. It still loads its responses when the context begins, so
    that a server can start meanwhile.

    It is a single process, so that repeated requests are answered in order. `over_http`: it speaks HTTP/1.1, for a
    server that does not speak uWSGI's protocol, and that accepts a response only as fast as the browser does. It does
    so at `port` of 127.0.0.1, if given, instead of at a socket in the folder. Raises EyelevelError.
    """
    jail = serving.jail(*(PROJECT / package for package in PACKAGES), certified=False)
    listening = serving.folder / "uwsgi.socket"
    ready = serving.folder / "uwsgi.ready"
    os.mkfifo(ready)
    command: list[str | Path] = [tool("uwsgi-core"), "--plugin", "python3", "--need-app", "--die-on-term"]
    at = listening if port is None else f"127.0.0.1:{port}"
    command += ["--http-socket" if over_http else "--socket", at, "--listen", str(BACKLOG), "--tcp-nodelay"]
    # uWSGI closes each connection after its response. A client that does not know would send a request on it.
    command += ["--add-header", "Connection: close"] if over_http else []
    threads = WAITING_THREADS if over_http else _threads(serving)
    command += ["--processes", "1", "--threads", str(threads), "--buffer-size", "65535"]
    command += ["--socket-timeout", str(SLOWEST_S), "--chunked-input-timeout", str(SLOWEST_S)] if over_http else []
    command += ["--disable-logging", "--pythonpath", PROJECT, "--module", "servers.application.wsgi"]
    environment: Mapping[str, str] = {
        **os.environ,
        "EYELEVEL_SITE": str(serving.content),
        "EYELEVEL_REQUEST_LOG": str(serving.request_log or ""),
        "EYELEVEL_THINK_TIME": "yes" if serving.think_time else "",
        "EYELEVEL_READY": str(ready),
        "EYELEVEL_TARGET": f"HTTP_{TARGET_FIELD.upper().replace('-', '_')}" if over_http else "REQUEST_URI",
    }
    # This process opens the FIFO first, without waiting for a writer, so that the application need not wait for a
    # reader.
    with os.fdopen(os.open(ready, os.O_RDONLY | os.O_NONBLOCK), "rb") as ready_end:
        log = serving.folder / "uwsgi.log"
        with running("uWSGI", jailed(jail, command), log, environment=environment) as daemon:
            yield RunningApplication(listening, daemon, ready_end)
