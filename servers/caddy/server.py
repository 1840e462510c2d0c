"""Serves a site with Caddy, one program for both HTTP/2 and HTTP/3, with one uWSGI as its backend.

Its HTTP/3 is quic-go's, which has no settings: NewReno, which keeps 0.7 of its window, with an initial window of 32
packets of 1200 bytes, paced. Over TCP, congestion control is the kernel's.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from base.files import write_atomically
from base.jail import jailed
from base.places import tool
from base.processes import Daemon, first_readable, pidfd, running
from servers import kernel_sockets
from servers.application import uwsgi
from servers.application.wsgi import PRAGMA_MARK
from servers.contract import Server, Serving
from servers.sockets import pace_listeners
from tuning.networks import Network
from tuning.protocols import Protocol

START_TIMEOUT_S = 20.0
LOG = "caddy.log"

# quic-go's initial window, in packets of the size that it uses before it probes for longer ones.
QUIC_WINDOW_PACKETS, QUIC_SEGMENT_BYTES = 32, 1200
# The share of its window that quic-go's Reno keeps after a loss; the kernel's keeps half (RFC 5681).
QUIC_KEPT_SHARE = 0.7
# Chromium's ClientHello has two packets of 1278 bytes. If quic-go 0.29 reads both together, it drops the second, and
# the handshake waits until the browser sends that packet again. So the two must arrive one by one, which needs a slow
# uplink.
MOST_UPLINK_MBPS = 10.0

GROUPS = {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}
VERSIONS = {"tcp": ["h1", "h2"], "quic": ["h3"]}
# Go's servers guess a Content-Type if it is missing. With this value they do not, and they send no Content-Type, since
# the value is invalid in a header field.
NO_CONTENT_TYPE = "\x7f"


class Caddy(Server):
    """Caddy. Congestion control is the kernel's over TCP, and quic-go's over QUIC."""

    name = "caddy"
    transports = ("tcp", "quic")
    programs: ClassVar = {"caddy": "version", **uwsgi.PROGRAMS}
    # Over QUIC, the bytes in flight after a loss were only 48 to 70 % of the window before it; quic-go keeps 70 %.
    fills_window_after_loss = False

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        with (
            uwsgi.running_application(serving, over_http=True) as application,
            running_caddy(serving, partial(_application, application.socket)) as caddy,
        ):
            if serving.protocol.in_kernel and serving.protocol.pacing:
                pace_listeners(caddy.process.pid, serving.listening())
            application.await_ready()
            yield

    def congestion_controls_taken(self, folder: Path) -> set[str] | None:
        return kernel_sockets.congestion_controls(folder) or None  # quic-go gives no account

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        if protocol.early_data:
            return "caddy takes no early data"
        if protocol.in_kernel:
            return None
        if protocol.congestion_control != "reno":
            return f"caddy's QUIC has no {protocol.congestion_control}, only reno"
        if protocol.initial_window_packets != QUIC_WINDOW_PACKETS:
            window = protocol.initial_window_packets
            return f"the initial window of caddy's QUIC is {QUIC_WINDOW_PACKETS} packets, and cannot be {window}"
        if not protocol.pacing:
            return "pacing of caddy's QUIC is true: it always paces"
        if protocol.connection_options:
            return "caddy's QUIC ignores connection_options"
        return None

    def network_refusal(self, protocol: Protocol, network: Network) -> str | None:
        steady = network.up_trace is None and network.up_mbps is not None and network.up_mbps <= MOST_UPLINK_MBPS
        if protocol.in_kernel or steady:
            return None
        return (
            f"caddy's QUIC can lose half of a browser's ClientHello where the uplink is not steady or faster than "
            f"{MOST_UPLINK_MBPS:g} Mbit/s, as that of {network.name}"
        )

    def order_of_service(self, protocol: Protocol) -> str | None:
        return None if protocol.in_kernel else "fair"

    def window_segment_bytes(self, protocol: Protocol) -> int:
        return protocol.segment_bytes if protocol.in_kernel else QUIC_SEGMENT_BYTES

    def reno_kept_share(self, protocol: Protocol) -> float:
        return super().reno_kept_share(protocol) if protocol.in_kernel else QUIC_KEPT_SHARE


# Returns Caddy's handler of requests at an address and a port, without the settings for all requests.
Behind = Callable[[str, int], dict[str, Any]]


@contextmanager
def running_caddy(serving: Serving, behind: Behind, *readable: Path) -> Iterator[Daemon]:
    """Caddy with the backends of `behind`. The context begins when Caddy listens everywhere. Its jail also has the
    files or folders `readable`. Raises EyelevelError."""
    config = serving.folder / "caddy.json"
    write_atomically(config, json.dumps(configuration(serving, behind), indent=1))
    # The path is resolved, since the link to the program is in a folder that Caddy cannot read.
    program: list[str | Path] = [tool("caddy").resolve(), "run", "--config", config]
    home = {"HOME": str(serving.folder), "XDG_DATA_HOME": str(serving.folder), "XDG_CONFIG_HOME": str(serving.folder)}
    with ExitStack() as starting:
        pinged = starting.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
        program += ["--pingback", "{}:{}".format(*pinged.getsockname())]
        log, environment = serving.folder / LOG, {**os.environ, **home}
        with running("Caddy", jailed(serving.jail(*readable), program), log, environment=environment) as daemon:
            ended = starting.enter_context(pidfd(daemon.process))
            if first_readable(pinged.fileno(), ended, timeout_s=START_TIMEOUT_S) != pinged.fileno():
                raise daemon.failure()
            starting.enter_context(pinged.accept()[0])
            starting.close()
            yield daemon


def configuration(serving: Serving, behind: Behind) -> dict[str, Any]:
    """Caddy's configuration (caddyserver.com/docs/json) with the backends of `behind`."""
    listening = serving.listening()
    certificates = [
        {"certificate": str(serving.certificates[address].chain), "key": str(serving.certificates[address].key)}
        | {"tags": [address]}
        for address in dict.fromkeys(address for address, _ in listening)
    ]
    return {
        "admin": {"disabled": True, "config": {"persist": False}},
        "logging": {"logs": {"default": {"level": "WARN", "encoder": {"format": "console"}}}},
        "storage": {"module": "file_system", "root": str(serving.folder / "caddy")},
        "apps": {
            "tls": {
                "certificates": {"load_files": certificates},
                "disable_ocsp_stapling": True,
                # A page's further connections to a server resume no session, as with NGINX.
                "session_tickets": {"disabled": True},
            },
            "http": {
                # When Caddy ends, it need not finish responses: nobody waits for them.
                "grace_period": 1,
                "servers": {
                    f"{address}:{port}": _server(address, port, serving.protocol, behind(address, port))
                    for address, port in listening
                },
            },
        },
    }


