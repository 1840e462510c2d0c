"""A recorded site: its exchanges, and their layout on disk (`sites/<name>/`).

    site.json                   index: where the page starts, how it was recorded, every exchange
    <host>/<NNNNN>-<slug>       one raw response each, as quic_server and the uWSGI application load it

Every distinct recorded server IP becomes one address of 198.18.0.0/15 (RFC 2544's benchmark range),
in order of first use. Everything in a site is https. This module does not know where a recording
came from. Standard library only: the recorder's addon in mitmproxy and the application in uWSGI load it too.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from base.errors import EyelevelError
from base.files import replacing_folder, write_atomically
from record.http1 import Headers, MalformedMessage, Response, format_response, parse_response, without_fields

FORMAT = 1
INDEX = "site.json"
FIRST_SERVER = IPv4Address("198.18.0.1")

# The servers read from these which request a stored response answers. Browsers never get them.
ORIGINAL_URL = "X-Original-Url"
ORIGINAL_METHOD = "X-Original-Method"
ORIGINAL_WAIT_MS = "X-Original-Wait-Ms"  # the server's time to the first byte, where it was recorded
_ORIGINALS = frozenset(name.lower() for name in (ORIGINAL_URL, ORIGINAL_METHOD, ORIGINAL_WAIT_MS))

# Matching needs these of a request, and so does the search for the start page. Cookies and authorisation are not kept.
KEPT_REQUEST_HEADERS = frozenset({"referer", "user-agent", "range", "origin", "access-control-request-method"})


@dataclass(frozen=True)
class Exchange:
    """One request and its response, as a recorder saw them."""

    method: str
    url: str
    response: Response
    recorded_ip: str
    started_ms: float | None = None
    ttfb_ms: float | None = None
    request_headers: Headers = ()


@dataclass(frozen=True)
class Recording:
    """The result of an importer or the recorder: exchanges in recorded order, and the page that they belong to."""

    url: str
    exchanges: tuple[Exchange, ...]
    recorder: dict[str, str]
    user_agent: str | None = None
    viewport: tuple[int, int] | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexedExchange:
    """One exchange in the index; the response itself is in `file` of the site's folder."""

    method: str
    url: str
    status: int
    server: str
    file: str
    bytes: int
    started_ms: float | None = None
    ttfb_ms: float | None = None

    @property
    def authority(self) -> str:
        """The host and, unless it is 443, the port."""
        return authority_of(self.url)


