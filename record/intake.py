"""Decides what of a recording enters a site, for all importers and the recorder.

An exchange that cannot be replayed is left out, and named with the reason. Header fields that must not be published are
removed. So all other code can trust a site's methods, URLs, status codes and header fields.
"""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from base.bounded import TooLong, read_regular
from base.errors import EyelevelError
from base.text import excerpt, printable
from record.connections import CONNECTIONS, Connection, sound
from record.content import BrokenContent, Budget, UndecodableContent, require_decodable
from record.http1 import (
    METHOD,
    NOT_IN_A_LINE,
    STATUSES,
    TOKEN,
    Headers,
    MalformedMessage,
    Response,
    require_sendable_fields,
    unchunk,
    without_fields,
)
from record.index import is_recorded_ip
from record.layout import authority_of, without_originals
from record.limits import (
    BODY_BYTES,
    BODY_TOO_LONG,
    CHUNK_BYTES,
    HEAD_BYTES,
    LINE_LETTERS,
    LINES,
    LINES_LETTERS,
    REASON_BYTES,
    THINK_TIME_S,
    excess,
)
from record.privacy import without_credentials
from record.site import Exchange, kept_request_headers
from record.urls import normal_url

# The beginning of lines about exchanges that are in the site, but differ from the recording.
CHANGED = "changed: "

FOLD = re.compile("\r?\n[ \t]+")
# The beginning of a chunked body (RFC 9112, section 7.1); and line ends that may follow a body that is not chunked.
FIRST_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,15}[ \t]*(;[^\r\n]*)?\r\n")
LINE_ENDS = (b"\r\n", b"\r\n\r\n")


class Intake:
    """Collects the exchanges that can be replayed, and a line for each one that was left out. All bodies count against
    `budget`."""

    def __init__(self, source: str, *, keep_cookies: bool) -> None:
        self.source = printable(source)
        self.keep_cookies = keep_cookies
        self.exchanges: list[Exchange] = []
        self.connections: list[Connection] = []
        self.skipped: list[str] = []
        self._skipped_letters = self._further_skipped = 0
        self._body_bytes = self._text_bytes = 0
        self.budget = Budget(self.source)
        self._servers: set[str] = set()
        self._hosts: set[str] = set()

    def take(self, name: str, read: Callable[[], Exchange]) -> bool:
        """Take the exchange that `read` returns; returns whether it was taken. If it is refused, the reason goes to
        `skipped` under `name`.

        Raises EyelevelError when all exchanges together are more than a page can have.
        """
        try:
            exchange = admitted(read(), self.budget, keep_cookies=self.keep_cookies)
        # MalformedMessage is a ValueError. Any other ValueError, raised by a library or by Python for an odd text, also
        # costs only this exchange.
        except (ValueError, OSError) as error:
            self.leave_out(name, error)
            return False
        response = exchange.response
        self._body_bytes += len(response.body)
        self._text_bytes += len(exchange.url) + sum(len(name) + len(value) for name, value in response.headers)
        self._servers.add(exchange.recorded_ip)
        self._hosts.add(authority_of(exchange.url))
        self.exchanges.append(exchange)
        self._require_one_page()
        return True

    def connect(self, connection: Connection) -> None:
        """Take a recorder's observations of a connection. Connections without a host, and those beyond the limit, are
        dropped."""
        if len(self.connections) < CONNECTIONS:
            with suppress(ValueError):
                self.connections.append(sound(connection))

    def leave_out(self, name: str, reason: Exception | str) -> None:
        """Add a line to `skipped`: what was left out, and why. Lines beyond the limit are only counted."""
        if len(self.skipped) >= LINES or self._skipped_letters > LINES_LETTERS:
            self._further_skipped += 1
            return
        line = f"{printable(name[:LINE_LETTERS])}: {printable(str(reason)[:LINE_LETTERS])}"
        self._skipped_letters += len(line)
        self.skipped.append(line)

    def change(self, name: str, how: str) -> None:
        """Add a line to `skipped` about how the site differs from the recording."""
        self.leave_out(f"{CHANGED}{name}", how)

    def all_skipped(self) -> list[str]:
        """All lines, and one more with the number of those that did not fit."""
        return [*self.skipped, *([f"{self._further_skipped:,} more"] if self._further_skipped else [])]

    def _require_one_page(self) -> None:
        beyond = excess(
            servers=len(self._servers),
            hosts=len(self._hosts),
            exchanges=len(self.exchanges),
            body_bytes=self._body_bytes,
            text_bytes=self._text_bytes,
        )
        if beyond:
            raise EyelevelError(f"{self.source} holds {beyond}; import one page's load of it")


def bounded(file: Path) -> bytes:
    """The content of `file`, which holds one exchange.

    Raises MalformedMessage when it is too large, and OSError, also for a link, a pipe or a device.
    """
    try:
        return read_regular(file, BODY_BYTES + HEAD_BYTES)
    except TooLong:
        raise MalformedMessage(BODY_TOO_LONG) from None


