"""The recorder's connections to servers, as observed when each began.

A site stores these observations unchanged; `record.round_trips` derives from them what a replay needs. Standard library
only: the recorder's addon in mitmproxy loads this module, too.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from record.limits import SERVERS

# At most this many connections of a site are stored: a browser opens six to a host over HTTP/1.1.
CONNECTIONS = 6 * SERVERS
# No successful handshake takes longer.
HANDSHAKE_MS = 60_000.0
CERTIFICATES, CERTIFICATE_BYTES, NAMES = 16, 1 << 16, 2000
# The name of a host, or a wildcard for a domain (RFC 6125, section 6.4.3).
NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
NAME_LETTERS = 255
# The name of a protocol in ALPN (RFC 7301).
HTTP1 = "http/1.1"
ALPN = re.compile(r"[A-Za-z0-9./+_-]{1,32}")


@dataclass(frozen=True)
class Connection:
    """One connection to a server for a `host`. In a recording, `server` is the recorded IP; in a site, it is the
    address.

    `handshake_ms`: the time of the TCP handshake, which is one round trip; or of the QUIC handshake, including TLS.
    `tls_ms`: the time of the TLS handshake after TCP. `alpn`: the negotiated protocol. `certificates`: the size in
    bytes of each certificate of the chain (DER), in the order sent, the server's own first; `names` are the host names
    in the server's own certificate. Empty or None if the recorder did not see it.
    """

    server: str
    host: str
    handshake_ms: float | None = None
    tls_ms: float | None = None
    alpn: str | None = None
    certificates: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedRtt:
    """The round-trip time of a server: the shortest of the `count` handshakes that the recorder saw."""

    rtt_ms: float
    count: int


def recorded_rtts(connections: Iterable[Connection]) -> dict[str, RecordedRtt]:
    """Connection's `server` → its round-trip time, if one was recorded.

    A handshake takes one round trip plus delays at both ends. So the shortest one is nearest to the path's own time.
    """
    times_ms: dict[str, list[float]] = {}
    for connection in connections:
        if connection.handshake_ms is not None:
            times_ms.setdefault(connection.server, []).append(connection.handshake_ms)
    return {server: RecordedRtt(min(times), len(times)) for server, times in times_ms.items()}


def http1_servers(connections: Iterable[Connection]) -> frozenset[str]:
    """Each `server` whose connections all negotiated HTTP/1.1, as far as known."""
    spoken: dict[str, set[str]] = {}
    for connection in connections:
        if connection.alpn:
            spoken.setdefault(connection.server, set()).add(connection.alpn)
    return frozenset(server for server, alpns in spoken.items() if alpns == {HTTP1})


KEYS = {one.name for one in fields(Connection)}


def sound(connection: Connection) -> Connection:
    """`connection`, which may come from anybody, without values that no site may hold. Raises ValueError when its host
    is no host name."""
    # Browsers send a name without the root's dot (RFC 6066, section 3).
    host = connection.host.lower().removesuffix(".")
    if not _is_name(host):
        raise ValueError(f"{host[:NAME_LETTERS]!r} is not a host's name")
    sizes = [size for size in connection.certificates if _is_size(size)][:CERTIFICATES]
    names = (str(name).lower() for name in connection.names)
    return replace(
        connection,
        host=host,
        handshake_ms=connection.handshake_ms if _is_time(connection.handshake_ms) else None,
        tls_ms=connection.tls_ms if _is_time(connection.tls_ms) else None,
        alpn=connection.alpn if isinstance(connection.alpn, str) and ALPN.fullmatch(connection.alpn) else None,
        certificates=tuple(sizes),
        names=tuple(dict.fromkeys(name for name in names if _is_name(name)))[:NAMES],
    )


def parse_connection(document: Any) -> Connection:
    """The connection described in an index. Raises ValueError unless an import could have written it."""
    if not isinstance(document, dict) or document.keys() != KEYS:
        raise ValueError("it does not have the values of a connection, which are " + ", ".join(sorted(KEYS)))
    certificates, names = document["certificates"], document["names"]
    if not (isinstance(document["server"], str) and isinstance(document["host"], str)):
        raise ValueError("its server or its host is not text")
    if not (isinstance(certificates, list | tuple) and isinstance(names, list | tuple)):
        raise ValueError("its certificates or their names are no list")
    connection = Connection(**{**document, "certificates": tuple(certificates), "names": tuple(names)})
    if sound(connection) != connection:
        raise ValueError("it has a value that no import writes")
    return connection


def _is_name(text: str) -> bool:
    return len(text) <= NAME_LETTERS and NAME.fullmatch(text) is not None


def _is_time(time_ms: object) -> bool:
    is_number = type(time_ms) in (int, float)
    return is_number and math.isfinite(time_ms) and 0 <= time_ms <= HANDSHAKE_MS  # type: ignore[arg-type, operator]


def _is_size(size: object) -> bool:
    return type(size) is int and 0 < size <= CERTIFICATE_BYTES
