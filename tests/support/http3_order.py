"""A small HTTP/3 client that sends several requests at once, with priorities, and records the order of the data that
arrives."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3Connection, encode_frame
from aioquic.h3.events import DataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent

TIMEOUT_S = 120.0
# The link to the client: slow enough that the server always has more to send than the link takes. It loses nothing.
DELAY_S, RATE_BYTES_PER_S = 0.01, 1e6
PRIORITY_UPDATE = 0xF0700  # of a request (RFC 9218 section 7.2)


class _Client(QuicConnectionProtocol):
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.http = H3Connection(self._quic)
        self.arrivals: list[tuple[int, int]] = []
        self.waiting: set[int] = set()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.link_free_s = 0.0

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        loop = asyncio.get_running_loop()
        self.link_free_s = max(self.link_free_s, loop.time() + DELAY_S) + len(data) / RATE_BYTES_PER_S
        loop.call_at(self.link_free_s, super().datagram_received, data, addr)

    async def wait_closed(self) -> None:
        """Return at once: nobody waits here for what the server may still send."""

    async def ask(self, authority: str, requests: Sequence[tuple[str, str]]) -> None:
        for path, priority in requests:
            stream = self._quic.get_next_available_stream_id()
            self.waiting.add(stream)
            update = encode_frame(PRIORITY_UPDATE, encode_uint_var(stream) + priority.encode())
            control = self.http._local_control_stream_id
            assert control is not None
            self._quic.send_stream_data(control, update)
            pseudo = {":method": "GET", ":scheme": "https", ":authority": authority, ":path": path}
            headers = [(name.encode(), value.encode()) for name, value in pseudo.items()]
            self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await asyncio.wait_for(self.ended, TIMEOUT_S)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated) and not self.ended.done():
            self.ended.set_exception(AssertionError(f"the server ended it: {event}"))
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, DataReceived):
                self.arrivals.append((http_event.stream_id, len(http_event.data)))
                if http_event.stream_ended:
                    self.waiting.discard(http_event.stream_id)
        if self.arrivals and not self.waiting and not self.ended.done():
            self.ended.set_result(None)


async def _ask(address: str, port: int, authority: str, requests: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
    configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, verify_mode=ssl.CERT_NONE)
    configuration.server_name = authority
    async with connect(address, port, configuration=configuration, create_protocol=_Client) as client:
        assert isinstance(client, _Client)
        # A receive buffer as large as Linux usually allows, since a busy machine may not read at once.
        assert client._transport is not None
        client._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 212_992)
        await client.ask(authority, requests)
    # A client's requests have every fourth stream number, from 0 (RFC 9000 section 2.1).
    return [(requests[stream // 4][0], length) for stream, length in client.arrivals]


def arrivals_of(
    port: int, authority: str, requests: Sequence[tuple[str, str]], *, address: str = "127.0.0.1"
) -> list[tuple[str, int]]:
    """Request all (path, priority) at once from the server at `port` of this machine's `address`, over one connection.

    Returns the received body data, in order: the path, and how many bytes of it arrived in a row.
    """
    arrivals = asyncio.run(_ask(address, port, authority, requests))
    return [(path, sum(length for _, length in run)) for path, run in groupby(arrivals, lambda arrival: arrival[0])]
