"""`fetch.py h2|h3 REQUESTS`: send all requests in the JSON file REQUESTS, in order, and print the answers.

A request is {method, url, headers, body_bytes}; the last two are optional. An answer is {status, headers, sha256,
length, ttfb_ms}: headers as sent and in order, and the time from the request to the headers.
"""

import asyncio
import hashlib
import json
import os
import socket
import ssl
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent
from aioquic.quic.events import StreamReset as QuicStreamReset
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived as H2Data
from h2.events import ResponseReceived, StreamEnded, StreamReset

TIMEOUT_S = 120.0
# The size of HTTP/2 frames. A request's body must fit into the first window of 65,535 bytes (RFC 9113, section 6.9.2).
FRAME_BYTES = 16_384

Request = dict[str, Any]
Answer = dict[str, Any]


def request_headers(request: Request) -> list[tuple[bytes, bytes]]:
    url = urlsplit(request["url"])
    path = request["url"].partition(url.netloc)[2].partition("#")[0]
    pseudo = [(":method", request["method"]), (":scheme", "https"), (":authority", url.netloc)]
    fields = [*pseudo, (":path", path if path.startswith("/") else f"/{path}"), *request.get("headers", [])]
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def answer(headers: Iterable[tuple[bytes, bytes]], body: bytes, ttfb_s: float) -> Answer:
    decoded = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    return {
        "status": int(dict(decoded)[":status"]),
        "headers": decoded[1:],
        "sha256": hashlib.sha256(body).hexdigest(),
        "length": len(body),
        "ttfb_ms": ttfb_s * 1000,
    }


def fetch_h2(host: str, port: int, requests: list[Request]) -> list[Answer]:
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.set_alpn_protocols(["h2"])
    answers = []
    config = H2Configuration(header_encoding=None)
    with (
        socket.create_connection((host, port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        connection = H2Connection(config)
        connection.initiate_connection()
        for request in requests:
            stream = connection.get_next_available_stream_id()
            body_bytes = request.get("body_bytes", 0)
            connection.send_headers(stream, request_headers(request), end_stream=not body_bytes)
            for begin in range(0, body_bytes, FRAME_BYTES):
                end = min(begin + FRAME_BYTES, body_bytes)
                connection.send_data(stream, b"b" * (end - begin), end_stream=end == body_bytes)
            headers: list[tuple[bytes, bytes]] = []
            body = b""
            ended = False
            sent_s, ttfb_s = time.monotonic(), 0.0
            while not ended:
                secure.sendall(connection.data_to_send())
                data = secure.recv(65536)
                assert data, f"{host} closed the connection"
                for event in connection.receive_data(data):
                    if isinstance(event, ResponseReceived):
                        headers = list(event.headers)
                        ttfb_s = time.monotonic() - sent_s
                    elif isinstance(event, H2Data):
                        body += event.data
                        connection.acknowledge_received_data(event.flow_controlled_length, stream)
                    elif isinstance(event, StreamEnded):
                        ended = True
                    elif isinstance(event, StreamReset):
                        raise AssertionError(f"{request} was reset: {event.error_code}")
            answers.append(answer(headers, body, ttfb_s))
    return answers


class HeadTolerantH3(H3Connection):
    """Accepts a response to HEAD without a body. aioquic itself expects a body as long as its Content-Length says."""

    head = False

    def _check_content_length(self, stream: Any) -> None:
        if not self.head:
            super()._check_content_length(stream)


class H3Client(QuicConnectionProtocol):
    """Sends one request after the other over one connection."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.http = HeadTolerantH3(self._quic)
        self.headers: list[tuple[bytes, bytes]] = []
        self.headers_s = 0.0
        self.body = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, request: Request) -> Answer:
        self.headers, self.body = [], b""
        self.ended = asyncio.get_running_loop().create_future()
        self.http.head = request["method"] == "HEAD"
        stream = self._quic.get_next_available_stream_id()
        body_bytes = request.get("body_bytes", 0)
        self.http.send_headers(stream, request_headers(request), end_stream=not body_bytes)
        if body_bytes:
            self.http.send_data(stream, b"b" * body_bytes, end_stream=True)
        sent_s = time.monotonic()
        self.transmit()
        await asyncio.wait_for(self.ended, TIMEOUT_S)
        return answer(self.headers, self.body, self.headers_s - sent_s)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated | QuicStreamReset) and not self.ended.done():
            self.ended.set_exception(AssertionError(f"the server ended it: {event}"))
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self.headers = list(http_event.headers)
                self.headers_s = time.monotonic()
            elif isinstance(http_event, DataReceived):
                self.body += http_event.data
            if getattr(http_event, "stream_ended", False) and not self.ended.done():
                self.ended.set_result(None)


async def fetch_h3(host: str, port: int, requests: list[Request]) -> list[Answer]:
    configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, server_name=host)
    configuration.load_verify_locations(os.environ["SSL_CERT_FILE"])
    address = socket.gethostbyname(host)
    async with connect(address, port, configuration=configuration, create_protocol=H3Client, local_port=0) as client:
        assert isinstance(client, H3Client)
        return [await client.ask(request) for request in requests]


def main(version: str, file: Path) -> None:
    by_server: dict[tuple[str, int], list[int]] = defaultdict(list)
    requests = json.loads(file.read_text())
    for number, request in enumerate(requests):
        url = urlsplit(request["url"])
        by_server[str(url.hostname), url.port or 443].append(number)
    answers: dict[int, Answer] = {}
    for server, numbers in by_server.items():
        of_server = [requests[number] for number in numbers]
        results = fetch_h2(*server, of_server) if version == "h2" else asyncio.run(fetch_h3(*server, of_server))
        answers.update(zip(numbers, results, strict=True))
    json.dump([answers[number] for number in range(len(requests))], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
