"""A client for tests of our servers that may violate HTTP/3."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamReset

ANSWER_TIMEOUT_S = 60.0
HEADERS_FRAME, EXCESSIVE_LOAD, NO_RESPONSE = 1, 0x107, 0


class Client(QuicConnectionProtocol):
    """Sends requests, complete or not. For each it knows the response's status, the end of its body, or an error
    code."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.http = H3Connection(self._quic)
        self.ends: dict[int, asyncio.Future[int]] = {}
        self.statuses: dict[int, int] = {}
        self.answered: defaultdict[int, asyncio.Future[int]] = defaultdict(self._loop.create_future)

    def request(self, path: str, *fields: tuple[bytes, bytes], end: bool = True, **pseudo: str) -> int:
        """Send a request. `pseudo` sets the method, and other fields that begin with a colon; the defaults are those of
        a GET."""
        stream = self._quic.get_next_available_stream_id()
        self.ends[stream] = asyncio.get_running_loop().create_future()
        usual = {"method": "GET", "scheme": "https", "authority": "a.example", "path": path}
        headers = [(f":{name}".encode(), value.encode()) for name, value in (usual | pseudo).items()]
        self.http.send_headers(stream, [*headers, *fields], end_stream=end)
        return stream

    def raw(self, data: bytes) -> int:
        stream = self._quic.get_next_available_stream_id()
        self.ends[stream] = asyncio.get_running_loop().create_future()
        self._quic.send_stream_data(stream, data)
        return stream

    async def end(self, stream: int) -> int:
        """The status of the response on `stream`, or the code with which the server ended it."""
        self.transmit()
        return await asyncio.wait_for(self.ends[stream], ANSWER_TIMEOUT_S)

    async def status(self, stream: int) -> int:
        """The status of the response on `stream`, which need not be complete."""
        self.transmit()
        return await asyncio.wait_for(self.answered[stream], ANSWER_TIMEOUT_S)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamReset) and event.stream_id in self.ends:
            self._end(event.stream_id, event.error_code)
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self.statuses[http_event.stream_id] = int(dict(http_event.headers)[b":status"])
                self.answered[http_event.stream_id].set_result(self.statuses[http_event.stream_id])
            if isinstance(http_event, HeadersReceived | DataReceived) and http_event.stream_ended:
                self._end(http_event.stream_id, self.statuses.get(http_event.stream_id, NO_RESPONSE))

    def _end(self, stream: int, what: int) -> None:
        if not self.ends[stream].done():
            self.ends[stream].set_result(what)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    """A client of the server at `port` of this machine."""
    configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, verify_mode=ssl.CERT_NONE)
    configuration.server_name = "a.example"
    configuration.max_datagram_frame_size = 1 << 16
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
        assert isinstance(client, Client)
        yield client
