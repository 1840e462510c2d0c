"""The interface of a browser to the rest of the testbed. Browsertime drives it (`browsers.browsertime`)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from base.errors import EyelevelError
from base.places import tool
from browsers.window import Window
from tuning.protocols import Protocol

# The parts of a browser, as far as it has a process for each: the first coordinates the others, a renderer runs scripts
# and lays out pages, the third is the network stack, and the last paints.
PARTS = ("browser", "renderer", "network", "gpu")
# The folder in a load's results that is the browser's HOME.
HOME = "home"
# The error of a request for a host that does not exist; every browser's own name is mapped to it.
NAME_NOT_RESOLVED = "ERR_NAME_NOT_RESOLVED"
WEB_SCHEMES = ("http", "https", "ws", "wss")


@dataclass(frozen=True)
class Page:
    """The page that a browser loads: its URL, the window, and the user agent (by default the browser's).

    `hosts` are all hosts that exist; no other name is resolved. `authorities` are those of its servers: host, or
    host:port. `proxy`: the host and port of a proxy of CONNECT-UDP (RFC 9298), through which everything is loaded.
    """

    url: str
    hosts: tuple[str, ...]
    authorities: tuple[str, ...]
    window: Window
    user_agent: str | None = None
    proxy: tuple[str, int] | None = None


@dataclass(frozen=True)
class Build:
    """A build of the browser `kind`, called `name`: its program and its driver."""

    name: str
    kind: str
    program: Path
    driver: Path

    def __str__(self) -> str:
        """The build as users write it."""
        return f"{self.name}={self.kind}:{self.program}:{self.driver}"

    @property
    def folder(self) -> Path:
        """The folder of the program itself, not of a link to it."""
        return self.program.resolve().parent


@dataclass
class Request:
    """One request, or one hop of a redirected request, as the browser's network stack saw it.

    `protocol` (http/1.1, h2 or h3) is None until the request was sent or answered, depending on the browser's log.
    `status` is None until it was answered. `address` is None, too, when a proxy resolves names. `error` is the
    browser's name for a failure of the network, or NAME_NOT_RESOLVED (the same for all browsers); it is None when the
    page or the cache ended the request. `redirected`: whether it follows from a redirect of the hop before, by a server
    or within the browser. `by_browser`: whether no page made it; `initiator` is the origin of the page that did.
    `began_s` and `ended_s` (s since 1970) are None when the log does not have them. `knows_alternative`: whether the
    browser knew, when it needed a connection, that the server also speaks another version; `announces_alternative`:
    whether the response said so (Alt-Svc, RFC 7838). Both are False if the log does not say.
    """

    url: str
    method: str
    main_frame: bool
    by_browser: bool
    address: str | None = None
    protocol: str | None = None
    status: int | None = None
    error: str | None = None
    initiator: str | None = None
    began_s: float | None = None
    ended_s: float | None = None
    knows_alternative: bool = False
    announces_alternative: bool = False
    redirected: bool = False

    @property
    def is_of_web(self) -> bool:
        """Whether a server could answer it; pages also request URLs such as `about:blank` or `intent:`."""
        return urlsplit(self.url).scheme in WEB_SCHEMES


@dataclass(frozen=True)
class StreamRequest:
    """A request on a stream of HTTP/2 or HTTP/3, with the priority that the browser gave it, and its response's data.

    `urgency` is from 0, the most urgent, to 7. `incremental`: whether a part of the response is already useful (RFC
    9218 section 4). `connection`: a number that the browser gave it. `sent_s` (s since 1970) is None if the log does
    not have it. `arrivals`: when data arrived (s since 1970), and how many bytes of it had not arrived before. Over
    HTTP/3, these include the response's headers.
    """

    stream: int
    url: str
    urgency: int = 3
    incremental: bool = False
    connection: int = 0
    sent_s: float | None = None
    arrivals: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True)
class Transfer:
    """The transfer between servers and a browser during some time, in bytes, according to the browser's log.

    `content_bytes` counts the encoded content of responses. `received_bytes` and `sent_bytes` count whole IP packets.
    Over UDP, they are the data read and written plus the headers of each datagram. Over TCP, they are the data read
    plus the headers of as many full segments as it needs, so segments without data, and data that arrived twice, are
    missing. `sent_bytes` is None over TCP, since most of it would be acknowledgements. `connections` counts those (TCP
    or QUIC) that received anything from a server, `servers` the IP addresses of these servers.
    """

    content_bytes: int
    received_bytes: int
    sent_bytes: int | None
    connections: int = 0
    servers: int = 0


class Browser(ABC):
    """One browser.

    `programs` are its program and its driver, each with the option that prints its version. They run in a jail
    (`base.jail`), which
    contains no other files of the project but `return_visit` and Browsertime. `changes` are modules that adapt
    Browsertime to this browser, and `reads` are further files that these modules and the browser read. One of the
    modules adds `requestsUnderWay` to Browsertime's SeleniumRunner: how many requests of the page have not ended.
    `network_log` is the name of the file in a load's folder with all its requests (`dataset.run_files.NETWORK_LOGS`
    matches it). `return_visit` is a Browsertime script that loads a page as a returning visitor: the browser knows the
    servers, but has no connection to them and empty caches. The script reads the URL from the environment variable
    EYELEVEL_RETURN_URL. A browser without such a script refuses `early_data`. `sends_connection_options`: whether the
    browser can be made to send connection options (tags) to QUIC servers.

    `build`: the build that a user names by path, which has a name of its own; None for the installed browser. A browser
    that has builds defines patterns of the lines that its program and its `driver` print with --version, `version_line`
    and `driver_line`; their groups are the major versions. `driver_has_its_version`: whether these must be the same.
    """

    name: str
    programs: ClassVar[Mapping[str, str]]
    network_log: str
    changes: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()
    return_visit: Path | None = None
    sends_connection_options: bool = True
    version_line: str = ""
    driver: str = ""
    driver_line: str = ""
    driver_has_its_version: bool = True

    def __init__(self, build: Build | None = None) -> None:
        self.build = build
        if build:
            self.name = build.name

    @property
    def kind(self) -> str:
        """The name of the browser of which this is a build; else its own."""
        return self.build.kind if self.build else self.name

    def files(self) -> dict[str, Path]:
        """The names of the program and of its driver → their files. Raises EyelevelError when they are not
        installed."""
        if self.build:
            return {self.name: self.build.program, f"{self.name} {self.driver}": self.build.driver}
        return {program: tool(program) for program in self.programs}

    def measured_files(self) -> dict[str, Path]:
        """The same as `files`, with the program that runs in place of a script of the system that starts it. Raises
        EyelevelError."""
        return self.files()

    def readable(self) -> list[Path]:
        """All files and folders that its programs read, except for the system's and a load's own. Raises
        EyelevelError."""
        return [*self.files().values(), *self.reads, *([self.build.folder] if self.build else [])]

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings that are the same for every load and influence its result."""

    @abstractmethod
    def browsertime_options(
        self, page: Page, protocol: Protocol, connection_options: tuple[str, ...], results: Path
    ) -> dict[str, Any]:
        """The part of Browsertime's configuration to load `page` in this browser over `protocol`.

        `connection_options` are the tags to send to a QUIC server (`servers.contract`). Files that the browser itself
        writes go to `results`.
        """

    def live_options(self, page: Page, addresses: Mapping[str, str], results: Path) -> dict[str, Any]:
        """The part of Browsertime's configuration to load `page` from the web itself, otherwise as in a replay.

        Browser and servers negotiate the protocol. The browser reaches only the `addresses` (host → address of its
        server), and looks up no names. Raises EyelevelError if it cannot do this.
        """
        raise EyelevelError(f"{self.name} cannot load pages live; chromium can")

    @abstractmethod
    def trust(self, certificate: Path, results: Path) -> None:
        """Make the browser of the load with these `results` accept the certificate authority of `certificate`.

        Call this before its options are requested. Raises EyelevelError.
        """

    @abstractmethod
    def keep_network_log(self, results: Path, folder: Path) -> None:
        """Copy the network stack's log from `results` into `folder`, as `network_log`, complete or cut off.

        A page may have put anything into `results`, links included (`base.jail.file_in`).
        """

    def log_parsed_once(self, folder: Path) -> AbstractContextManager[None]:
        """A context in which the following methods parse the `network_log` of `folder` only once."""
        return nullcontext()

    @abstractmethod
    def read_requests(self, folder: Path) -> list[Request]:
        """The requests in the `network_log` of `folder`, in the order they were made; its end may be cut off.

        Raises OSError, EOFError, ValueError or KeyError when it is missing or broken.
        """

    def read_streams(self, folder: Path) -> list[StreamRequest]:
        """The streams of the requests in the `network_log` of `folder`, in the order they were sent.

        Several connections may use the same number. Empty if the log does not have them. Raises OSError, EOFError,
        ValueError or KeyError when the log is missing or broken.
        """
        return []

    def read_handshakes(self, folder: Path) -> dict[str, float]:
        """Address of a server → the duration of the shortest TCP handshake with it (ms), from the `network_log` of
        `folder`.

        Empty if the log does not have them. Raises OSError, EOFError, ValueError or KeyError when the log is missing or
        broken.
        """
        return {}

    def read_transfer(self, folder: Path, began_s: float, ended_s: float) -> Transfer | None:
        """The transfer from `began_s` to `ended_s` (s since 1970), from the `network_log` of `folder`.

        None if the log does not have it. Raises OSError, EOFError, ValueError or KeyError when the log is missing or
        broken.
        """
        return None

    @abstractmethod
    def screenshot_command(self, url: str, picture: Path) -> list[str | Path]:
        """The command line that opens a page of this machine without a window, writes `picture`, and ends."""

    @abstractmethod
    def part(self, command: str) -> str | None:
        """The one of `PARTS` that a process with this `command` line is; None if the browser has no such process."""

    def refusal(self, protocol: Protocol) -> str | None:
        """Why this browser cannot load pages over `protocol`, in one line; None if it can."""
        return None

    def page_refusal(self, page: Page, protocol: Protocol) -> str | None:
        """Why this browser cannot load `page` over `protocol`, in one line, although it supports the protocol; None if
        it can."""
        return None

    def was_sent(self, entry: Mapping[str, Any]) -> bool:
        """Whether the request of an `entry` of the HAR went to a server, rather than to a cache."""
        return True
