"""A server of HTTP/3, on aioquic: it passes requests on to Eyelevel's application, and sends what that answers.

h3_server.py ADDRESS PORT CERTIFICATE KEY UPSTREAM
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.tls import CipherSuite

ADDRESS, PORT, CERTIFICATE, KEY, UPSTREAM = sys.argv[1:]
NOT_PASSED_ON = ("connection", "content-length", "transfer-encoding")
POOL = ThreadPoolExecutor(200)


def answer(request):
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in request}
    upstream = HTTPConnection(UPSTREAM.removeprefix("http://"))
    upstream.putrequest(fields[":method"], fields[":path"], skip_host=True, skip_accept_encoding=True)
    for name, value in {"host": fields[":authority"], **fields}.items():
        if name not in NOT_PASSED_ON and not name.startswith(":"):
            upstream.putheader(name, value)
    upstream.endheaders()  # the answer does not depend on the request's body
    response = upstream.getresponse()
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.getheaders()]
    headers = [field for field in headers if field[0] not in (b"connection", b"transfer-encoding")]
    return [(b":status", str(response.status).encode()), *headers], response.read()


class Connection(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event):
        self.http, self.requests = (self.http, self.requests) if self.http else (H3Connection(self._quic), {})
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                self.requests[part.stream_id] = part.headers
            if isinstance(part, HeadersReceived | DataReceived) and part.stream_ended:
                answered = asyncio.get_running_loop().run_in_executor(POOL, answer, self.requests.pop(part.stream_id))
                answered.add_done_callback(partial(self.respond, part.stream_id))

    def respond(self, stream, answered):
        headers, body = answered.result()
        self.http.send_headers(stream, headers)
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.cipher_suites = [CipherSuite.AES_128_GCM_SHA256]
    configuration.load_cert_chain(CERTIFICATE, KEY)
    await serve(ADDRESS, int(PORT), configuration=configuration, create_protocol=Connection)
    await asyncio.Event().wait()


asyncio.run(main())
