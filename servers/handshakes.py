"""Waits until a server answers over TLS, by a handshake at every endpoint."""

import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from base.errors import EyelevelError
from base.processes import Daemon
from record.connections import HTTP1
from servers.certificates import machine_ca_certificate
from servers.contract import Serving

TIMEOUT_S = 20.0

# Several handshakes at a time: while this process works on one, the server works on others.
AT_A_TIME = 4


def await_tls(serving: Serving, daemons: Mapping[tuple[str, int], Daemon]) -> None:
    """Complete a handshake at each address and port of `daemons`, with the process that serves there: it must speak
    TLS 1.3 and HTTP/2, or HTTP/1.1 if the address is in `Serving.http1`, with a certificate of the testbed. Raises
    EyelevelError."""
    context = ssl.create_default_context(cafile=machine_ca_certificate())
    context.set_alpn_protocols(["h2", HTTP1])

    def await_one(endpoint: tuple[str, int]) -> None:
        address, port = endpoint
        daemon = daemons[endpoint]
        expected = ("TLSv1.3", HTTP1 if address in serving.http1 else "h2")
        try:
            with (
                socket.create_connection(endpoint, TIMEOUT_S) as plain,
                context.wrap_socket(plain, server_hostname=address) as secure,
            ):
                # A server that does not know ALPN speaks HTTP/1.1.
                spoken = (secure.version(), secure.selected_alpn_protocol() or HTTP1)
        except OSError as error:
            raise EyelevelError(f"{address}:{port}: {error}; {daemon.failure()}") from None
        if spoken != expected:
            raise EyelevelError(
                f"{daemon.name} on {address}:{port} speaks {' and '.join(map(str, spoken))}, not "
                f"{' and '.join(expected)}"
            )

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(await_one, daemons))
