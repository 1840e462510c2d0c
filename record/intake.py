"""Decides what of a recording enters a site, for every importer and for the recorder.

An exchange that cannot be replayed is left out and named with the reason. What must not be published is removed. So
all other code can trust the methods, URLs, status codes and header fields of a site.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from base.errors import EyelevelError
from record.content import BrokenContent, UndecodableContent, decode
from record.http1 import MAX_BODY_BYTES, Headers, MalformedMessage, Response
from record.privacy import without_cookie_values
from record.site import Exchange, kept_request_headers
from record.urls import excerpt, normal_url

# Servers and importers hold a site in memory.
MAX_SITE_BYTES = 2 << 30

# The rest of a file that holds a body: header fields, framing.
MAX_OVERHEAD_BYTES = 16 << 20

# Methods that pages may use (Fetch standard, section 2.2.1), in letters that NGINX accepts.
METHOD = re.compile(r"(?!(?:CONNECT|TRACE|TRACK)$)[A-Z_-]+")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
FOLD = re.compile("\r?\n[ \t]+")
NOT_IN_A_LINE = re.compile("[\r\n\0]")


class Intake:
    """Collects the exchanges that can be replayed, and a line for each that was left out."""

    def __init__(self, source: str, *, keep_cookies: bool) -> None:
        self.source = source
        self.keep_cookies = keep_cookies
        self.exchanges: list[Exchange] = []
        self.skipped: list[str] = []
        self._bytes = 0

    def take(self, name: str, read: Callable[[], Exchange]) -> None:
        """Take the exchange that `read` returns. If it is refused, the reason goes to `skipped` under `name`.

        Raises EyelevelError when all exchanges together are too large.
        """
        try:
            exchange = admitted(read(), keep_cookies=self.keep_cookies)
        except (MalformedMessage, OSError) as error:
            self.leave_out(name, error)
            return
        self._bytes += len(exchange.response.body)
        if self._bytes > MAX_SITE_BYTES:
            raise EyelevelError(
                f"{self.source} holds more than {MAX_SITE_BYTES >> 30} GiB of bodies; import one page's load of it"
            )
        self.exchanges.append(exchange)

    def leave_out(self, name: str, reason: Exception | str) -> None:
        """Add a line to `skipped`: what is left out, and why."""
        self.skipped.append(f"{printable(name)}: {printable(str(reason))}")


def bounded(file: Path) -> bytes:
    """The content of `file`, which holds one exchange. Raises MalformedMessage when it is too large, and OSError."""
    if file.stat().st_size > MAX_BODY_BYTES + MAX_OVERHEAD_BYTES:
        raise MalformedMessage(f"its body is longer than {MAX_BODY_BYTES >> 20} MiB")
    return file.read_bytes()


def with_true_length(method: str, response: Response) -> Response:
    """`response`, if its Content-Length is true; for formats that hold bodies as they were sent.

    Raises MalformedMessage for a body that is cut short or too long: it is not what the server sent.
    """
    lengths = {value.strip() for name, value in response.headers if name.lower() == "content-length"}
    has_length = response.header("transfer-encoding") is None and method != "HEAD" and response.status not in (204, 304)
    if has_length and lengths and lengths != {str(len(response.body))}:
        raise MalformedMessage(
            f"its Content-Length is {excerpt(', '.join(sorted(lengths)))}, its body has {len(response.body)} bytes"
        )
    return response


def admitted(exchange: Exchange, *, keep_cookies: bool) -> Exchange:
    """`exchange` in the form that a site stores. Raises MalformedMessage when it cannot be replayed."""
    method, response = exchange.method, exchange.response
    if not METHOD.fullmatch(method):
        raise MalformedMessage(f"{excerpt(method)} is no method that a page can use")
    if response.status == 101:
        raise MalformedMessage("switched protocols (101), which no HTTP server can replay")
    if not 200 <= response.status <= 599:
        raise MalformedMessage(f"status {response.status} is none that can be replayed")
    if len(response.body) > MAX_BODY_BYTES:
        raise MalformedMessage(f"its body is longer than {MAX_BODY_BYTES >> 20} MiB")
    headers = _sendable(response.headers)
    _require_decodable(response)
    return replace(
        exchange,
        url=normal_url(exchange.url),
        response=replace(
            response,
            reason=NOT_IN_A_LINE.sub(" ", _latin1(response.reason)),
            headers=headers if keep_cookies else without_cookie_values(headers),
        ),
        started_ms=_time(exchange.started_ms),
        ttfb_ms=_time(exchange.ttfb_ms),
        request_headers=kept_request_headers(_sendable(exchange.request_headers)),
    )


def printable(text: str) -> str:
    """`text` on one line, with escapes for what cannot be printed."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _sendable(headers: Headers) -> Headers:
    """The header fields that HTTP/2 and HTTP/3 can carry (RFC 9113, section 8.2.1), values as bytes in Latin-1.

    A value may be folded (RFC 9112, section 5.2). Other line breaks separate values: some tools join the fields of one
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


def _require_decodable(response: Response) -> None:
    """Refuse a body that is not in its Content-Encoding. Bodies in encodings that we do not support are accepted."""
    if response.status == 206 or not response.body:  # a part of an encoded body cannot be decoded by itself
        return
    try:
        decode(response.replayable("GET").body, response.encoding)
    except BrokenContent as error:
        raise MalformedMessage(f"its body is {error}") from None
    except UndecodableContent:
        pass


def _time(time_ms: float | None) -> float | None:
    """A time in ms, or None for a value that is no time: tools write -1 when they do not know it."""
    try:
        return time_ms if time_ms is not None and math.isfinite(time_ms) and time_ms >= 0 else None
    except (TypeError, OverflowError):
        return None
