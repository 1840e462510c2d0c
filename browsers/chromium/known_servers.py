"""Lets a fresh Chromium know which version of HTTP the servers of a page speak.

A browser that uses QUIC for its first request must have learnt that the server speaks QUIC. A switch that forces QUIC
does not teach it, and Chromium then assumes that the server knows no priorities: it sends at most six requests of low
priority (images, asynchronous scripts, style sheets for print) to a host at once, and ten in all, and the next only
when one of them has ended. Over HTTP/2 there is no such limit once the connection is open. So the fresh profile can
state for every server what an earlier visit or a DNS record would have taught (RFC 7838, RFC 9460).

The file is Chromium's own: "Network Persistent State" (net/http/http_server_properties_manager.cc).
"""

import base64
import json
import struct
from collections.abc import Collection, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from base.domains import registrable_domain
from base.errors import EyelevelError

FILE = Path("Default") / "Network Persistent State"
VERSION = 5
HTTPS_PORT = 443
# A time in microseconds since 1601, as Chromium counts: later than any replay.
EXPIRATION = str(2**63 - 1)
# The most servers that Chromium remembers (`kMaxServerInfoEntries` in net/http/http_server_properties.h).
MOST_ENTRIES = 500
# Each server needs one key for requests of the page itself, and one for frames of other sites.
NEEDED_KEYS = 2


def write_known_servers(profile: Path, url: str, authorities: Collection[str], http_version: str) -> None:
    """Write into a fresh `profile` that `authorities` (host or host:port) of the page at `url` speak `http_version`.

    Raises EyelevelError when there are more than Chromium remembers.
    """
    if len(authorities) * NEEDED_KEYS > MOST_ENTRIES:
        raise EyelevelError(
            f"{url} has {len(authorities)} servers, but Chromium can know only {MOST_ENTRIES // NEEDED_KEYS} in "
            "advance; choose a protocol with known_servers = false, or another site"
        )
    file = profile / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    entries = product(_network_anonymization_keys(url), authorities)
    servers = [_server(authority, key, http_version) for key, authority in islice(entries, MOST_ENTRIES)]
    file.write_text(json.dumps({"net": {"http_server_properties": {"servers": servers, "version": VERSION}}}))


def _server(authority: str, key: list[Any], http_version: str) -> dict[str, Any]:
    server = {"anonymization": key, "server": f"https://{authority}"}
    if http_version == "h2":
        return {**server, "supports_spdy": True}
    port = urlsplit(f"https://{authority}").port or HTTPS_PORT
    service = {"advertised_alpns": ["h3"], "expiration": EXPIRATION, "port": port, "protocol_str": "quic"}
    return {**server, "alternative_service": [service]}


def _network_anonymization_keys(url: str) -> Iterator[list[Any]]:
    """The keys under which the browser may look up a server: the page's site, and whether a frame of another site asks.

    A site is a scheme and a registrable domain. A list of public suffixes says which part of the host that is.
    Chromium's list may differ, so all other parts follow it.
    """
    host = urlsplit(url).hostname or ""
    labels = host.split(".")
    parts = [".".join(labels[start:]) for start in range(max(len(labels) - 1, 1))]
    for site, is_cross_site in product(dict.fromkeys((registrable_domain(host), *parts)), (False, True)):
        text = f"https://{site}".encode()
        padded = text.ljust(-(-len(text) // 4) * 4, b"\0")
        pickle = struct.pack("<II", 4 + len(padded), len(text)) + padded
        yield [base64.b64encode(pickle).decode(), is_cross_site, 0]
