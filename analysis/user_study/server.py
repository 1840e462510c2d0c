"""A small server for a kit: its pages, and a place for votes.

It serves the kit's own files, which it lists at its start, and appends votes to one file; no path comes from a client.
Anyone who reaches its port can send votes, so votes are checked and their number is limited.
"""

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any
from urllib.parse import urlsplit

from analysis.user_study.clips import Key, read_key
from analysis.user_study.kit import SITE, VOTES
from analysis.user_study.votes import FILE, MOST_BYTES, append_vote, parse_vote, read_votes
from base.errors import EyelevelError

MOST_VOTE_BYTES = 4096
MOST_CONNECTIONS = 64
# The longest wait for announced data, and for a client that reads nothing (s).
PATIENCE_S = 30
# A whole request must arrive within this time, however steadily its bytes come (s).
REQUEST_S = 60
# The most connections of one address, so that others find room; this limit does not apply if the server is only
# reachable from this machine.
MOST_CONNECTIONS_OF_ONE = 32
# The most votes from one address in a minute of the clock; people take seconds for each vote.
MOST_VOTES_A_MINUTE = 600
WARNING_BYTES = 10_000_000
# A client that reads a film more slowly than this is disconnected.
SLOWEST_BYTES_PER_S = 20_000
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mp4": "video/mp4",
}
HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    # From this field the page knows that it can send votes here.
    ("eyelevel-votes", "yes"),
)


class Collector:
    """The files of the kit in `folder`, by the paths of their URLs, and its votes. Raises EyelevelError."""

    def __init__(self, folder: Path) -> None:
        self.key: Key = read_key(folder)
        self.file = folder / VOTES / FILE
        site = folder / SITE
        self.files: Mapping[str, Path] = {
            f"/{file.relative_to(site)}": file
            for file in sorted(site.rglob("*"))
            if file.is_file() and not file.is_symlink() and file.suffix in TYPES
        }
        if "/index.html" not in self.files:
            raise EyelevelError(f"{site} has no index.html; 'make user-study CAMPAIGN=…' writes it")
        self._clips = self.key.by_name()
        self.file.parent.mkdir(exist_ok=True)
        table = read_votes(self.file.parent, self.key).table
        self._known = set(zip(table["participant"], table["trial"], strict=True))
        self._lock = threading.Lock()
        self._has_warned = False

    def add(self, document: Any) -> bool:
        """Store the vote in `document`, once; returns whether there is room. Raises EyelevelError, OSError."""
        vote = parse_vote(document, self._clips, self.key.study)
        with self._lock:
            if vote.identity in self._known:
                return True
            if self.file.exists() and self.file.stat().st_size > MOST_BYTES - MOST_VOTE_BYTES:
                return False
            append_vote(self.file, vote)
            self._known.add(vote.identity)
            if not self._has_warned and self.file.stat().st_size > WARNING_BYTES:
                self._has_warned = True
                most = f"{WARNING_BYTES // 1_000_000} MB"
                sys.stderr.write(
                    f"eyelevel: WARNING: {self.file} has more than {most}: do its votes come from people?\n"
                )
        return True


