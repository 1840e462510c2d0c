"""The contract between a server and the rest of the testbed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from base.jail import Jail
from record.site import Site
from tuning.networks import Network
from tuning.protocols import CHOICE, Protocol

# Where, in `Serving.folder`, servers keep what was not read by its receiver yet. In a replay it is a file system of its
# own: what is kept there for a moment cannot take space from the logs, which only grow.
BUFFERS = "buffers"


@dataclass(frozen=True)
class ServerCertificate:
    """PEM files of a server's certificate chain and private key."""

    chain: Path
    key: Path


@dataclass(frozen=True)
class Serving:
    """All that a server needs: the site, the folder its responses lie in, and where to log requests.

    `content` has the site's files, or what stands in for them; the server makes its files in `folder`, in which its
    logs lie, too. Its programs read what strangers wrote, so they are to run in `jail()` (`base.jail`).
    `qlog`: the folder to which the server logs what the congestion control of each connection does, if it can.
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    `http1`: the addresses of servers that speak HTTP/1.1 alone, which a server must be able to (`speaks_http1`).
    """

    site: Site
    content: Path
    protocol: Protocol
    folder: Path
    certify: Callable[[], dict[str, ServerCertificate]]
    request_log: Path | None
    qlog: Path | None = None
    think_time: bool = False
    http1: frozenset[str] = frozenset()

    @cached_property
    def certificates(self) -> dict[str, ServerCertificate]:
        """The servers' certificates, by address. They are made when they are asked for first, which for 150 servers
        takes a tenth of a second: what needs none may start before."""
        return self.certify()

    def jail(self, *more: Path, certified: bool = True) -> Jail:
        """The jail of a server's programs, with `more` to read, and with the certificates if they are `certified`."""
        certificates = self.certificates.values() if certified else ()
        files = [file for certificate in certificates for file in (certificate.chain, certificate.key)]
        # The content may be links into the site's folder.
        readable = (self.content, self.site.folder, *dict.fromkeys(file.parent for file in files), *more)
        return Jail(readable, writable=(self.folder,))

    def listening(self) -> list[tuple[str, int]]:
        """Every address and port that must be served: 443, and what else was recorded there."""
        ports = {
            (address, int(authority.partition(":")[2] or 443))
            for address, authorities in self.site.servers.items()
            for authority in authorities
        }
        return sorted(ports)


class Server(ABC):
    """One server program.

    `name` is what `server` in protocols.toml says. `transports` and `congestion_controls` are those that it has.
    `programs` are its programs, each with the option by which it prints its version. `logs_connections` says whether it
    logs the congestion control of its connections to `Serving.qlog`; that of others is the kernel's, and is asked there
    (`servers.kernel_sockets`). `choices` are the keys of protocols that not every server takes
    (`tuning.protocols.CHOICE`), with the values that it takes, None where it takes all that protocols may have.
    `speaks_http1`: whether it can serve some addresses over HTTP/1.1 alone. `options_by_itself` are those of its
    `connection_options` that ask for what it does anyway, so that a browser that sends none can be measured with it,
    too. `fills_window_after_loss`: whether as much is in flight when a loss is made good as the window lets; where its
    pacing prevents that, a validation reads from its log which window it kept. `offers_alternative`: whether its
    responses can say that an address speaks HTTP/3, too.
    """

    name: str
    transports: tuple[str, ...]
    congestion_controls: tuple[str, ...]
    programs: ClassVar[Mapping[str, str]]
    logs_connections: bool = False
    choices: ClassVar[Mapping[str, Sequence[str | int] | None]] = {}
    speaks_http1: bool = False
    options_by_itself: tuple[str, ...] = ()
    fills_window_after_loss: bool = True
    offers_alternative: bool = False

    @abstractmethod
    def serve(self, serving: Serving) -> AbstractContextManager[None]:
        """A block inside which the site is served: up when it is entered, gone when it is left.

        Raises EyelevelError when the server cannot serve, or has ended by itself.
        """

    @abstractmethod
    def congestion_controls_taken(self, folder: Path) -> set[str] | None:
        """The server's account of a load: the congestion controls that its connections had; None if it gives none.

        `folder` has what was logged of them: by itself if it logs connections, else of the kernel.
        """

    def lacked_buffers(self, folder: Path) -> bool:
        """Whether there was ever no space for what it keeps in BUFFERS, according to its log in `folder`."""
        return False

    def refusal(self, protocol: Protocol) -> str | None:
        """Why it cannot serve by `protocol`, in one line; None if it can."""
        if protocol.transport not in self.transports:
            return f"{self.name} serves over {' and '.join(self.transports)}, not over {protocol.transport}"
        if protocol.congestion_control not in self.congestion_controls:
            allowed = ", ".join(self.congestion_controls)
            return f"congestion_control must be one of {allowed} for {self.name}, not {protocol.congestion_control!r}"
        for key in protocol.given(CHOICE):
            if key not in self.choices:
                return f"{self.name} has no {key} to choose"
            value, values = getattr(protocol, key), self.choices[key]
            if values is not None and value not in values:
                return f"{key} must be one of {', '.join(map(str, values))} for {self.name}, not {value!r}"
        return None

    def network_refusal(self, protocol: Protocol, network: Network) -> str | None:
        """Why it cannot serve by `protocol` behind `network`, in one line; None if it can."""
        return None

    def connection_options(self, protocol: Protocol) -> tuple[str, ...]:
        """The tags that a browser must send with its connections, so that the server does as `protocol` says."""
        return protocol.connection_options

    def order_of_service(self, protocol: Protocol) -> str | None:
        """The order in which it sends the responses of one connection, by the name of a scheduler of quic_server (see
        `protocols.toml`); None if that is not known, or not the server's to say."""
        return None

    def window_segment_bytes(self, protocol: Protocol) -> int:
        """The bytes of the unit in which the server counts its window."""
        return protocol.segment_bytes

    def reno_kept_share(self, protocol: Protocol) -> float:
        """The share of its window that its Reno keeps after a loss."""
        return 0.5  # RFC 5681, section 3.1

    def cubic_connections(self, protocol: Protocol) -> int:
        """As how many connections its Cubic behaves."""
        return protocol.emulated_connections or 1
