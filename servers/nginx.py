"""Serving a site over TCP, TLS 1.3 and HTTP/2: NGINX on every server address, one uWSGI behind them all."""

import os
import select
import socket
import ssl
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from base.errors import EyelevelError
from base.files import write_atomically
from base.places import PROJECT, tool
from base.processes import Daemon, running
from servers.application import READY
from servers.certificates import authority
from servers.contract import Serving

START_TIMEOUT_S = 20.0

THREADS = 8
# A response that waits for its time keeps a thread: as many as a page may ask for at once.
THINKING_THREADS = 512

# Linux gives TCP's own pacing to a socket that has a maximum pacing rate, and accepted sockets inherit it
# from the listening one; a rate no machine reaches paces by the congestion window alone.
UNLIMITED_PACING_BYTES_PER_S = 1 << 40
SO_MAX_PACING_RATE = 47


@contextmanager
def serve(serving: Serving) -> Iterator[None]:
    """Serve `serving.site` on TCP while the block runs (see `servers.contract`)."""
    with ExitStack() as stack:
        stack.enter_context(_uwsgi(serving))
        nginx = stack.enter_context(_nginx(serving))
        for address, port in serving.listening():
            _await_tls(nginx, address, port)
        yield


@contextmanager
def _uwsgi(serving: Serving) -> Iterator[Daemon]:
    """One uWSGI that serves the responses over a Unix socket; a single process, so that repeats stay in order."""
    ready = serving.folder / "uwsgi.ready"
    os.mkfifo(ready)
    command: list[str | Path] = [tool("uwsgi-core"), "--plugin", "python3", "--need-app", "--die-on-term"]
    command += ["--socket", serving.folder / "uwsgi.socket", "--listen", "1024"]
    threads = THINKING_THREADS if serving.think_time else THREADS
    command += ["--processes", "1", "--threads", str(threads), "--buffer-size", "65535", "--post-buffering", "65536"]
    command += ["--disable-logging", "--pythonpath", PROJECT, "--module", "servers.application"]
    environment: Mapping[str, str] = {
        **os.environ,
        "EYELEVEL_SITE": str(serving.content),
        "EYELEVEL_REQUEST_LOG": str(serving.request_log or ""),
        "EYELEVEL_THINK_TIME": "yes" if serving.think_time else "",
        "EYELEVEL_READY": str(ready),
    }
    # Opened for reading first, without waiting for a writer, so that the writer need not wait for us.
    with os.fdopen(os.open(ready, os.O_RDONLY | os.O_NONBLOCK), "rb") as ready_end:
        log = serving.folder / "uwsgi.log"
        with running("uWSGI", command, log, environment=environment) as daemon:
            _await_readable(daemon, ready_end.fileno())
            if (said := ready_end.readline().decode().strip()) != READY:
                raise EyelevelError(said)
            yield daemon


@contextmanager
def _nginx(serving: Serving) -> Iterator[Daemon]:
    """NGINX with one server block per address, on listening sockets that we made and tuned."""
    listening: dict[str, list[int]] = defaultdict(list)
    for address, port in serving.listening():
        listening[address].append(port)
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    config = serving.folder / "nginx.conf"
    template = templates.get_template("nginx.conf.j2")
    text = template.render(
        folder=serving.folder, listening=listening, certificates=serving.certificates, protocol=serving.protocol
    )
    write_atomically(config, text)
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(_listening_socket(address, port, paced=serving.protocol.pacing))
            for address, port in serving.listening()
        ]
        descriptors = [s.fileno() for s in sockets]
        # NGINX takes over listening sockets that this variable names, as after an upgrade of its binary.
        environment = {**os.environ, "NGINX": "".join(f"{fd};" for fd in descriptors)}
        command: list[str | Path] = [tool("nginx"), "-p", serving.folder, "-c", config, "-e", "stderr"]
        log = serving.folder / "nginx.log"
        with running("NGINX", command, log, environment=environment, pass_fds=descriptors) as daemon:
            stack.close()  # from here on a connection is refused when NGINX is gone
            yield daemon


def _listening_socket(address: str, port: int, *, paced: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if paced:
            rate = UNLIMITED_PACING_BYTES_PER_S.to_bytes(8, "little")
            listener.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
            if listener.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8) != rate:
                raise EyelevelError("the kernel does not take SO_MAX_PACING_RATE, so TCP cannot be paced")
        listener.bind((address, port))
        listener.listen(1024)
        # NGINX leaves sockets it takes over as they are; in a blocking one, the worker that loses the race
        # for a connection would wait for the next instead of serving the connections it has.
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise EyelevelError(f"cannot listen on {address}:{port}: {error.strerror}") from None
    return listener


def _await_readable(daemon: Daemon, descriptor: int) -> None:
    """Wait until `descriptor` has something to read. Raises the daemon's failure if it ends first."""
    pidfd = os.pidfd_open(daemon.process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(pidfd, select.POLLIN)
        events = dict(poll.poll(START_TIMEOUT_S * 1000))
        if not events.get(descriptor, 0) & select.POLLIN:
            raise daemon.failure()
    finally:
        os.close(pidfd)


def _await_tls(daemon: Daemon, address: str, port: int) -> None:
    """Shake hands with one server: it must speak TLS 1.3 and HTTP/2 under our authority's certificate."""
    context = ssl.create_default_context(cafile=authority().path)
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((address, port), START_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=address) as secure,
        ):
            spoken = (secure.version(), secure.selected_alpn_protocol())
    except OSError as error:
        failure = daemon.failure()
        raise EyelevelError(f"{address}:{port}: {error}; {failure}") from None
    if spoken != ("TLSv1.3", "h2"):
        raise EyelevelError(f"NGINX on {address}:{port} speaks {spoken}, not TLS 1.3 with HTTP/2")
