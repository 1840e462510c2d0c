"""The interface of a browser to the rest of the testbed. Browsertime drives it (`browsers.browsertime`)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from base.errors import EyelevelError
from browsers.window import Window
from tuning.protocols import Protocol

# The purposes of a browser's processes, as far as it has one for each: one holds it together, one runs a page's scripts
# and lays it out, one is the network stack, and one paints.
PARTS = ("browser", "renderer", "network", "gpu")
# The folder of a load's results that is HOME to the browser.
HOME = "home"
# The error of a request for a host that does not exist, whatever the browser calls it.
NAME_NOT_RESOLVED = "ERR_NAME_NOT_RESOLVED"
WEB_SCHEMES = ("http", "https", "ws", "wss")


@dataclass(frozen=True)
class Page:
    """The page that a browser loads: a URL, in a window, as a user agent (its default unless given).

    `hosts` are all that there are; no other name exists. `authorities` are those of its servers: host, or host:port.
    `proxy`: the host and port of a proxy of CONNECT-UDP (RFC 9298), through which all of it is loaded.
    """

    url: str
    hosts: tuple[str, ...]
    authorities: tuple[str, ...]
    window: Window
    user_agent: str | None = None
    proxy: tuple[str, int] | None = None


@dataclass
class Request:
    """One request, or one hop of a redirected one, as the browser's network stack saw it.

    `protocol` is None until it was sent, or answered, as the browser logs it (else http/1.1, h2 or h3), `status` until
    it was answered; `address` is also None behind a proxy that resolves names. `error` is the browser's name for what
    the network did to end it, not for what the page or the cache did, but NAME_NOT_RESOLVED for all browsers. A hop is
    `redirected` to by the one before, also within the browser, without a server's doing. A request
    `by_browser` was asked for by no page; `initiator` is the origin of the page that asked. It began and ended at
    `began_s` and `ended_s` (s since 1970), None when the log does not say it. `knows_alternative`: whether the browser
    knew, when it wanted a connection for it, that the server speaks another version, too; `announces_alternative`:
    whether the response said so (Alt-Svc, RFC 7838). Both are False where the log does not say it.
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
        """Whether a server could answer it, unlike what a page asks for as `about:blank` or `intent:`."""
        return urlsplit(self.url).scheme in WEB_SCHEMES


@dataclass(frozen=True)
class StreamRequest:
    """A request on its stream of HTTP/2 or HTTP/3, with the priority that the browser gave it.

    `urgency` is from 0, the most urgent, to 7, and `incremental` says whether a part of the response is of use
    (RFC 9218 section 4).
    """

    stream: int
    url: str
    urgency: int = 3
    incremental: bool = False


@dataclass(frozen=True)
class Transfer:
    """The transfer between servers and a browser in some time, in bytes, as the browser's log has it.

    `content_bytes` are of responses' content, with its coding. `received_bytes` and `sent_bytes` are of whole IP
    packets: over UDP, the data read and written with the headers of each datagram; over TCP, the data read with the
    headers of as many full segments as it needs, so that segments without data, and data that came twice, are missing.
    `sent_bytes` is None over TCP, since its acknowledgements are most of it. `connections` are those, of TCP or QUIC,
    over which anything came from a server.
    """

    content_bytes: int
    received_bytes: int
    sent_bytes: int | None
    connections: int = 0


