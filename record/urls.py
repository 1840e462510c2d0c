"""URLs in the form that browsers request, whatever form a recording has.

Standard library only.
"""

import re
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import quote, unquote_to_bytes, urljoin

from base.text import excerpt
from record.http1 import MalformedMessage
from record.limits import HEAD_BYTES, URL_BYTES

# RFC 1035, section 2.3.4; underscores are common in the wild.
MAX_HOST, MAX_LABEL = 253, 63
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
LABEL_SEPARATORS = re.compile("[.\u3002\uff0e\uff61]")  # full stops, as RFC 3490 has them

# quote() leaves these as they are: all printable ASCII characters that browsers send (WHATWG URL standard, query
# percent-encode set).
SENT_AS_WRITTEN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"<>')


def redirected(base: str, location: str) -> str | None:
    """The URL that browsers ask for when a response from `base` has this Location; None when it means none.

    `location` has a character for each byte that was sent. Browsers read these as UTF-8 where they are.
    """
    with suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    try:
        return with_path(normal_url(urljoin(base, location)))
    except ValueError:
        return None


def with_path(url: str) -> str:
    """`url` with the path that browsers ask for where it has none (WHATWG URL standard, section 4.4)."""
    return re.sub("^(https?://[^/?]+)(?=[?]|$)", r"\1/", url)


def normal_url(url: str) -> str:
    """`url` without user information, fragment and default port; its host in lower case and in ASCII (RFC 3490).

    In the path and the query, characters that may not be sent are percent-encoded; nothing else changes there. Raises
    MalformedMessage for a text that is no http(s) URL, and for a host that a replay cannot have.
    """
    if len(url) > HEAD_BYTES:  # before work is put into it
        raise MalformedMessage(f"{excerpt(url)} is longer than {URL_BYTES >> 10} KiB, which no server takes")
    match = re.fullmatch(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", url, re.IGNORECASE | re.DOTALL)
    if not match:
        raise MalformedMessage(f"{excerpt(url)} is no http or https URL")
    scheme, authority, target = match[1].lower(), match[2].rpartition("@")[2], match[3]
    host, port = _host_and_port(authority)
    default = "443" if scheme == "https" else "80"
    port = "" if port in ("", default) else f":{port}"
    _require_servable(target.partition("?")[0], url)
    normal = f"{scheme}://{_ascii_host(host)}{port}{quote(target, safe=SENT_AS_WRITTEN)}"
    if len(normal) > URL_BYTES:
        raise MalformedMessage(f"{excerpt(url)} is longer than {URL_BYTES >> 10} KiB, which no server takes")
    return normal


def _require_servable(path: str, url: str) -> None:
    """Refuse paths that NGINX refuses in any configuration (`ngx_http_parse_complex_uri`)."""
    if re.search("%(?![0-9A-Fa-f]{2})", path):
        raise MalformedMessage(f"{excerpt(url)} has a % that begins no escape, which NGINX refuses")
    plain = unquote_to_bytes(path)
    if b"\0" in plain:
        raise MalformedMessage(f"{excerpt(url)} has a NUL in its path, which NGINX refuses")
    depth = 0
    for segment in plain.split(b"/"):
        depth += -1 if segment == b".." else segment not in (b"", b".")
        if depth < 0:
            raise MalformedMessage(f"{excerpt(url)} leads out of its root")


def _host_and_port(authority: str) -> tuple[str, str]:
    host, _, port = authority.partition(":")
    if not re.fullmatch("[0-9]{0,5}", port) or not (port == "" or 1 <= int(port) <= 65535):
        raise MalformedMessage(f"{excerpt(authority)} is no host and port")
    return host, port.lstrip("0")


def _ascii_host(host: str) -> str:
    try:
        labels = [label.encode("idna").decode() for label in LABEL_SEPARATORS.split(host)]
    except UnicodeError:
        labels = []
    name = ".".join(labels).lower()
    if not HOST.fullmatch(name) or len(name) > MAX_HOST or any(len(label) > MAX_LABEL for label in labels):
        raise MalformedMessage(f"{excerpt(host)} is no host name")
    if name.rstrip(".").rpartition(".")[2] == "localhost" or _is_address(name):
        raise MalformedMessage(f"{name} is not looked up, so a replay cannot have servers of that name")
    return name


def _is_address(name: str) -> bool:
    """Whether browsers take `name` for an IPv4 address: its last label is a number (WHATWG URL standard, 3.5)."""
    try:
        ip_address(name)
    except ValueError:
        return re.fullmatch("[0-9]+|0x[0-9a-f]*", name.rstrip(".").rpartition(".")[2]) is not None
    return True
