"""The WSGI application that NGINX uses: a recorded site's responses, whose bodies are read from the site's files.

uWSGI loads it into the system's Python, so it uses only the standard library. Its environment has the site
(`EYELEVEL_SITE`), the request log (`EYELEVEL_REQUEST_LOG`, empty for none), whether to wait as long as the recorded
servers did (`EYELEVEL_THINK_TIME`, empty for no), a FIFO that receives `ready` or the reason for a failure
(`EYELEVEL_READY`), and the name of the variable that has a request's target as the browser sent it (`EYELEVEL_TARGET`).
Only servers written in Go need one of their own: others do not change the target.
"""

import os
import re
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from base.text import excerpt, printable
from record.http1 import (
    BLANK_LINE,
    METHOD,
    NOT_IN_A_LINE,
    NOT_REPLAYED,
    STATUSES,
    TOKEN,
    Headers,
    MalformedMessage,
    Response,
    require_sendable_fields,
    response_of,
)
from record.layout import (
    AUTHORITY,
    ORIGINAL_METHOD,
    ORIGINAL_URL,
    ORIGINAL_WAIT_MS,
    authority_of,
    require_single_originals,
    without_originals,
)
from record.limits import BODY_BYTES, EXCHANGES, HEAD_BYTES, REASON_BYTES, THINK_TIME_S, URL_BYTES, excess
from record.messages import read_message
from servers.application.body import PIECE_BYTES, BodyInFile
from servers.matching import Kind, Matcher, Recorded, preflight_headers

# A response gets these fields if its recording lacks them; otherwise NGINX would add its own. quic_server adds the same
# two.
DEFAULTS = (("server", "eyelevel"), ("date", "Thu, 01 Jan 2026 00:00:00 GMT"))

READY = "ready"
# Behind NGINX, the variable that has a request's target.
BEHIND_NGINX = "REQUEST_URI"
# If the first value of Pragma in a response is GO_CHANGES, and Cache-Control is missing, Go's HTTP clients add
# "Cache-Control: no-cache". With PRAGMA_MARK before the value they do not add it; the program that forwards the
# response removes the mark.
GO_CHANGES, PRAGMA_MARK = "no-cache", "eyelevel:"

# An open file takes as much memory as a body of this size.
SMALL_BODY_BYTES = 1 << 10

FILE_NAME = re.compile(r"[0-9]{5}-[A-Za-z0-9._-]+")
URL = re.compile("https://[\x21-\x7e]+")
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

# Header field → the same object, so that fields which responses share are in memory once.
Shared = dict[tuple[str, str], tuple[str, str]]


class StoredResponse(NamedTuple):
    """A response ready to be sent, and the file it came from (`<host>/<name>`)."""

    file: str
    status: str
    headers: Headers
    stored_body: bytes | BodyInFile
    wait_s: float  # the recorded server's time to the first byte

    def pieces(self) -> Iterable[bytes]:
        """The response's body in pieces. Raises OSError."""
        return [self.stored_body] if isinstance(self.stored_body, bytes) else self.stored_body.pieces()

    @property
    def body(self) -> bytes:
        """The response's whole body. Raises OSError."""
        return b"".join(self.pieces())


