"""mitmproxy's side of a recording: forwards every response as it arrives, and stores what was sent.

mitmdump loads this in its own Python, with the project on the path. So this module, and all that it imports from the
project, needs only the standard library and mitmproxy; `tests/record/test_recorder.py` checks it.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from itertools import count

from mitmproxy import connection, ctx, http, version  # type: ignore[import-not-found]
from mitmproxy.proxy.mode_servers import ServerInstance  # type: ignore[import-not-found]
from mitmproxy.proxy.server_hooks import ServerConnectionHookData  # type: ignore[import-not-found]

from record.connections import CONNECTIONS, Connection
from record.http1 import Headers, Response
from record.limits import EXCHANGES, TEXT_BYTES
from record.recorder.browser_options import is_background_request
from record.recorder.budget import Body, ByteBudget
from record.recorder.limits import RECORDING_BYTES
from record.recorder.proxy_output import ProxyOutput
from record.recorder.proxy_settings import ProxySettings
from record.site import Exchange

# To make a page repeatable, or its links https, its text must be decoded. record/content.py cannot decode encodings
# with a dictionary, and no switch of the browser turns these off. Not every browser that loads replays supports zstd.
UNWANTED_ENCODINGS = {"zstd", "dcb", "dcz"}

NUMBER, BODY = "eyelevel-number", "eyelevel-body"

FULL = f"the recording is full: it may have {RECORDING_BYTES >> 20} MiB"
FULL_OF_TEXT = f"the recording is full: it may have {TEXT_BYTES >> 20} MiB of URLs and header fields"


class Recorder:
    """The addon. mitmproxy calls its methods by name."""

    def __init__(self, output: ProxyOutput, handover: int) -> None:
        self.output = output
        self.handover = handover
        self.numbers = count()
        self.budget = ByteBudget(RECORDING_BYTES)
        self.text_budget = ByteBudget(TEXT_BYTES)
        self.server: asyncio.Server | None = None
        self.kept_connections: set[str] = set()

    async def running(self) -> None:
        """The proxy is up. Make it listen on the socket that it is handed, which is in another network than its own.

        mitmproxy's option `server` is off, since mitmproxy itself would listen in its own network.
        """
        with socket.socket(fileno=self.handover) as handover:
            _, (descriptor,), _, _ = socket.recv_fds(handover, 1, 1)
        listening = socket.socket(fileno=descriptor)
        instance = ServerInstance.make("regular", ctx.master.addons.get("proxyserver"))
        self.server = await asyncio.start_server(instance.handle_stream, sock=listening)
        self.output.listening(listening.getsockname()[1], f"mitmproxy {version.VERSION}")

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """A connection to a server begins. The loop's guard (mitmdump.py) sees only TCP connections, so others are
        refused here."""
        if data.server.transport_protocol != "tcp":
            data.server.error = "only TCP is recorded"

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """A request begins. Requests that no page made are answered here: they are neither sent nor recorded."""
        fetch_site, fetch_mode = (flow.request.headers.get(f"sec-fetch-{name}") for name in ("site", "mode"))
        if is_background_request(flow.request.host, fetch_site, fetch_mode):
            answer_here(flow, 404)
            return
        number = next(self.numbers)
        if number >= EXCHANGES:
            answer_here(flow, 503)
            if number == EXCHANGES:
                self.output.requested(number, flow.request.method, flow.request.url)
                self.output.failed(number, f"was not sent, nor was what came after it: more than {EXCHANGES} requests")
            return
        if encodings := flow.request.headers.get("accept-encoding"):
            flow.request.headers["accept-encoding"] = without_unwanted(encodings)
        flow.metadata[NUMBER] = number
        self.output.requested(number, flow.request.method, flow.request.url)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """A response begins. It is forwarded in parts, since some pages wait for the beginning of an endless
        response."""
        if NUMBER in flow.metadata and flow.response and flow.response.status_code != 101:
            flow.metadata[BODY] = flow.response.stream = Body(self.budget, FULL)

    def response(self, flow: http.HTTPFlow) -> None:
        """A response has ended."""
        number = flow.metadata.pop(NUMBER, None)
        if number is None or flow.response is None:
            return
        if flow.response.status_code == 101:
            self.output.failed(number, "became a WebSocket, which is not recorded")
            return
        body: Body = flow.metadata.pop(BODY)
        if not body.refusal and not self.text_budget.reserve(size_of_head(flow.request) + size_of_head(flow.response)):
            body.drop(FULL_OF_TEXT)
        if body.refusal:
            self.output.failed(number, body.refusal)
            return
        try:
            self._keep_connection(number, flow.server_conn)
            self.output.store(number, self._exchange(flow, flow.response, bytes(body.bytes)))
        except OSError as error:
            self.output.failed(number, f"it could not be kept: {error.strerror}")

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        """A message went over a WebSocket. Drop it, since mitmproxy would keep all messages."""
        if flow.websocket:
            flow.websocket.messages.clear()

    def error(self, flow: http.HTTPFlow) -> None:
        """A request could not be sent, or its response did not end well."""
        number = flow.metadata.pop(NUMBER, None)
        if body := flow.metadata.pop(BODY, None):
            body.drop("it did not end well")
        if number is not None:
            self.output.failed(number, flow.error.msg if flow.error else "it did not end")

    def _keep_connection(self, number: int, server: connection.Server) -> None:
        """Store the observations of a connection when its first response has ended. Raises OSError."""
        if server.peername and server.id not in self.kept_connections and len(self.kept_connections) < CONNECTIONS:
            self.kept_connections.add(server.id)
            self.output.connected(number, connection_of(server, asyncio.get_running_loop().handshakes_ms))  # type: ignore[attr-defined]

    def _exchange(self, flow: http.HTTPFlow, response: http.Response, body: bytes) -> Exchange:
        request, server = flow.request, flow.server_conn
        return Exchange(
            method=request.method,
            url=request.url,
            response=Response(response.status_code, response.reason, fields(response), body),
            recorded_ip=server.peername[0] if server.peername else f"unknown server of {request.host}",
            started_ms=request.timestamp_start * 1000,
            ttfb_ms=round((response.timestamp_start - sent_at_s(request, server)) * 1000, 3),
            request_headers=fields(request),
        )


def answer_here(flow: http.HTTPFlow, status: int) -> None:
    """Answer a request with `status` in place of the server; a request whose body is being streamed is aborted."""
    if flow.request.stream:
        flow.kill()
    else:
        flow.response = http.Response.make(status)


def without_unwanted(accepted: str) -> str:
    """The value of an Accept-Encoding header without the encodings that a site must not have."""
    return ", ".join(coding for coding in accepted.split(", ") if coding not in UNWANTED_ENCODINGS)


def sent_at_s(request: http.Request, server: connection.Server) -> float:
    """When (s since 1970) the whole request had been sent to the server, as far as the proxy knows."""
    connected = server.timestamp_tls_setup or server.timestamp_tcp_setup
    times_s: list[float | None] = [request.timestamp_start, request.timestamp_end, connected]
    return max(t for t in times_s if t is not None)


def connection_of(server: connection.Server, handshakes_ms: Mapping[tuple[str, int], float]) -> Connection:
    """The observations of a connection. `handshakes_ms`: address and port of our end → duration of the TCP handshake.

    mitmproxy's own time of the handshake would include name resolution, and the proxy's other work meanwhile.
    """
    chain = server.certificate_list
    names = [name.value for name in chain[0].altnames] if chain else []
    tls_s = server.timestamp_tls_setup and server.timestamp_tls_setup - server.timestamp_tcp_setup
    # A server that does not support ALPN speaks HTTP/1.1.
    alpn = (server.alpn or b"http/1.1").decode("latin-1") if tls_s else None
    return Connection(
        server=server.peername[0],
        host=server.sni or server.address[0],
        handshake_ms=handshakes_ms.get(server.sockname[:2]),
        tls_ms=round(tls_s * 1000, 3) if tls_s else None,
        alpn=alpn,
        certificates=tuple(len(ssl.PEM_cert_to_DER_cert(certificate.to_pem().decode())) for certificate in chain),
        names=tuple(name for name in names if isinstance(name, str)),  # other entries are addresses
    )


def size_of_head(message: http.Message) -> int:
    """The size of the message's header fields in bytes, plus that of its URL if it is a request."""
    url = len(message.url) if isinstance(message, http.Request) else 0
    return url + sum(len(name) + len(value) for name, value in message.headers.fields)


def fields(message: http.Message) -> Headers:
    """A message's header fields as they were sent."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.fields)


SETTINGS = ProxySettings.of_environment()
OUTPUT = ProxyOutput(SETTINGS.exchanges, SETTINGS.events, SETTINGS.keep_cookies)
addons = [Recorder(OUTPUT, SETTINGS.handover)]
