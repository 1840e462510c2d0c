"""An edge in the hop of a replay: Caddy, which ends what the browser speaks, and asks the servers by HTTP/2.

    servers (NGINX) ══ HTTP/2, TCP ══ Caddy ══ HTTP/2 or HTTP/3 ══ browser

It listens at the servers' own addresses, of which none is the hop's, and answers from them. What it sends
to a server goes the way that the browser's packets would have gone.

It has a connection to each server before the browser begins, as edges keep them: Caddy looks once at each server's
health, by a request that the servers' log has, and that is none of the page's.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from base.errors import EyelevelError
from base.places import ca_certificate
from base.processes import Daemon, first_readable, pidfd
from servers.caddy.server import running_caddy
from servers.contract import Serving
from servers.sockets import make_transparent, pace_listeners
from tuning import protocols
from tuning.hops import Hop
from tuning.protocols import Protocol

HEALTH_PATH = "/eyelevel-edge-health"
CONNECTED_WITHIN_S, LOOK_S = 60.0, 0.02


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


def await_connections(caddy: Daemon, origins: Serving) -> int:
    """Wait until `caddy` has been answered by all servers of `origins`; returns how many bytes their log has then.
    Raises EyelevelError."""
    log, until_s = origins.request_log, time.monotonic() + CONNECTED_WITHIN_S
    assert log
    with pidfd(caddy.process) as ended:
        while (text := log.read_bytes() if log.exists() else b"").count(HEALTH_PATH.encode()) < len(
            origins.listening()
        ):
            # Nothing tells when a line is added to the log.
            if first_readable(ended, timeout_s=LOOK_S) is not None:
                raise caddy.failure()
            if time.monotonic() > until_s:
                raise EyelevelError(f"the edge was not connected to all servers within {CONNECTED_WITHIN_S:g} s")
    return len(text)


def _server_of_site(serving: Serving, address: str, port: int) -> dict[str, Any]:
    """The server of the site is behind that has this address and port itself."""
    host = serving.site.servers[address][0].partition(":")[0]
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"{address}:{port}"}],
        "transport": {
            "protocol": "http",
            "versions": ["2"],
            # NGINX ends one that is idle before that. By default Caddy does so after two minutes, in which a run may
            # still wait for its turn.
            "keep_alive": {"idle_timeout": "1h"},
            "compression": False,
            "tls": {"server_name": host, "root_ca_pem_files": [str(ca_certificate())]},
        },
        "health_checks": {
            # Once: no run lasts as long as that. No site has it, so 4xx.
            "active": {"uri": HEALTH_PATH, "interval": "24h", "timeout": "1m", "expect_status": 4},
        },
        "headers": {
            "request": {"set": {"Host": ["{http.request.hostport}"]}},
            "response": {"delete": ["Via"]},
        },
    }
