"""A client of a hop that tunnels (CONNECT-UDP, RFC 9298).

`python -m measure.validate.network.tunnel HOST TIMES`, run in a replay, requests `/` from the server of HOST this many
times, each over new connections, and prints how long each step took.

Like a browser, it has a QUIC connection to the proxy; the packets of a second QUIC connection, to the server, travel in
datagrams of the first.
"""

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, QuicEvent
from service_identity.exceptions import CertificateError

from base.errors import EyelevelError, reports_errors
from base.structure import to_json
from measure.validate.network.hop import TunnelTimes
from replay.hops.tunnel import TUNNELS
from replay.spec import PROXY_HOST, PROXY_PORT

# The prefix of a UDP payload (RFC 9298, section 4).
UDP_CONTEXT = b"\0"
# The size of packets to the proxy; each can contain a whole packet to the server (1200 bytes).
PACKET_BYTES = 1400
TIMEOUT_S = 30.0
# aioquic requires an address, but does not use it.
ANY_ADDRESS = ("", 0)


@dataclass(frozen=True)
class Proxy:
    """The proxy with this `name`, at an `address` and a `port`; each step to it and through it may take `timeout_s`."""

    name: str = PROXY_HOST
    address: str = PROXY_HOST
    port: int = PROXY_PORT
    timeout_s: float = TIMEOUT_S


class Tunnel(QuicConnectionProtocol):
    """The connection to a `proxy`, and within it one to a server."""

    def __init__(self, *arguments: Any, proxy: Proxy, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._name, self._timeout_s = proxy.name, proxy.timeout_s
        # With this option, aioquic also announces that it accepts datagrams.
        self._proxy = H3Connection(self._quic, enable_webtransport=True)
        self._server: QuicConnection | None = None
        self._server_http: H3Connection | None = None
        self._stream = 0
        self._server_timer: asyncio.TimerHandle | None = None
        self._awaited: asyncio.Future[None] | None = None
        self._fault: EyelevelError | None = None
        self._is_connected = False

    async def reach(self) -> None:
        """Wait until the handshake with the proxy is complete. By default aioquic waits for that, too
        (`wait_connected`), but for as long as packets come, and without saying why a handshake failed."""
        self.transmit()
        await self._await("the proxy completes no handshake")

    async def open(self, host: str) -> None:
        """Ask the proxy to forward datagrams to port 443 of `host`."""
        self._stream = self._quic.get_next_available_stream_id()
        path = f"/.well-known/masque/udp/{host}/443/"
        fields = {":method": "CONNECT", ":protocol": "connect-udp", ":scheme": "https", ":path": path}
        fields |= {":authority": self._name, "capsule-protocol": "?1"}
        self._proxy.send_headers(self._stream, [(name.encode(), value.encode()) for name, value in fields.items()])
        self.transmit()
        await self._await("the proxy does not answer a request for a tunnel")

    async def secure(self, host: str) -> None:
        """Connect to the server of `host` through the tunnel."""
        configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, server_name=host)
        configuration.load_verify_locations(os.environ["SSL_CERT_FILE"])
        self._server = QuicConnection(configuration=configuration)
        self._server.connect(ANY_ADDRESS, now=self._loop.time())
        self._pass_on()
        await self._await("the server completes no handshake through the hop")

    async def ask(self, host: str) -> None:
        """Request `/` from the server; returns when the answer begins."""
        assert self._server and self._server_http
        fields = {":method": "GET", ":scheme": "https", ":authority": host, ":path": "/"}
        stream = self._server.get_next_available_stream_id()
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        self._server_http.send_headers(stream, headers, end_stream=True)
        self._pass_on()
        await self._await("the server answers no request through the hop")

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        # aioquic does not handle a certificate with invalid names, and would leave us waiting.
        try:
            super().datagram_received(data, addr)
        except CertificateError as error:
            self._fail(f"the certificate of the proxy is invalid: {error}")

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, HandshakeCompleted):
            self._is_connected = True
            self._arrive()
        elif isinstance(event, ConnectionTerminated):
            what = "the connection to the proxy ended" if self._is_connected else "the handshake with the proxy failed"
            self._fail(f"{what}: {event.reason_phrase or hex(event.error_code)}")
        for one in self._proxy.handle_event(event):
            if isinstance(one, HeadersReceived) and one.stream_id == self._stream:
                status = dict(one.headers)[b":status"].decode()
                if status == "200":
                    self._arrive()
                else:
                    self._fail(f"the proxy answers with {status}")
            elif isinstance(one, DatagramReceived) and self._server and one.data.startswith(UDP_CONTEXT):
                self._server.receive_datagram(one.data[1:], ANY_ADDRESS, now=self._loop.time())
                self._pass_on()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._server_timer:
            self._server_timer.cancel()
        super().connection_lost(exc)

    def _pass_on(self) -> None:
        """Handle the events of the connection to the server, and send its datagrams."""
        assert self._server
        while event := self._server.next_event():
            if isinstance(event, HandshakeCompleted):
                self._server_http = H3Connection(self._server)
                self._arrive()
            elif isinstance(event, ConnectionTerminated):
                self._fail(f"the server ended the connection: {event.reason_phrase or hex(event.error_code)}")
            for one in self._server_http.handle_event(event) if self._server_http else ():
                if isinstance(one, HeadersReceived):
                    self._arrive()
        for data, _ in self._server.datagrams_to_send(now=self._loop.time()):
            self._proxy.send_datagram(self._stream, UDP_CONTEXT + data)
        self.transmit()
        if self._server_timer:
            self._server_timer.cancel()
        due_s = self._server.get_timer()
        self._server_timer = None if due_s is None else self._loop.call_at(due_s, self._wake)

    def _wake(self) -> None:
        assert self._server
        self._server.handle_timer(now=self._loop.time())
        self._pass_on()

    async def _await(self, otherwise: str) -> None:
        """Wait for the next step to complete; `otherwise` is the error message if it does not."""
        if self._fault:
            raise self._fault
        self._awaited = self._loop.create_future()
        try:
            await asyncio.wait_for(self._awaited, self._timeout_s)
        except TimeoutError:
            raise EyelevelError(f"{otherwise} within {self._timeout_s:g} s") from None
        finally:
            self._awaited = None

    def _arrive(self) -> None:
        if self._awaited and not self._awaited.done():
            self._awaited.set_result(None)

    def _fail(self, fault: str) -> None:
        self._fault = self._fault or EyelevelError(fault)
        if self._awaited and not self._awaited.done():
            self._awaited.set_exception(self._fault)