class Application:
    """Answers each request by the rule of `servers.matching`."""

    def __init__(
        self,
        site: Path,
        request_log: Path | None,
        *,
        think_time: bool = False,
        target: str = BEHIND_NGINX,
        read_chunk: Callable[[], bytes] = bytes,
    ) -> None:
        """`read_chunk` returns the next part of a request body that was sent without its length; empty at its end."""
        self._target = target
        self._read_chunk = read_chunk
        self._matcher = Matcher(load_responses(site))
        self._think_time = think_time
        self._log = os.open(request_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if request_log else None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        target = environ.get(self._target) or environ[BEHIND_NGINX]
        if self._target != BEHIND_NGINX:
            self._read_request(environ)
        headers = {
            key[5:].lower().replace("_", "-"): value for key, value in environ.items() if key.startswith("HTTP_")
        }
        match = self._matcher.match(method, headers.get("host", ""), target, headers)
        self._write_log(match.kind, method, f"https://{headers.get('host', '')}{target}", match.recorded)
        if match.recorded is not None:
            if self._think_time and match.recorded.wait_s:
                time.sleep(match.recorded.wait_s)
            recorded = match.recorded.headers
            by_go = self._target != BEHIND_NGINX and self._target in environ
            sent = unchanged_by_go(recorded) if by_go else recorded
            start_response(match.recorded.status, list(sent))
            return [] if method == "HEAD" else match.recorded.pieces()
        if match.kind is Kind.PREFLIGHT:
            start_response("204 No Content", [*DEFAULTS, *preflight_headers(headers)])
        else:
            start_response("404 Not Found", [*DEFAULTS, ("content-length", "0")])
        return []

    def _read_request(self, environ: dict[str, Any]) -> None:
        """Return when the whole request has come, since answers are sent only then. Behind NGINX, which itself waits
        for the whole request and passes no body on, this returns at once.

        If a part of the body stayed unread, the kernel would reset the connection at its end. The answer would be lost:
        the browser would get a 502, or an answer that is cut short.
        """
        # A browser streams a body without its length. Then uWSGI's `wsgi.input` is empty.
        chunked = environ.get("HTTP_TRANSFER_ENCODING") == "chunked"
        while self._read_chunk() if chunked else environ["wsgi.input"].read(PIECE_BYTES):
            pass

    def _write_log(self, kind: Kind, method: str, url: str, recorded: StoredResponse | None) -> None:
        if self._log is not None:
            line = "\t".join((kind, method, url, recorded.file if recorded else ""))
            # A full disk must not end the page load; the same holds for quic_server. The replay notices that the disk
            # is full.
            with suppress(OSError):
                os.write(self._log, line.encode("latin-1", "replace") + b"\n")


def load_responses(site: Path) -> Iterator[Recorded[StoredResponse]]:
    """All stored exchanges, in recorded order.

    Files that quic_server refuses are refused here, too, so that no site is served over only one protocol. Raises
    MalformedMessage.
    """
    # Do not build a list of paths: it would leave holes in memory between the loaded responses. The list of names
    # shrinks while it is used.
    paths = islice(site.glob("*/*"), EXCHANGES + 1)
    names = sorted(((path.name, intern(path.parent.name)) for path in paths), reverse=True)
    folders = {host: site / host for _, host in names}
    if beyond := excess(exchanges=len(names), hosts=len(folders)):
        raise MalformedMessage(f"{site} holds {beyond}")
    shared: Shared = {}
    while names:
        name, host = names.pop()
        path = folders[host] / name
        try:
            yield _recorded(path, f"{host}/{name}", shared)
        except (OSError, ValueError) as error:
            name = printable(str(path))
            raise MalformedMessage(f"{name} is not a recorded response: {error}; import the site again") from None


def _recorded(path: Path, file: str, shared: Shared) -> Recorded[StoredResponse]:
    """The exchange in the file `path`; `file` is that file's name within its site. Raises OSError, and ValueError for
    an exchange that a server cannot send."""
    if not FILE_NAME.fullmatch(path.name):
        raise MalformedMessage("its name is not that of a site's file")
    # Links are followed, since a replay's folder has links to the site's files, which `Site.load` has checked.
    head, body = read_message(path, BODY_BYTES + HEAD_BYTES, follow=True)
    response = response_of(head, body)
    _require_sendable(response, shared)
    original = {name.lower(): value for name, value in response.headers}
    method, url = original.get(ORIGINAL_METHOD.lower(), ""), original.get(ORIGINAL_URL.lower(), "")
    if not METHOD.fullmatch(method):
        raise MalformedMessage(f"its {ORIGINAL_METHOD} is not a method that a page can use")
    if not (URL.fullmatch(url) and len(url) <= URL_BYTES and AUTHORITY.fullmatch(authority_of(url))):
        raise MalformedMessage(f"its {ORIGINAL_URL} is not an https URL that servers can answer")
    _require_true_length(method, response)
    wait_ms = original.get(ORIGINAL_WAIT_MS.lower(), "0")
    if not NUMBER.fullmatch(wait_ms):
        raise MalformedMessage(f"its {ORIGINAL_WAIT_MS} is not a time")
    stored = StoredResponse(
        file=file,
        # HTTP/2 never sends a reason phrase, but WSGI requires one.
        status=intern(f"{response.status} {response.reason[:REASON_BYTES] or 'Recorded'}"),
        headers=tuple(shared.setdefault(header, header) for header in sent_headers(response.headers)),
        stored_body=_stored(path, len(head) + len(BLANK_LINE), body),
        wait_s=min(float(wait_ms) / 1000, THINK_TIME_S),
    )
    return Recorded(intern(method), url, response.status, response.header("content-range"), stored)


def _stored(path: Path, begin: int, body: bytes) -> bytes | BodyInFile:
    """The form in which `body` is kept; it is also in the file `path` from `begin` on. Raises OSError.

    The file has just been read, so it is in the kernel's file cache.
    """
    if len(body) <= SMALL_BODY_BYTES:
        return body
    in_file = BodyInFile(path, begin, len(body))
    # Leave half of the descriptors for connections. A new descriptor gets the lowest free number, so that its number
    # shows how many are in use.
    most_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
    return in_file if in_file.descriptor < most_descriptors else body


def _require_true_length(method: str, response: Response) -> None:
    """Refuse a response with two Content-Lengths, or with one that differs from its body's length. Raises
    MalformedMessage."""
    lengths = [value for name, value in response.headers if name.lower() == "content-length"]
    has_length = method != "HEAD" and response.status not in (204, 304)
    if lengths and (len(lengths) > 1 or (has_length and lengths != [str(len(response.body))])):
        raise MalformedMessage(
            f"its Content-Length is {excerpt(', '.join(lengths))}, its body has {len(response.body)}"
        )


def _require_sendable(response: Response, known: Shared) -> None:
    """Refuse a response that cannot be sent unchanged over every protocol. The fields in `known` need no check: a
    response with each of them was accepted before. Raises MalformedMessage."""
    if response.status not in STATUSES:
        raise MalformedMessage(f"status {response.status} cannot be replayed")
    require_single_originals(response.headers)
    require_sendable_fields(without_originals(response.headers))
    if NOT_IN_A_LINE.search(response.reason):
        raise MalformedMessage("its reason phrase has a line break or a NUL")
    for name, value in response.headers:
        if (name, value) in known:
            continue
        if not TOKEN.fullmatch(name) or NOT_IN_A_LINE.search(value):
            raise MalformedMessage(f"a header field cannot be sent: {excerpt(name)}")


def sent_headers(recorded: Headers) -> Headers:
    """The header fields as sent: without those of the site's format, and with defaults.

    Fields of the same name are adjacent, as in quic_server's HTTP/3.
    """
    by_name: dict[str, list[tuple[str, str]]] = {}
    for name, value in without_originals(recorded):
        if name.lower() not in NOT_REPLAYED:
            by_name.setdefault(name.lower(), []).append((name, value))
    for default in DEFAULTS:
        by_name.setdefault(default[0], [default])
    return tuple(header for headers in by_name.values() for header in headers)


def unchanged_by_go(headers: Headers) -> Headers:
    """The header fields, with PRAGMA_MARK before a value of Pragma for which Go would add a field."""
    return tuple(
        (name, PRAGMA_MARK + value if (name.lower(), value) == ("pragma", GO_CHANGES) else value)
        for name, value in headers
    )


def _from_environment() -> Application:
    log = os.environ["EYELEVEL_REQUEST_LOG"]
    with Path(os.environ["EYELEVEL_READY"]).open("w") as ready:
        try:
            application = Application(
                Path(os.environ["EYELEVEL_SITE"]),
                Path(log) if log else None,
                think_time=bool(os.environ["EYELEVEL_THINK_TIME"]),
                target=os.environ["EYELEVEL_TARGET"],
                read_chunk=import_module("uwsgi").chunked_read,  # exists only in uWSGI
            )
        except (OSError, MalformedMessage) as error:
            ready.write(f"{error}\n")
            raise
        ready.write(f"{READY}\n")
    return application


if "EYELEVEL_SITE" in os.environ:
    application = _from_environment()
