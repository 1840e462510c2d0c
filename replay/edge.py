"""An edge in the hop of a replay: Caddy, which ends what the browser speaks, and asks the servers by HTTP/2.

    servers (NGINX) ══ HTTP/2, TCP ══ Caddy ══ HTTP/2 or HTTP/3 ══ browser

It listens at the servers' own addresses, of which none is the hop's, and answers from them. What it sends
to a server goes the way that the browser's packets would have gone.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from base.places import ca_certificate
from base.processes import Daemon
from servers.caddy.server import running_caddy
from servers.caddy.sockets import make_transparent, pace_listeners
from servers.contract import Serving
from tuning import protocols
from tuning.hops import Hop
from tuning.protocols import Protocol


def origin_protocol(hop: Hop) -> Protocol:
    """By what servers serve an edge in `hop`: as stock TCP, with the congestion control and the window of the hop."""
    return replace(
        protocols.load()["tcp"],
        name="origin",
        congestion_control=hop.congestion_control,
        initial_window_packets=hop.initial_window_packets,
    )


@contextmanager
def running_edge(serving: Serving) -> Iterator[Daemon]:
    """Caddy as an edge for the site of `serving`, in this network namespace, once it listens. Raises EyelevelError."""
    with running_caddy(serving, partial(_server_of_site, serving), ca_certificate()) as caddy:
        kind = socket.SOCK_STREAM if serving.protocol.in_kernel else socket.SOCK_DGRAM
        make_transparent(caddy.process.pid, serving.listening(), kind)
        if serving.protocol.in_kernel and serving.protocol.pacing:
            pace_listeners(caddy.process.pid, serving.listening())
        yield caddy


def _server_of_site(serving: Serving, address: str, port: int) -> dict[str, Any]:
    """The server of the site is behind that has this address and port itself."""
    host = serving.site.servers[address][0].partition(":")[0]
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"{address}:{port}"}],
        "transport": {
            "protocol": "http",
            "versions": ["2"],
            "compression": False,
            "tls": {"server_name": host, "root_ca_pem_files": [str(ca_certificate())]},
        },
        "headers": {
            "request": {"set": {"Host": ["{http.request.hostport}"]}},
            "response": {"delete": ["Via"]},
        },
    }
