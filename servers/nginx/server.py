"""Serves a site over TCP, TLS 1.3 and HTTP/2: NGINX on every server address, with one uWSGI as the backend of all."""

import errno
import os
import socket
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from base.errors import EyelevelError
from base.files import write_atomically
from base.jail import jailed
from base.places import tool
from base.processes import Daemon, running
from servers import kernel_sockets
from servers.application import uwsgi
from servers.contract import BUFFERS, Server, Serving
from servers.handshakes import await_tls
from tuning.protocols import Protocol

LOG = "nginx.log"
CONFIGURATION = Path(__file__).with_name("nginx.conf")
# RFC 7838. The announcement is valid for a day, as those of servers on the web are.
ALTERNATIVE = """add_header Alt-Svc 'h3=":$server_port"; ma=86400' always;"""
SERVER_BLOCK = """\
    server {
%(listens)s\
        ssl_certificate %(chain)s;
        ssl_certificate_key %(key)s;
        location / {
            uwsgi_pass unix:%(application)s;
        }
    }
"""
# The most connections of a browser at a time: Chromium makes up to 256, and as many WebSockets. Each possible
# connection takes 0.4 kB in each worker.
BROWSER_CONNECTIONS = 1000
# The end of NGINX's log lines about a file that it cannot write since the file system is full.
NO_SPACE = f"({errno.ENOSPC}: {os.strerror(errno.ENOSPC)})".encode()

# Linux uses TCP's own pacing for a socket with a maximum pacing rate, and accepted sockets inherit it from the
# listening one. With a rate that no machine reaches, pacing depends only on the congestion window.
UNLIMITED_PACING_BYTES_PER_S = 1 << 40
SO_MAX_PACING_RATE = 47


class Nginx(Server):
    """NGINX; congestion control is the kernel's."""

    name = "nginx"
    transports = ("tcp",)
    choices: ClassVar = {"tls_record_bytes": None}
    speaks_http1 = True
    offers_alternative = True
    programs: ClassVar = {"nginx": "-v", **uwsgi.PROGRAMS}

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        with uwsgi.running_application(serving) as application, _nginx(serving, application.socket) as nginx:
            await_tls(serving, dict.fromkeys(serving.listening(), nginx))
            application.await_ready()
            yield

    def order_of_service(self, protocol: Protocol) -> str | None:
        # NGINX follows the tree of RFC 7540, in which Chromium puts each stream after all equally urgent ones. But
        # data leaves in the order in which NGINX has written it to the kernel. If the kernel's unsent data has no
        # limit, NGINX may have written all of it before a more urgent request comes.
        return "urgency-first-come" if protocol.notsent_lowat_bytes else None

    def lacked_buffers(self, folder: Path) -> bool:
        # The log shows it. The file system does not: when the page is gone, NGINX has deleted the files that filled it.
        with (folder / LOG).open("rb") as log:
            return any(NO_SPACE in line for line in log)

    def congestion_controls_taken(self, folder: Path) -> set[str]:
        return kernel_sockets.congestion_controls(folder)


@contextmanager
def _nginx(serving: Serving, application: Path) -> Iterator[Daemon]:
    """NGINX in front of the `application`, with one server block per address, on sockets that were made and tuned
    here."""
    listening: dict[str, list[int]] = defaultdict(list)
    for address, port in serving.listening():
        listening[address].append(port)
    config = serving.folder / "nginx.conf"
    buffers = serving.folder / BUFFERS
    buffers.mkdir(exist_ok=True)
    write_atomically(config, _configuration(serving, application, buffers, listening))
    with ExitStack() as stack:
        paced = serving.protocol.pacing
        sockets = [stack.enter_context(_listening_socket(*endpoint, paced=paced)) for endpoint in serving.listening()]
        descriptors = [s.fileno() for s in sockets]
        # NGINX adopts listening sockets that this variable names, as after an upgrade of its binary.
        environment = {**os.environ, "NGINX": "".join(f"{fd};" for fd in descriptors)}
        program: list[str | Path] = [tool("nginx"), "-p", serving.folder, "-c", config, "-e", "stderr"]
        command = jailed(replace(serving.jail(), variables=("NGINX",)), program)
        with running("NGINX", command, serving.folder / LOG, environment=environment, pass_fds=descriptors) as daemon:
            stack.close()  # from here on, connections are refused once NGINX is gone
            yield daemon


def _configuration(serving: Serving, application: Path, buffers: Path, listening: Mapping[str, Sequence[int]]) -> str:
    """NGINX's configuration, with a server block for each address."""
    protocol = serving.protocol
    servers = ""
    for address, ports in listening.items():
        version = "" if address in serving.http1 else " http2"
        listens = "".join(f"        listen {address}:{port} ssl{version};\n" for port in ports)
        certificate = vars(serving.certificates[address])
        servers += SERVER_BLOCK % {"listens": listens, "application": application, **certificate}
    return CONFIGURATION.read_text() % {
        "folder": serving.folder,
        # NGINX's default would be one worker for each core of the machine, though servers may use only a few of them.
        "workers": len(os.sched_getaffinity(0)),
        "connections": len(serving.listening()) + BROWSER_CONNECTIONS + uwsgi.most_connections(serving),
        "buffers": buffers,
        "tls_group": protocol.tls_group,
        "record_size": f"ssl_buffer_size {size};" if (size := protocol.tls_record_bytes) else "",
        "early_data": "on" if protocol.early_data else "off",
        "alternative": ALTERNATIVE if protocol.announces_alternative else "",
        "servers": servers,
    }


def _listening_socket(address: str, port: int, *, paced: bool) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise EyelevelError(f"cannot open a socket for {address}:{port}: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if paced:
            rate = UNLIMITED_PACING_BYTES_PER_S.to_bytes(8, "little")
            listener.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
            if listener.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8) != rate:
                raise EyelevelError("the kernel does not take SO_MAX_PACING_RATE, so TCP cannot be paced")
        listener.bind((address, port))
        listener.listen(1024)
        # NGINX leaves adopted sockets as they are. With a blocking one, a worker that loses the race for a connection
        # would wait for the next one instead of serving its other connections.
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise EyelevelError(f"cannot listen on {address}:{port}: {error.strerror}") from None
    return listener
