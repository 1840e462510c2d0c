"""Sites that are generated when they are first needed, and their exchanges: plain answers that no cache keeps."""

from collections.abc import Callable
from dataclasses import dataclass

from record.http1 import Headers, Response
from record.site import Exchange, Recording


@dataclass(frozen=True)
class GeneratedSite:
    """A site that is generated: what it is made by (`recorder`; one that another version made is made anew), and what
    makes it. Raises EyelevelError when it cannot be made."""

    recorder: dict[str, str]
    generate: Callable[[], Recording]


def generated_exchange(url: str, content_type: str, body: bytes, server: str, more: Headers = ()) -> Exchange:
    """A GET of `url`. The server at the IP address `server` answers with `body` and the header fields `more`."""
    headers = (("Content-Type", content_type), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"), *more)
    return Exchange("GET", url, Response(200, "OK", headers, body), server)
