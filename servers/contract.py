"""What a server is to the rest of the testbed: a block inside which a site is being served."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from record.site import Site
from servers.certificates import ServerCertificate
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Serving:
    """What a server needs: the site, the folder its responses lie in, and where to log requests.

    `content` has the site's files, or what stands in for them; `folder` is the server's own, for what it makes.
    `qlog`: the folder to which the server logs what the congestion control of each connection does, if it can.
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    """

    site: Site
    content: Path
    protocol: Protocol
    folder: Path
    certificates: dict[str, ServerCertificate]
    request_log: Path | None
    qlog: Path | None = None
    think_time: bool = False

    def listening(self) -> list[tuple[str, int]]:
        """Every address and port that must be served: 443, and what else was recorded there."""
        ports = {
            (address, int(authority.partition(":")[2] or 443))
            for address, authorities in self.site.servers.items()
            for authority in authorities
        }
        return sorted(ports)


# Every server is up when the block is entered and gone when it is left; it raises EyelevelError when it
# cannot serve, or ended by itself.
Server = Callable[[Serving], AbstractContextManager[None]]
