"""A hop that is an edge of a content delivery network: Caddy. It terminates the browser's connections, and requests
from the servers by HTTP/2 over its own connections.

    servers (NGINX) ══ HTTP/2, TCP ══ Caddy ══ HTTP/2 or HTTP/3 ══ browser

UDP ends there, too. Caddy listens at the servers' own addresses, which are not the hop's, and answers from them. Its
own packets to a server take the way that the browser's packets would have taken.

Like real edges, it has a connection to each server before the browser begins: Caddy checks each server's health once.
These requests are in the servers' log, but are not the page's.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from base.errors import EyelevelError
from base.places import ca_certificate, tool
from base.processes import Daemon, first_readable, pidfd
from replay.hops.contract import HopKind, Work
from replay.hops.namespace import FAR_DEVICE, FOLDER, lead_in, version
from replay.world import open_ports
from servers.caddy import SERVER
from servers.caddy.server import running_caddy
from servers.contract import BUFFERS, Serving
from servers.sockets import make_transparent, pace_listeners
from tuning import kernel, protocols
from tuning.hops import Hop
from tuning.protocols import Protocol

HEALTH_PATH = "/eyelevel-edge-health"
CONNECTED_WITHIN_S, LOOK_S = 60.0, 0.02


class Edge(HopKind):
    """Caddy as an edge: it answers the browser, as the server of the protocol under test does if there is no hop."""

    name = "terminate"
    programs: ClassVar = {"caddy": "version"}
    ends = ("tcp", "udp")
    ends_tls = True
    validation_protocol = "caddy-h2"
    # Caddy opens its connections to the servers before the client begins.
    counts = (("connections from the client", "accepted", 1), ("new connections to the servers", "opened", 0))

    def protocol_refusal(self, protocol: Protocol) -> str | None:
        if protocol.server == SERVER.name and not protocol.alternative_service:
            return None
        return (
            f"terminates connections, which {SERVER.name} does there; choose among its protocols (caddy-h2, caddy-h3)"
        )

    def origin(self, hop: Hop) -> Protocol:
        # Stock TCP, with the congestion control and the window of the hop.
        return replace(
            protocols.load()["tcp"],
            name="origin",
            congestion_control=hop.congestion_control,
            initial_window_packets=hop.initial_window_packets,
        )

    @contextmanager
    def at_work(self, work: Work) -> Iterator[None]:
        near, hop, account, serving = lead_in(self.ends), work.hop, work.account, work.serving
        protocol = work.spec.protocol
        open_ports()
        # Caddy listens at the servers' addresses, which do not belong to this namespace.
        account["server_sysctls"] = kernel.apply_sysctls({**protocol.server_kernel, "net.ipv4.ip_nonlocal_bind": "1"})
        far = kernel.tune_hop_routes(FAR_DEVICE, hop.congestion_control, hop.initial_window_packets)
        account["routes"] = {"far": far}
        account["queueing_discipline"] = {FAR_DEVICE: kernel.set_discipline(FAR_DEVICE, paced=False)}
        if protocol.in_kernel:
            account["routes"]["near"] = kernel.tune_server_routes(near, protocol)
            account["queueing_discipline"][near] = kernel.set_discipline(near, paced=protocol.pacing)
            account["largest_buffer_bytes"] = kernel.limit_buffers(near, protocol)
        account["program"] = version(tool("caddy"), "version")
        (FOLDER / BUFFERS).mkdir()
        with _running_edge(replace(serving, protocol=protocol, folder=FOLDER, request_log=None, qlog=None)) as caddy:
            account["log_bytes_before"] = _await_connections(caddy, serving)
            account["kept_connections"] = len(serving.listening())
            yield


HOP = Edge()


@contextmanager
def _running_edge(serving: Serving) -> Iterator[Daemon]:
    """Caddy as an edge for the site of `serving`, in this network namespace, once it listens. Raises EyelevelError."""
    with running_caddy(serving, partial(_server_of_site, serving), ca_certificate()) as caddy:
        kind = socket.SOCK_STREAM if serving.protocol.in_kernel else socket.SOCK_DGRAM
        make_transparent(caddy.process.pid, serving.listening(), kind)
        if serving.protocol.in_kernel and serving.protocol.pacing:
            pace_listeners(caddy.process.pid, serving.listening())
        yield caddy


def _await_connections(caddy: Daemon, origins: Serving) -> int:
    """Wait until all servers of `origins` have answered `caddy`; returns the length of their log in bytes by then.
    Raises EyelevelError."""
    log, until_s = origins.request_log, time.monotonic() + CONNECTED_WITHIN_S
    assert log
    with pidfd(caddy.process) as ended:
        while (text := log.read_bytes() if log.exists() else b"").count(HEALTH_PATH.encode()) < len(
            origins.listening()
        ):
            # There is no signal for a new line in the log, so look regularly.
            if first_readable(ended, timeout_s=LOOK_S) is not None:
                raise caddy.failure()
            if time.monotonic() > until_s:
                raise EyelevelError(f"the edge was not connected to all servers within {CONNECTED_WITHIN_S:g} s")
    return len(text)


def _server_of_site(serving: Serving, address: str, port: int) -> dict[str, Any]:
    """Caddy's handler for an address and port: it forwards requests to the site's server with the same address and
    port."""
    host = serving.site.servers[address][0].partition(":")[0]
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"{address}:{port}"}],
        "transport": {
            "protocol": "http",
            "versions": ["2"],
            # NGINX closes idle connections earlier than this. Caddy's default is two minutes, and a prepared run may
            # wait longer for its turn.
            "keep_alive": {"idle_timeout": "1h"},
            "compression": False,
            "tls": {"server_name": host, "root_ca_pem_files": [str(ca_certificate())]},
        },
        "health_checks": {
            # The interval is longer than any run, so each server is checked once. No site has this path, so the status
            # is 4xx.
            "active": {"uri": HEALTH_PATH, "interval": "24h", "timeout": "1m", "expect_status": 4},
        },
        "headers": {
            "request": {"set": {"Host": ["{http.request.hostport}"]}},
            "response": {"delete": ["Via"]},
        },
    }