class Browser(ABC):
    """One browser program.

    `name` is what it is called by. `programs` are its programs, each with the option by which it prints its version.
    They run in a jail (`base.jail`), in which there is nothing else of ours but `return_visit` and Browsertime.
    `changes` are modules that change Browsertime for this browser, and `reads` what else these and the browser read.
    One of them adds `requestsUnderWay` to Browsertime's SeleniumRunner: how many requests of the page have not ended.
    `network_log` is the file in a load's folder that has all its requests (`dataset.run_files.NETWORK_LOGS` matches its
    name). `return_visit` is a script of Browsertime's
    that loads a page by a browser that has been there before: it knows the servers, but has no connection to them, and
    nothing in its caches. The URL is in the environment, as EYELEVEL_RETURN_URL. A browser without one refuses
    `early_data`. `sends_connection_options`: whether it can be made to send servers of QUIC such tags.
    """

    name: str
    programs: ClassVar[Mapping[str, str]]
    network_log: str
    changes: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()
    return_visit: Path | None = None
    sends_connection_options: bool = True

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings of its switches that are the same for every load and matter to its result."""

    @abstractmethod
    def browsertime_options(
        self, page: Page, protocol: Protocol, connection_options: tuple[str, ...], results: Path
    ) -> dict[str, Any]:
        """The part of Browsertime's configuration by which it loads `page` in this browser over `protocol`.

        `connection_options` are the tags that a server of QUIC wants to get (`servers.contract`). Files that the
        browser itself writes go to `results`.
        """

    def live_options(self, page: Page, addresses: Mapping[str, str], results: Path) -> dict[str, Any]:
        """The part of Browsertime's configuration by which it loads `page` from the web itself, over what it and the
        servers agree on, and otherwise as in a replay. Whatever the page asks for, it reaches the `addresses` alone
        (host → address of its server), and looks no name up.

        Raises EyelevelError where it cannot.
        """
        raise EyelevelError(f"{self.name} cannot load pages live; chromium can")

    @abstractmethod
    def trust(self, certificate: Path, results: Path) -> None:
        """Make the browser of the load with these `results` accept the certificate authority of `certificate`, before
        its options are asked for. Raises EyelevelError."""

    @abstractmethod
    def keep_network_log(self, results: Path, folder: Path) -> None:
        """Put what is in `results` of its network stack's account into `folder`, as `network_log`, whole or not.

        A page may have made `results` what it likes, links included (`base.jail.file_in`).
        """

    @abstractmethod
    def read_requests(self, folder: Path) -> list[Request]:
        """The requests in the `network_log` of `folder`, in the order they were made; it may have been cut short.

        Raises OSError, EOFError, ValueError or KeyError when it is missing or broken.
        """

    def read_streams(self, folder: Path) -> list[StreamRequest]:
        """The streams in the `network_log` of `folder` by which requests were sent, in order.

        Several connections may use the same number. Empty if the log does not have them. Raises OSError, EOFError,
        ValueError or KeyError when the log is missing or broken.
        """
        return []

    def read_handshakes(self, folder: Path) -> dict[str, float]:
        """Address of a server → how long the shortest handshake of TCP with it took (ms), by the `network_log` of
        `folder`.

        Empty if the log does not have them. Raises OSError, EOFError, ValueError or KeyError when the log is missing or
        broken.
        """
        return {}

    def read_transfer(self, folder: Path, began_s: float, ended_s: float) -> Transfer | None:
        """The transfer from `began_s` to `ended_s` (s since 1970) by the `network_log` of `folder`.

        None if the log does not have it. Raises OSError, EOFError, ValueError or KeyError when the log is missing or
        broken.
        """
        return None

    @abstractmethod
    def screenshot_command(self, url: str, picture: Path) -> list[str | Path]:
        """The command line that shows a page of this machine to nobody, writes `picture`, and ends."""

    @abstractmethod
    def part(self, command: str) -> str | None:
        """Which of `PARTS` a process with the command line `command` is; None when the browser has no such process."""

    def refusal(self, protocol: Protocol) -> str | None:
        """Why it cannot load over `protocol`, in one line; None if it can."""
        return None

    def page_refusal(self, page: Page, protocol: Protocol) -> str | None:
        """Why it cannot load `page` over a `protocol` that it can load pages over, in one line; None if it can."""
        return None

    def was_sent(self, entry: Mapping[str, Any]) -> bool:
        """Whether the request of an `entry` of the HAR went to a server, rather than to a cache."""
        return True
