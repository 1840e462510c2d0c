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

# The folder in `Serving.folder` for data that its receiver has not read yet. In a replay it is a separate file system,
# so that temporary data cannot take space from the logs, which only grow.
BUFFERS = "buffers"


@dataclass(frozen=True)
class ServerCertificate:
    """PEM files of a server's certificate chain and private key."""

    chain: Path
    key: Path


@dataclass(frozen=True)
class Serving:
    """All that a server needs: the site, the folder with its responses, and the file for the request log.

    `content` has the site's files, or their replacements; the server writes its files, including logs, into `folder`.
    Its programs read data from strangers, so they must run in `jail()` (`base.jail`).
    `qlog`: the folder to which the server logs the congestion control of each connection, if it can.
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    `http1`: the addresses of servers that speak only HTTP/1.1; the server must support that (`speaks_http1`).
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
        """Address → the server's certificate. The certificates are made on first use, so that programs that need none
        can start before: for 150 servers, it takes a tenth of a second."""
        return self.certify()

    def jail(self, *more: Path, certified: bool = True) -> Jail:
        """The jail of a server's programs, which may also read `more`, and the certificates if `certified`."""
        certificates = self.certificates.values() if certified else ()
        files = [file for certificate in certificates for file in (certificate.chain, certificate.key)]
        # The content may be links into the site's folder.
        readable = (self.content, self.site.folder, *dict.fromkeys(file.parent for file in files), *more)
        return Jail(readable, writable=(self.folder,))

    def listening(self) -> list[tuple[str, int]]:
        """Every address and port to serve: 443, and other recorded ports."""
        ports = {
            (address, int(authority.partition(":")[2] or 443))
            for address, authorities in self.site.servers.items()
            for authority in authorities
        }
        return sorted(ports)


class Server(ABC):
    """One server program.

    `name` is the value of `server` in protocols.toml. `transports` and `congestion_controls` are those that it
    supports; with the kernel's TCP, these are usually all that the kernel has (None). `programs` are its programs, each
    with the option that prints its version. `logs_connections`: whether it logs the congestion control of its
    connections to `Serving.qlog`; otherwise the kernel's account of TCP connections is used (`servers.kernel_sockets`).
    `choices` are the optional keys of protocols (`tuning.protocols.CHOICE`) that it supports, with the permitted
    values; None stands for all values of the key. `speaks_http1`: whether it can serve some addresses only over
    HTTP/1.1. `options_by_itself` are those of its `connection_options` that request its default behaviour, so that
    browsers that send none can be measured with it, too. `fills_window_after_loss`: whether, at the end of a recovery,
    as much is in flight as the window permits. If pacing prevents that, a validation reads the kept window from the
    server's log. `offers_alternative`: whether its responses can announce that an address also speaks HTTP/3.
    """

    name: str
    transports: tuple[str, ...]
    congestion_controls: tuple[str, ...] | None = None
    programs: ClassVar[Mapping[str, str]]
    logs_connections: bool = False
    choices: ClassVar[Mapping[str, Sequence[str | int] | None]] = {}
    speaks_http1: bool = False
    options_by_itself: tuple[str, ...] = ()
    fills_window_after_loss: bool = True
    offers_alternative: bool = False

    @abstractmethod
    def serve(self, serving: Serving) -> AbstractContextManager[None]:
        """A context in which the site is served: from when it is entered until it is left.

        Raises EyelevelError when the server cannot serve, or has ended by itself.
        """

    @abstractmethod
    def congestion_controls_taken(self, folder: Path) -> set[str] | None:
        """The congestion controls that the server's connections used in a load; None if nothing reports them.

        `folder` has the report: the server's log of its connections if it writes one, otherwise the kernel's account.
        """

    def programs_for(self, protocol: Protocol) -> Mapping[str, str]:
        """Its programs with `protocol`, each with the option that prints its version (`measure.host.machine`)."""
        return self.programs

    def lacked_buffers(self, folder: Path) -> bool:
        """Whether the server ever lacked space for data in BUFFERS, by its log in `folder`."""
        return False

    def refusal(self, protocol: Protocol) -> str | None:
        """Why the server cannot serve with `protocol`, in one line; None if it can."""
        if protocol.transport not in self.transports:
            return f"{self.name} serves over {' and '.join(self.transports)}, not over {protocol.transport}"
        if self.congestion_controls is not None and protocol.congestion_control not in self.congestion_controls:
            allowed = ", ".join(self.congestion_controls)
            return f"congestion_control must be one of {allowed} for {self.name}, not {protocol.congestion_control!r}"
        for key in protocol.given(CHOICE):
            if key not in self.choices:
                return f"{key} is not for {self.name}"
            value, values = getattr(protocol, key), self.choices[key]
            if values is not None and value not in values:
                return f"{key} must be one of {', '.join(map(str, values))} for {self.name}, not {value!r}"
        return None

    def network_refusal(self, protocol: Protocol, network: Network) -> str | None:
        """Why the server cannot serve with `protocol` on `network`, in one line; None if it can."""
        return None

    def connection_options(self, protocol: Protocol) -> tuple[str, ...]:
        """The tags that a browser must send with its connections for the server to behave as `protocol` says."""
        return protocol.connection_options

    def order_of_service(self, protocol: Protocol) -> str | None:
        """The order in which the server sends the responses of one connection, as the name of one of quic_server's
        schedulers (see `protocols.toml`); None if the order is unknown, or not under the server's control."""
        return None

    def window_segment_bytes(self, protocol: Protocol) -> int:
        """The size in bytes of the segments in which the server counts its window."""
        return protocol.segment_bytes

    def reno_kept_share(self, protocol: Protocol) -> float:
        """The share of its window that the server's Reno keeps after a loss."""
        return 0.5  # RFC 5681, section 3.1

    def cubic_connections(self, protocol: Protocol) -> int:
        """The number of connections that the server's Cubic emulates."""
        return protocol.emulated_connections or 1
