"""HTTP/1.1 messages as bytes: the form in which responses are recorded and stored (RFC 9112).

Header values are `str`, decoded as Latin-1, so that every byte survives the round trip. Standard library only, since
uWSGI's interpreter loads this module, too.
"""

import re
from collections.abc import Container, Iterable
from typing import NamedTuple

from record.limits import CHUNK_BYTES, DECODED_BYTES, HEAD_BYTES, HEADER_BYTES, HEADER_FIELDS

Headers = tuple[tuple[str, str], ...]

# The end of the last header line, and the empty line before the body.
BLANK_LINE = b"\r\n\r\n"

# Methods that pages may use (Fetch standard, section 2.2.1), limited to the characters that NGINX accepts.
METHOD = re.compile(r"(?!(?:CONNECT|TRACE|TRACK)$)[A-Z_-]+")
# A field's name (RFC 9110, section 5.1), and the characters that no value may contain.
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
NOT_IN_A_LINE = re.compile("[\r\n\0]")

# The statuses that can be replayed. Status 101 cannot, since it switches to another protocol.
STATUSES = range(200, 600)

LENGTH = re.compile("[0-9]{1,15}")
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")

# Connection-specific fields (RFC 9113 section 8.2.2), and fields that would send the browser to a protocol or server
# other than the one under test.
NOT_REPLAYED = frozenset(
    {
        "alt-svc",
        "alternate-protocol",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    }
)

# These fields describe a body. NGINX removes them from responses without one, so such responses are stored without
# them.
ABOUT_CONTENT = frozenset({"content-type", "last-modified"})


# A response has at most one of each of these fields (RFC 9110, section 5.3). NGINX sends the last Content-Type and
# Location that are not empty. NGINX 1.22 sends all of the other fields, and 1.26 only the first. Only one is stored, so
# that all servers agree.
SINGLE = frozenset(
    {
        "content-length",
        "content-type",
        "date",
        "etag",
        "expires",
        "last-modified",
        "location",
        "refresh",
        "server",
        "status",
        "x-accel-expires",
    }
)


class MalformedMessage(ValueError):
    """Bytes that are not an HTTP/1.1 message; the text says which part is wrong."""


class Response(NamedTuple):
    """A response: status, reason phrase, header fields in recorded order, and the body with its content-encoding.

    (Not a dataclass: the imports of `dataclasses` take 1.5 MB of memory in uWSGI.)
    """

    status: int
    reason: str
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        """The first value of the header `name` (lower case), or None."""
        return first_value(self.headers, name)

    @property
    def encoding(self) -> str:
        """The body's content-encoding in lower case, joined from all fields that name one; empty if it has none."""
        values = (value for name, value in self.headers if name.lower() == "content-encoding")
        return ", ".join(value.strip().lower() for value in values if value.strip())

    @property
    def is_html(self) -> bool:
        return (self.header("content-type") or "").lower().startswith("text/html")

    @property
    def is_script(self) -> bool:
        kind = (self.header("content-type") or "").partition(";")[0].lower()
        return kind.endswith(("javascript", "ecmascript"))

    @property
    def is_chunked(self) -> bool:
        """Whether the header fields announce chunk framing."""
        return "chunked" in (self.header("transfer-encoding") or "").lower()

    def without_chunks(self) -> "Response":
        """This response without chunk framing and its header field.

        Some recorders store the header field but not the framing; such a response is returned unchanged.
        """
        if not self.is_chunked:
            return self
        try:
            body = unchunk(self.body)
        except MalformedMessage:
            return self
        return self._replace(headers=without_fields(self.headers, {"transfer-encoding"}), body=body)

    def replayable(self, method: str) -> "Response":
        """This response in a form that a server can send over any version of HTTP.

        Connection-specific fields and chunk framing are removed. Content-Length is the body's true length wherever that
        field is allowed (RFC 9110 section 8.6).
        """
        body = self.without_chunks().body
        headers = without_fields(_last_of_single(self.headers), NOT_REPLAYED)
        without_body = self.status < 200 or self.status in (204, 304)
        if without_body:
            body, headers = b"", without_fields(headers, ABOUT_CONTENT)
        if method == "HEAD":
            body = b""  # keep a valid Content-Length: it is that of the GET response
            headers = tuple(h for h in headers if h[0].lower() != "content-length" or LENGTH.fullmatch(h[1]))
        else:
            headers = without_fields(headers, {"content-length"})
            if not without_body:
                headers += (("Content-Length", str(len(body))),)
        return self._replace(headers=headers, body=body)