class StudyServer(ThreadingHTTPServer):
    """A server of the kit of `collector`, with a limit on connections.

    Clients that send or read nothing for `patience_s` are disconnected.
    """

    daemon_threads = True
    # With a shorter queue, the kernel resets some of the connections that arrive at once.
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int],
        collector: Collector,
        patience_s: float = PATIENCE_S,
        request_s: float = REQUEST_S,
        minute: Callable[[], int] = lambda: int(time.monotonic() // 60),
    ) -> None:
        self.collector = collector
        self.patience_s = patience_s
        self.request_s = request_s
        self._minute = minute
        self._lock = threading.Lock()
        self._connections: Counter[str] = Counter()
        self._votes: tuple[int, Counter[str]] = (0, Counter())
        super().__init__(address, Handler)
        # On loopback, all clients share one address: the clients of a proxy in front, and all users of the machine.
        self.is_local = ip_address(str(self.server_address[0])).is_loopback
        self._most_of_one = MOST_CONNECTIONS if self.is_local else MOST_CONNECTIONS_OF_ONE

    def process_request(self, request: Any, client_address: Any) -> None:
        """Close the connection at once if there are too many."""
        client = client_address[0]
        with self._lock:
            has_room = self._connections.total() < MOST_CONNECTIONS and self._connections[client] < self._most_of_one
            self._connections[client] += has_room
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the request, then free its place for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections -= Counter([client_address[0]])

    def may_vote(self, client: str) -> bool:
        """Whether the address `client` may send a vote now, within the limit for this minute. Each call counts as a
        vote."""
        now = self._minute()
        with self._lock:
            if self._votes[0] != now:
                self._votes = (now, Counter())
            self._votes[1][client] += 1
            return self._votes[1][client] <= MOST_VOTES_A_MINUTE

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Ignore the error: a client that disconnects is no fault of the server."""


class Handler(BaseHTTPRequestHandler):
    """Answers requests for the pages, and takes votes."""

    server: StudyServer
    # The headers do not reveal programs and versions.
    server_version, sys_version = "eyelevel", ""

    def setup(self) -> None:
        """Limit each wait for the client to `patience_s`, and the whole connection to `request_s`."""
        self.request.settimeout(self.server.patience_s)
        self._deadline = threading.Timer(self.server.request_s, self._hang_up)
        self._deadline.daemon = True
        self._deadline.start()
        super().setup()

    def finish(self) -> None:
        """Stop the timer of the request's deadline."""
        self._deadline.cancel()
        super().finish()

    def parse_request(self) -> bool:
        """On loopback, also refuse requests whose Host is not this machine's: a foreign page can make its own name
        resolve to this address (DNS rebinding)."""
        if not super().parse_request():
            return False
        name = urlsplit(f"//{self.headers.get('host', '')}").hostname
        if self.server.is_local and name not in LOCAL_NAMES:
            self.send_error(403, explain="the Host of requests must be this machine's: localhost, or its address")
            return False
        return True

    def do_GET(self) -> None:
        """Send a file of the kit."""
        path = urlsplit(self.path).path
        file = self.server.collector.files.get("/index.html" if path == "/" else path)
        if file is None:
            self._answer(404)
        else:
            self._answer(200, file.read_bytes(), TYPES[file.suffix])

    def do_POST(self) -> None:
        """Take a vote."""
        if self.path != "/votes":
            self._answer(404)
            return
        # A foreign page can only send forms, which have other types.
        if self.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            self._answer(415)
            return
        length = self.headers.get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,9}", length, re.ASCII):
            self._answer(411)
            return
        if int(length) > MOST_VOTE_BYTES:
            self._answer(413)
            return
        body = self.rfile.read(int(length))
        if not self.server.may_vote(self.client_address[0]):
            self._answer(429)
            return
        try:
            has_room = self.server.collector.add(json.loads(body))
        except (EyelevelError, ValueError, RecursionError) as error:
            self._answer(400, f"{error}\n".encode(), "text/plain; charset=utf-8")
        except OSError as error:
            self.log_error("a vote was not kept: %s", error)
            self._answer(507)
        else:
            self._answer(204 if has_room else 507)

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def _answer(self, status: int, body: bytes = b"", kind: str = "text/plain; charset=utf-8") -> None:
        self._deadline.cancel()
        self.send_response(status)
        for name, value in HEADERS:
            self.send_header(name, value)
        self.send_header("cache-control", "max-age=3600" if kind == "video/mp4" else "no-cache")
        if status != 204:
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.connection.settimeout(self.server.patience_s + len(body) / SLOWEST_BYTES_PER_S)
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing, to protect the privacy of participants."""
