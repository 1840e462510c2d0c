"""URLs in the form that browsers request, whatever their form in a recording.

Standard library only.
"""

import re
import unicodedata
from contextlib import suppress
from ipaddress import ip_address
from stringprep import in_table_b1
from urllib.parse import quote, unquote_to_bytes, urljoin

from base.text import excerpt
from record.http1 import MalformedMessage
from record.limits import HEAD_BYTES, URL_BYTES

# RFC 1035, section 2.3.4; underscores are common in practice.
MAX_HOST, MAX_LABEL = 253, 63
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
LABEL_SEPARATORS = re.compile("[.\u3002\uff0e\uff61]")  # full stops (UTS 46, section 2.3)
# Letters that browsers keep, but that the rules of 2003 replaced or removed (UTS 46, section 4, nontransitional).
DEVIATIONS = "\u00df\u03c2\u200c\u200d"
# Controls, unassigned characters, separators.
NOT_IN_A_HOST = re.compile("C[cnos]|Z.")

# Browsers strip these from a URL (section 4.4 of the WHATWG URL standard).
C0_AND_SPACE = "".join(map(chr, range(0x21)))
# quote() leaves these unchanged: the printable ASCII characters outside the percent-encode sets of the WHATWG URL
# standard (section 1.3). Chromium also has `|` in the set for paths.
PRINTABLE = {chr(code) for code in range(0x21, 0x7F)}
SENT_IN_PATHS = "".join(sorted(PRINTABLE - set('"<>`{}^|')))
SENT_IN_QUERIES = "".join(sorted(PRINTABLE - set("\"<>'")))
# A segment of a path that means this folder, or the one above (section 4.1).
HERE = re.compile(r"\.|%2e", re.IGNORECASE)
ABOVE = re.compile(r"(\.|%2e){2}", re.IGNORECASE)


def redirected(base: str, location: str) -> str | None:
    """The URL that browsers request when a response from `base` has this Location; None if it is invalid.

    `location` has one character for each byte that was sent. Browsers decode the bytes as UTF-8 if they are valid
    UTF-8.
    """
    with suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    try:
        return normal_url(urljoin(base, location))
    except ValueError:
        return None


def normal_url(url: str) -> str:
    """`url` as browsers send it (WHATWG URL standard), without user information, fragment and default port.

    Its host is in lower case and in ASCII (UTS 46). In the path and the query, characters that may not be sent are
    percent-encoded, and segments of dots are resolved; nothing else changes there. Raises MalformedMessage when it is
    no http(s) URL, or its host cannot exist in a replay.
    """
    if len(url) > HEAD_BYTES:  # check before doing expensive work
        raise MalformedMessage(f"{excerpt(url)} is longer than {URL_BYTES >> 10} KiB, which no server takes")
    written = re.sub("[\t\n\r]", "", url.strip(C0_AND_SPACE))
    # Browsers replace a lone surrogate, which is only half a character (USVString of the Web IDL standard).
    written = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", written)
    match = re.fullmatch(r"(https?)://([^/\\?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", written, re.IGNORECASE | re.DOTALL)
    if not match:
        raise MalformedMessage(f"{excerpt(url)} is not an http or https URL")
    scheme, authority, query = match[1].lower(), match[2].rpartition("@")[2], match[4] or ""
    host, port = _host_and_port(authority)
    default = "443" if scheme == "https" else "80"
    port = "" if port in ("", default) else f":{port}"
    path = _without_dots(match[3].replace("\\", "/"))
    _require_servable(path, url)
    target = quote(path, safe=SENT_IN_PATHS) + quote(query, safe=SENT_IN_QUERIES)
    normal = f"{scheme}://{_ascii_host(host)}{port}{target}"
    if len(normal) > URL_BYTES:
        raise MalformedMessage(f"{excerpt(url)} is longer than {URL_BYTES >> 10} KiB, which no server takes")
    return normal


def _without_dots(path: str) -> str:
    """`path` with its dot segments resolved. None of them leads out of the root."""
    segments: list[str] = []
    _, *rest = path.split("/") if path else ("", "")
    for place, segment in enumerate(rest, 1):
        if ABOVE.fullmatch(segment):
            del segments[-1:]
        elif not HERE.fullmatch(segment):
            segments.append(segment)
            continue
        if place == len(rest):
            segments.append("")
    return "/" + "/".join(segments)


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
        raise MalformedMessage(f"{excerpt(authority)} is not a host and port")
    return host, port.lstrip("0")


def _ascii_host(host: str) -> str:
    labels = [_ascii_label(label) for label in LABEL_SEPARATORS.split(_mapped(host))]
    name = ".".join(labels)
    if not HOST.fullmatch(name) or len(name) > MAX_HOST or any(len(label) > MAX_LABEL for label in labels):
        raise MalformedMessage(f"{excerpt(host)} is not a host name")
    if name.rstrip(".").rpartition(".")[2] == "localhost" or _is_address(name):
        raise MalformedMessage(f"{name} is not looked up, so a replay cannot have servers of that name")
    return name


def _mapped(host: str) -> str:
    """`host` after the mapping of UTS 46: case and compatible forms are folded, zero-width letters are removed."""
    if host.isascii():
        return host.lower()
    host = host.replace("\u1e9e", "\u00df")  # the capital sharp s
    parts = re.split(f"([{DEVIATIONS}])", "".join(c for c in host if c in DEVIATIONS or not in_table_b1(c)))
    folded = "".join(part if part in DEVIATIONS else unicodedata.normalize("NFKC", part).casefold() for part in parts)
    return unicodedata.normalize("NFKC", folded)


def _ascii_label(label: str) -> str:
    """A mapped label in ASCII (RFC 3492); "" if no host name may have it."""
    if label.isascii():
        return label
    kinds = list(map(unicodedata.category, label))
    if len(label) > MAX_LABEL or kinds[0].startswith("M") or any(map(NOT_IN_A_HOST.fullmatch, kinds)):
        return ""
    return f"xn--{label.encode('punycode').decode()}"


def _is_address(name: str) -> bool:
    """Whether browsers treat `name` as an IPv4 address: its last label is a number (WHATWG URL standard, 3.5)."""
    try:
        ip_address(name)
    except ValueError:
        return re.fullmatch("[0-9]+|0x[0-9a-f]*", name.rstrip(".").rpartition(".")[2]) is not None
    return True