def _server(address: str, port: int, protocol: Protocol, proxy: dict[str, Any]) -> dict[str, Any]:
    sent = {"handler": "headers", "response": {"delete": ["Server"]}}
    typed = {
        "handler": "headers",
        "response": {
            "require": {"headers": {"Content-Type": None}},
            "set": {"Content-Type": [NO_CONTENT_TYPE]},
        },
    }
    handlers = [sent, *([typed] if protocol.in_kernel else []), {**proxy, "flush_interval": -1}]
    group = GROUPS[protocol.tls_group]
    return {
        "listen": [f"{address}:{port}"],
        "protocols": VERSIONS[protocol.transport],
        "automatic_https": {"disable": True},
        "strict_sni_host": False,
        "tls_connection_policies": [
            {
                "certificate_selection": {"any_tag": [address]},
                "curves": [group],
                "protocol_min": "tls1.3",
                "protocol_max": "tls1.3",
            }
        ],
        "routes": [{"handle": handlers}],
    }


def _application(socket_path: Path, address: str, port: int) -> dict[str, Any]:
    """Caddy's handler for any address and port: it forwards requests to the application."""
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"unix/{socket_path}"}],
        "transport": {
            "protocol": "http",
            # By default Caddy requests gzip, and unpacks responses for browsers that did not request it.
            "compression": False,
            # Otherwise a request may meet a connection that the application is just closing.
            "keep_alive": {"enabled": False},
        },
        "headers": {
            # Go would escape characters that browsers do not.
            "request": {"set": {uwsgi.TARGET_FIELD: ["{http.request.orig_uri}"]}},
            "response": {"replace": {"Pragma": [{"search_regexp": f"^{PRAGMA_MARK}", "replace": ""}]}},
        },
    }