async def measure(host: str, times: int, proxy: Proxy = Proxy()) -> TunnelTimes:
    """The least times of `times` connections to `host` through `proxy`, one after the other. Raises EyelevelError."""
    try:
        rows = [await _once(host, proxy) for _ in range(times)]
    except (EyelevelError, OSError) as error:
        raise EyelevelError(f"the hop at {proxy.name}: {error}") from None
    return TunnelTimes(*map(min, zip(*rows, strict=True)))


async def _once(host: str, proxy: Proxy) -> list[float]:
    configuration = QuicConfiguration(
        alpn_protocols=["h3"],
        is_client=True,
        server_name=proxy.name,
        max_datagram_frame_size=1 << 16,
        max_datagram_size=PACKET_BYTES,
    )
    configuration.load_verify_locations(os.environ["SSL_CERT_FILE"])
    began_s, times_ms = time.monotonic(), []
    connecting = connect(
        proxy.address,
        proxy.port,
        configuration=configuration,
        create_protocol=partial(Tunnel, proxy=proxy),
        wait_connected=False,
    )
    async with connecting as tunnel:
        assert isinstance(tunnel, Tunnel)
        await tunnel.reach()
        times_ms.append(1e3 * (time.monotonic() - began_s))
        # Open other tunnels first: data in one tunnel must not come out of another.
        for _ in range(1, TUNNELS):
            await tunnel.open(host)
        for step in (tunnel.open, tunnel.secure, tunnel.ask):
            began_s = time.monotonic()
            await step(host)
            times_ms.append(1e3 * (time.monotonic() - began_s))
    return times_ms


@reports_errors
def main(host: str, times: str) -> None:
    """Print the least times, as JSON."""
    print(to_json(asyncio.run(measure(host, int(times)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