@dataclass(frozen=True)
class Site:
    """A recorded site on disk."""

    folder: Path
    url: str
    recorder: dict[str, str]
    user_agent: str | None
    viewport: tuple[int, int] | None
    recorded_ips: dict[str, str]
    exchanges: tuple[IndexedExchange, ...]
    skipped: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """Server address → the authorities it answers for, both in recorded order."""
        servers: dict[str, dict[str, None]] = {address: {} for address in self.recorded_ips}
        for exchange in self.exchanges:
            servers[exchange.server].setdefault(exchange.authority)
        return {address: tuple(authorities) for address, authorities in servers.items()}

    @cached_property
    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Host name → the addresses of its servers, in recorded order: what name resolution answers."""
        hosts: dict[str, dict[str, None]] = {}
        for exchange in self.exchanges:
            host = exchange.authority.partition(":")[0]
            hosts.setdefault(host, {}).setdefault(exchange.server)
        return {host: tuple(addresses) for host, addresses in hosts.items()}

    def request_headers(self, url: str) -> Headers:
        """The header fields that a request for `url` is exported with; a site keeps none but the user agent.

        The start page has no referrer. It is the referrer of all others, so that an import finds it again.
        """
        referrer: Headers = () if url == self.url else (("Referer", self.url),)
        return (*referrer, ("User-Agent", self.user_agent)) if self.user_agent else referrer

    def recorded(self, indexed: IndexedExchange) -> Exchange:
        """An exchange with its response, read from disk. Raises EyelevelError."""
        path = self.folder / indexed.file
        try:
            stored = parse_response(path.read_bytes())
        except (OSError, MalformedMessage) as error:
            raise EyelevelError(f"{path} is no recorded response: {error}; import the site again") from None
        return Exchange(
            method=indexed.method,
            url=indexed.url,
            response=replace(stored, headers=without_originals(stored.headers)),
            recorded_ip=self.recorded_ips[indexed.server],
            started_ms=indexed.started_ms,
            ttfb_ms=indexed.ttfb_ms,
        )

    @classmethod
    def load(cls, folder: Path) -> "Site":
        """Read the index of the site in `folder`. Raises EyelevelError."""
        index_path = folder / INDEX
        try:
            index = json.loads(index_path.read_text())
        except FileNotFoundError:
            raise EyelevelError(f"{folder} is not a recorded site: it has no {INDEX}") from None
        except ValueError as error:
            raise EyelevelError(f"{index_path} is broken ({error}); import the site again") from None
        try:
            if index["format"] != FORMAT:
                raise EyelevelError(
                    f"{index_path} has format {index['format']}, this version reads {FORMAT}; import it again"
                )
            return cls(
                folder=folder,
                url=index["url"],
                recorder=index["recorder"],
                user_agent=index["user_agent"],
                viewport=tuple(index["viewport"]) if index["viewport"] else None,
                recorded_ips=index["servers"],
                exchanges=tuple(IndexedExchange(**exchange) for exchange in index["exchanges"]),
                skipped=tuple(index["skipped"]),
            )
        except (KeyError, TypeError) as error:
            raise EyelevelError(f"{index_path} is broken ({error!r}); import the site again") from None


def write_site(recording: Recording, folder: Path) -> Site:
    """Store `recording` as the site `folder`; an older one stays whole until the new one is complete.

    Raises EyelevelError when there is nothing to store, the start URL was not recorded, or it cannot be written.
    """
    if not recording.exchanges:
        raise EyelevelError(f"{folder.name}: the recording holds no exchange that can be replayed")
    if recording.url not in {exchange.url for exchange in recording.exchanges}:
        raise EyelevelError(f"{folder.name}: the start page {recording.url} was not recorded")
    addresses = _assign_addresses(exchange.recorded_ip for exchange in recording.exchanges)
    try:
        with replacing_folder(folder, INDEX) as new:
            _write(recording, addresses, new)
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written: {error.strerror}") from None
    return Site.load(folder)


def _write(recording: Recording, addresses: dict[str, str], folder: Path) -> None:
    indexed = [
        _store(folder, order, exchange, addresses[exchange.recorded_ip])
        for order, exchange in enumerate(recording.exchanges)
    ]
    index: dict[str, Any] = {
        "format": FORMAT,
        "url": recording.url,
        "recorder": recording.recorder,
        "user_agent": recording.user_agent,
        "viewport": recording.viewport,
        "servers": {address: ip for ip, address in addresses.items()},
        "exchanges": [asdict(exchange) for exchange in indexed],
        "skipped": recording.skipped,
    }
    write_atomically(folder / INDEX, json.dumps(index, indent=1) + "\n")


def kept_request_headers(headers: Headers) -> Headers:
    """A request's header fields without those that are not needed; cookies are never kept."""
    return tuple((name, value) for name, value in headers if name.lower() in KEPT_REQUEST_HEADERS)


def without_originals(headers: Headers) -> Headers:
    """A stored response's header fields without those that name the request it answers."""
    return without_fields(headers, _ORIGINALS)


def authority_of(url: str) -> str:
    """The authority of an https URL as servers see it: lower case, without the default port."""
    authority = urlsplit(url).netloc.rpartition("@")[2].lower()
    return authority.removesuffix(":443")


def host_folder(authority: str) -> str:
    """The name of the folder that holds an authority's responses.

    Raises EyelevelError for an authority that is no host name, since it could lead out of the site.
    """
    if not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?(:\d+)?", authority):
        raise EyelevelError(f"{authority!r} in the recording is no host name; leave out its exchanges")
    return authority.replace(":", "_")


def _assign_addresses(recorded_ips: Iterable[str]) -> dict[str, str]:
    return {ip: str(FIRST_SERVER + number) for number, ip in enumerate(dict.fromkeys(recorded_ips))}


def _store(folder: Path, order: int, exchange: Exchange, server: str) -> IndexedExchange:
    """Write one response and return its line in the index."""
    host = folder / host_folder(authority_of(exchange.url))
    host.mkdir(exist_ok=True)
    path = host / f"{order:05d}-{_slug(exchange.url)}"
    response = exchange.response.replayable(exchange.method)
    origin: Headers = ((ORIGINAL_URL, exchange.url), (ORIGINAL_METHOD, exchange.method))
    if exchange.ttfb_ms is not None:
        origin += ((ORIGINAL_WAIT_MS, f"{exchange.ttfb_ms:g}"),)
    path.write_bytes(format_response(replace(response, headers=origin + response.headers)))
    return IndexedExchange(
        method=exchange.method,
        url=exchange.url,
        status=response.status,
        server=server,
        file=str(path.relative_to(folder)),
        bytes=len(response.body),
        started_ms=exchange.started_ms,
        ttfb_ms=exchange.ttfb_ms,
    )


def _slug(url: str) -> str:
    """A short file name without special characters, by which a person recognises the URL."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last)[-60:] or "index"
