"""A hop that splits TCP connections, without touching their content: HAProxy. QUIC passes.

It accepts every TCP packet from the client, whatever its destination (AnyIP), answers in place of the server, and
connects to that server from its own address. UDP is forwarded.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from base.jail import Jail, jailed
from base.places import tool
from base.processes import Daemon, first_readable, pidfd, running
from replay.hops.contract import HopKind, Work
from replay.hops.namespace import FAR_DEVICE, FOLDER, lead_in, version
from replay.world import open_ports
from servers.sockets import make_transparent
from tuning import kernel
from tuning.protocols import Protocol

START_TIMEOUT_S = 20.0
# The variable with the socket at which a program reports that it is ready (sd_notify(3)).
NOTIFY_SOCKET = "NOTIFY_SOCKET"
# HAProxy copies no data: the kernel moves it from socket to socket. It ends a connection only when the client or the
# server does.
CONFIGURATION = """\
global
  nbthread 1
  maxconn 2048
defaults
  mode tcp
  timeout connect 1h
  timeout client 1h
  timeout server 1h
  retries 0
  option splice-auto
frontend client
{binds}
  default_backend servers
backend servers
  server asked 0.0.0.0
"""


class Split(HopKind):
    """HAProxy."""

    name = "split"
    programs: ClassVar = {"haproxy": "-v"}
    ends = ("tcp",)
    counts = (("connections from the client", "accepted", 1), ("connections to the servers", "opened", 1))

    def protocol_refusal(self, protocol: Protocol) -> str | None:
        if protocol.fast_open or protocol.mss_bytes is not None:
            return f"splits TCP, and {'fast_open' if protocol.fast_open else 'mss_bytes'} would end there"
        return None

    @contextmanager
    def at_work(self, work: Work) -> Iterator[None]:
        near, hop, account = lead_in(self.ends), work.hop, work.account
        account["routes"] = {
            side: kernel.tune_hop_routes(device, hop.congestion_control, hop.initial_window_packets)
            for side, device in (("near", near), ("far", FAR_DEVICE))
        }
        discipline = {device: kernel.set_discipline(device, paced=False) for device in (near, FAR_DEVICE)}
        account["queueing_discipline"] = discipline
        configuration = FOLDER / "haproxy.cfg"
        ports = sorted({port for _, port in work.serving.listening()})
        binds = "\n".join(f"  bind 0.0.0.0:{port}" for port in ports)
        configuration.write_text(CONFIGURATION.format(binds=binds))
        program = tool("haproxy")
        account["program"] = version(program, "-v")
        open_ports()
        with _haproxy(program, configuration) as haproxy:
            make_transparent(haproxy.process.pid, [("0.0.0.0", port) for port in ports], socket.SOCK_STREAM)
            yield

    def fault(self, account: Mapping[str, Any]) -> str | None:
        # Compare only whether there are any: a client that gives up a connection at once may have closed it before
        # HAProxy opened the other one.
        if account["accepted"] and not account["opened"]:
            return f"took {account['accepted']} connections, but opened none to the servers"
        return None


HOP = Split()


@contextmanager
def _haproxy(program: Path, configuration: Path) -> Iterator[Daemon]:
    """HAProxy, once it reports that it is ready (sd_notify(3)). Raises EyelevelError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as readiness:
        readiness.bind(str(FOLDER / "ready"))
        environment = {**os.environ, NOTIFY_SOCKET: str(FOLDER / "ready")}
        # `program` is a script next to the program's own folder; the jail needs the folder of both.
        jail = Jail((program.resolve().parent,), writable=(FOLDER,), variables=(NOTIFY_SOCKET,))
        command = jailed(jail, [program.resolve(), "-Ws", "-f", configuration])
        with running("HAProxy", command, FOLDER / "haproxy.log", environment=environment) as daemon:
            with pidfd(daemon.process) as ended:
                said = b""
                while not said.startswith(b"READY=1"):  # earlier messages report that it loads its configuration
                    if first_readable(readiness.fileno(), ended, timeout_s=START_TIMEOUT_S) != readiness.fileno():
                        raise daemon.failure()
                    said = readiness.recv(1024)
            yield daemon
