"""mitmproxy's side of a recording: forwards every response as it comes, and keeps what was sent.

mitmdump loads this in its own Python, with the project on the path. So this module, and all that it imports from the
project, needs nothing but the standard library and mitmproxy; `tests/record/test_recorder.py` checks it.
"""

from itertools import count

from mitmproxy import connection, ctx, http, version  # type: ignore[import-not-found]

from record.http1 import Headers, Response
from record.limits import BODY_BYTES
from record.recorder.browser_options import is_background_request
from record.recorder.proxy_output import ProxyOutput
from record.site import Exchange

# To make a page repeatable, or its links https, its text must be decoded. record/content.py cannot decode these, and
# no switch of the browser turns them off.
UNDECODABLE_ENCODINGS = {"zstd", "dcb", "dcz"}

NUMBER, BODY = "eyelevel-number", "eyelevel-body"


class Body:
    """Collects a body on its way to the browser."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.too_long = False

    def __call__(self, part: bytes) -> bytes:
        self.too_long = self.too_long or len(self.bytes) + len(part) > BODY_BYTES
        if self.too_long:
            self.bytes.clear()
        else:
            self.bytes += part
        return part


class Recorder:
    """The addon. mitmproxy calls its methods by their names."""

    def __init__(self, output: ProxyOutput) -> None:
        self.output = output
        self.numbers = count()

    def running(self) -> None:
        """The proxy is up."""
        _, port, *_ = ctx.master.addons.get("proxyserver").listen_addrs()[0]
        self.output.listening(port, f"mitmproxy {version.VERSION}")

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """A request begins. Those that no page made are answered here: they are neither sent nor recorded."""
        fetch_site, fetch_mode = (flow.request.headers.get(f"sec-fetch-{name}") for name in ("site", "mode"))
        if is_background_request(flow.request.host, fetch_site, fetch_mode):
            flow.response = http.Response.make(404)
            return
        if encodings := flow.request.headers.get("accept-encoding"):
            flow.request.headers["accept-encoding"] = without_undecodable(encodings)
        number = next(self.numbers)
        flow.metadata[NUMBER] = number
        self.output.requested(number, flow.request.method, flow.request.url)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """A response begins. It is forwarded in parts, since some pages wait for the beginning of an endless one."""
        if NUMBER in flow.metadata and flow.response and flow.response.status_code != 101:
            flow.metadata[BODY] = flow.response.stream = Body()

    def response(self, flow: http.HTTPFlow) -> None:
        """A response has ended."""
        number = flow.metadata.pop(NUMBER, None)
        if number is None or flow.response is None:
            return
        if flow.response.status_code == 101:
            self.output.failed(number, "became a WebSocket, which is not recorded")
        elif flow.metadata[BODY].too_long:
            self.output.failed(number, f"its body is longer than {BODY_BYTES >> 20} MiB")
        else:
            self.output.store(number, self._exchange(flow, flow.response, bytes(flow.metadata[BODY].bytes)))

    def error(self, flow: http.HTTPFlow) -> None:
        """A request could not be sent, or its response did not end well."""
        number = flow.metadata.pop(NUMBER, None)
        if number is not None:
            self.output.failed(number, flow.error.msg if flow.error else "it did not end")

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


def without_undecodable(accepted: str) -> str:
    """An Accept-Encoding header's value without those that a site's text cannot be decoded from."""
    return ", ".join(coding for coding in accepted.split(", ") if coding not in UNDECODABLE_ENCODINGS)


def sent_at_s(request: http.Request, server: connection.Server) -> float:
    """When the whole request had gone to the server, as near as the proxy knows; a time of day in seconds."""
    connected = server.timestamp_tls_setup or server.timestamp_tcp_setup
    times_s: list[float | None] = [request.timestamp_start, request.timestamp_end, connected]
    return max(t for t in times_s if t is not None)


def fields(message: http.Message) -> Headers:
    """A message's header fields as they were sent."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.fields)


addons = [Recorder(ProxyOutput.of_environment())]
