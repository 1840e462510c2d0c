"""Sites that are generated when they are first needed, and their exchanges: plain responses that no cache stores."""

from collections.abc import Callable
from dataclasses import dataclass

from record.http1 import Headers, Response
from record.site import Exchange, Recording


@dataclass(frozen=True)
class GeneratedSite:
    """A site that is generated.

    `recorder`: the program and version that generate it; a site made by another version is generated again. `generate`
    makes it, and raises EyelevelError when it cannot. `is_for_study`: only its study can load it, so nobody else may
    choose it.
    """

    recorder: dict[str, str]
    generate: Callable[[], Recording]
    is_for_study: bool = False


def generated_exchange(url: str, content_type: str, body: bytes, server: str, more: Headers = ()) -> Exchange:
    """A GET of `url`. The server at the IP address `server` answers with `body` and the further header fields
    `more`."""
    headers = (("Content-Type", content_type), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"), *more)
    return Exchange("GET", url, Response(200, "OK", headers, body), server)