def with_true_length(method: str, response: Response, budget: Budget) -> Response:
    """`response` without chunk framing, if its body has the length that its header fields state; for formats that
    contain bodies as they were sent.

    Some archives count a line end after the body as a part of it; this is removed. If a body is announced as chunked
    but does not begin with a chunk, the recorder has already removed the framing. Chunks count against `budget`. Raises
    MalformedMessage for a body that is cut short or too long, since the server did not send that.
    """
    if response.is_chunked:
        if FIRST_CHUNK.match(response.body):
            budget.spend(CHUNK_BYTES * response.body.count(b"\r\n"))
            try:
                body = unchunk(response.body)
            except MalformedMessage as error:
                raise MalformedMessage(f"its chunked body breaks off: {error}") from None
            return response._replace(headers=without_fields(response.headers, {"transfer-encoding"}), body=body)
        return response
    lengths = {value.strip() for name, value in response.headers if name.lower() == "content-length"}
    has_length = response.header("transfer-encoding") is None and method != "HEAD" and response.status not in (204, 304)
    if has_length and lengths:
        for end in (b"", *LINE_ENDS):
            body = response.body.removesuffix(end)
            if lengths == {str(len(body))}:
                return response._replace(body=body)
        raise MalformedMessage(
            f"its Content-Length is {excerpt(', '.join(sorted(lengths)))}, its body has {len(response.body)} bytes"
        )
    return response


def admitted(exchange: Exchange, budget: Budget, *, keep_cookies: bool) -> Exchange:
    """`exchange` in the form that a site stores; its body counts against `budget`. Raises ValueError when it cannot be
    replayed, and EyelevelError when the budget is used up."""
    method, response = exchange.method, exchange.response
    if not METHOD.fullmatch(method):
        raise MalformedMessage(f"{excerpt(method)} is not a method that a page can use")
    if response.status == 101:
        raise MalformedMessage("switched protocols (101), which no HTTP server can replay")
    if response.status not in STATUSES:
        raise MalformedMessage(f"status {response.status} cannot be replayed")
    if len(response.body) > BODY_BYTES:
        raise MalformedMessage(BODY_TOO_LONG)
    if response.is_chunked:
        budget.spend(CHUNK_BYTES * response.body.count(b"\r\n"))
    if not is_recorded_ip(exchange.recorded_ip):
        raise MalformedMessage(f"{excerpt(exchange.recorded_ip)} is not a server's address")
    # Gateways record fields with the same names as our own. If they were kept, they would determine which request the
    # response answers.
    headers = without_originals(_sendable(response.headers))
    headers = headers if keep_cookies else without_credentials(headers)
    sound = response._replace(reason=NOT_IN_A_LINE.sub(" ", _latin1(response.reason))[:REASON_BYTES], headers=headers)
    require_sendable_fields(sound.replayable(method).headers)
    _require_decodable(response, budget)
    return replace(
        exchange,
        url=normal_url(exchange.url),
        response=sound,
        started_ms=_time(exchange.started_ms),
        ttfb_ms=_time(exchange.ttfb_ms, THINK_TIME_S * 1000),
        request_headers=kept_request_headers(_sendable(exchange.request_headers)),
    )


def _sendable(headers: Headers) -> Headers:
    """The header fields that HTTP/2 and HTTP/3 can carry (RFC 9113, section 8.2.1), with values as bytes in Latin-1.

    Values may be folded (RFC 9112, section 5.2). Other line breaks separate values: some tools join fields of the same
    name in this way.
    """
    lines = ((name, line) for name, value in headers for line in re.split("\r?\n", FOLD.sub(" ", value)))
    fields = ((name, _latin1(line).strip(" \t")) for name, line in lines if TOKEN.fullmatch(name))
    return tuple((name, value) for name, value in fields if not NOT_IN_A_LINE.search(value))


def _latin1(text: str) -> str:
    """`text` with one character for each byte. Text that was decoded as UTF-8 is encoded again."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("latin-1")
    return text


def _require_decodable(response: Response, budget: Budget) -> None:
    """Refuse a body that is not in its Content-Encoding. Bodies in encodings that we do not support are accepted."""
    if response.status == 206 or not response.body:  # a part of an encoded body cannot be decoded by itself
        return
    try:
        require_decodable(response.replayable("GET").body, response.encoding, budget)
    except BrokenContent as error:
        raise MalformedMessage(f"its body is {error}") from None
    except UndecodableContent:
        pass


def _time(time_ms: float | None, limit_ms: float = math.inf) -> float | None:
    """A time in ms, at most `limit_ms`; None if it is no time: tools write -1 for an unknown one."""
    if isinstance(time_ms, bool) or not isinstance(time_ms, int | float):
        return None
    try:
        return min(time_ms, limit_ms) if math.isfinite(time_ms) and time_ms >= 0 else None
    except OverflowError:
        return None