def _last_of_single(headers: Headers) -> Headers:
    last = {name.lower(): place for place, (name, value) in enumerate(headers) if value}
    return tuple(
        header
        for place, header in enumerate(headers)
        if header[0].lower() not in SINGLE or last.get(header[0].lower()) == place
    )


def first_value(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """The first value of the header `name` (lower case), or None."""
    return next((value for key, value in headers if key.lower() == name), None)


def require_sendable_fields(headers: Headers) -> None:
    """Refuse header fields that not every server can send; `headers` are those of a stored response without our own
    fields.

    uWSGI accepts 64 KiB of them, quic_server any number. Raises MalformedMessage.
    """
    size = sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
    if size > HEADER_BYTES:
        raise MalformedMessage(f"its header fields have {size} bytes, and servers can send {HEADER_BYTES}")
    if len(headers) > HEADER_FIELDS:
        raise MalformedMessage(f"it has {len(headers)} header fields, and servers can send {HEADER_FIELDS}")


def without_fields(headers: Headers, names: Container[str]) -> Headers:
    """`headers` without the fields whose names are in `names` (lower case)."""
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def parse_status_line(line: bytes) -> tuple[int, str]:
    """`HTTP/1.1 200 OK` as (200, "OK"). Raises MalformedMessage."""
    version, _, rest = line.decode("latin-1").strip().partition(" ")
    code, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise MalformedMessage(f"bad status line {line[:60]!r}")
    return int(code), reason


def parse_response(message: bytes) -> Response:
    """A whole stored response: status line, header lines, blank line, body. Raises MalformedMessage."""
    return response_of(*divided(message))


def divided(message: bytes) -> tuple[bytes, bytes]:
    """The head of a whole `message`, without the blank line, and its body. Raises MalformedMessage."""
    head, separator, body = message.partition(BLANK_LINE)
    if not separator:
        raise MalformedMessage("no blank line after the headers")
    return head, body


def response_of(head: bytes, body: bytes) -> Response:
    """The response with this `head`, without the blank line. Raises MalformedMessage."""
    if len(head) > HEAD_BYTES:
        raise MalformedMessage(f"its header fields are longer than {HEAD_BYTES >> 10} KiB")
    first, *lines = head.split(b"\r\n")
    status, reason = parse_status_line(first)
    headers = []
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not name.strip():
            raise MalformedMessage(f"header line without a colon: {line[:60]!r}")
        headers.append((name, value.strip(" \t")))
    return Response(status, reason, tuple(headers), body)


def format_response(response: Response) -> bytes:
    """The inverse of `parse_response`."""
    lines = [f"HTTP/1.1 {response.status} {response.reason}"]
    lines += [f"{name}: {value}" for name, value in response.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body


def unchunk(body: bytes) -> bytes:
    """The content of a chunked body (RFC 9112 section 7.1), without trailers. Raises MalformedMessage."""
    if body.count(b"\r\n") > DECODED_BYTES // CHUNK_BYTES:
        raise MalformedMessage("it has more chunks than those of a page")
    content = bytearray()
    position = 0
    while True:
        end = body.find(b"\r\n", position)
        size_text = body[position:end].partition(b";")[0].strip() if end >= 0 else b""
        if not CHUNK_SIZE.fullmatch(size_text):
            raise MalformedMessage(f"no chunk size at byte {position}")
        size = int(size_text, 16)
        if size == 0:
            return bytes(content)
        start = end + 2
        position = start + size
        if body[position : position + 2] != b"\r\n":
            raise MalformedMessage(f"chunk at byte {start} is cut short")
        content += body[start:position]
        position += 2
