"""Exchanges that are generated, not recorded: plain answers that no cache keeps."""

from record.http1 import Headers, Response
from record.site import Exchange


def generated_exchange(url: str, content_type: str, body: bytes, server: str, more: Headers = ()) -> Exchange:
    """A GET of `url`. The server at the IP address `server` answers with `body` and the header fields `more`."""
    headers = (("Content-Type", content_type), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"), *more)
    return Exchange("GET", url, Response(200, "OK", headers, body), server)
