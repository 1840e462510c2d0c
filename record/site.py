"""A recorded site: its exchanges, in memory and on disk (`sites/<name>/`; `record.layout` has the names of its files).

Each recorded server IP becomes an address in 198.18.0.0/15, in the order of first use. Everything in a site is https.
This module does not depend on where a recording came from. Standard library only: the recorder's addon in mitmproxy and
the application in uWSGI load it, too.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from base.bounded import read_regular
from base.errors import EyelevelError
from base.files import replacing_folder, write_atomically
from record.connections import Connection, RecordedRtt, recorded_rtts
from record.http1 import Headers, MalformedMessage, Response, format_response, parse_response
from record.index import BrokenIndex, checked_index, read_index
from record.layout import (
    FORMAT,
    INDEX,
    ORIGINAL_METHOD,
    ORIGINAL_URL,
    ORIGINAL_WAIT_MS,
    PAGE_SCRIPT,
    authority_of,
    file_name,
    host_folder,
    server_addresses,
    without_originals,
)
from record.limits import BODY_BYTES, HEAD_BYTES
from record.live import LiveLoads, write_live
from record.page_script import read_page_script

# The request header fields that matching and the search for the start page need. Cookies and authorisation are never
# stored.
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
    """The result of an importer or the recorder: exchanges in recorded order, the page that they belong to, the
    recorder's connections to their servers, and, if any, the page's live loads and its page script."""

    url: str
    exchanges: tuple[Exchange, ...]
    recorder: dict[str, str]
    user_agent: str | None = None
    viewport: tuple[int, int] | None = None
    skipped: tuple[str, ...] = ()
    connections: tuple[Connection, ...] = ()
    live: LiveLoads | None = None
    page_script: str | None = None


@dataclass(frozen=True)
class IndexedExchange:
    """One exchange in the index; its response is in the file `file` in the site's folder."""

    method: str
    url: str
    status: int
    server: str
    file: str
    bytes: int
    started_ms: float | None = None
    ttfb_ms: float | None = None

    @cached_property
    def authority(self) -> str:
        """The host and, unless it is 443, the port."""
        return authority_of(self.url)

    @property
    def folder(self) -> str:
        """The name of the folder that contains its file."""
        return self.file.partition("/")[0]


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
    connections: tuple[Connection, ...] = ()
    page_script: str | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def page_bytes(self) -> int:
        """The bytes of all bodies, with their content-encoding."""
        return sum(exchange.bytes for exchange in self.exchanges)

    @cached_property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """Server address → the authorities for which it answers, both in recorded order."""
        servers: dict[str, dict[str, None]] = {address: {} for address in self.recorded_ips}
        for exchange in self.exchanges:
            servers[exchange.server].setdefault(exchange.authority)
        return {address: tuple(authorities) for address, authorities in servers.items()}

    @cached_property
    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Host name → the addresses of its servers, in recorded order: the answers of name resolution."""
        hosts: dict[str, dict[str, None]] = {}
        for exchange in self.exchanges:
            host = exchange.authority.partition(":")[0]
            hosts.setdefault(host, {}).setdefault(exchange.server)
        return {host: tuple(addresses) for host, addresses in hosts.items()}

    @cached_property
    def host_folders(self) -> dict[str, str]:
        """Authority → the name of the folder with its responses."""
        return {exchange.authority: exchange.folder for exchange in self.exchanges}

    def request_headers(self, url: str) -> Headers:
        """The header fields with which a request for `url` is exported. A site stores only the user agent; the referrer
        is generated.

        The start page has no referrer. It is the referrer of all others, so that an import finds it again.
        """
        referrer: Headers = () if url == self.url else (("Referer", self.url),)
        return (*referrer, ("User-Agent", self.user_agent)) if self.user_agent else referrer

    def recorded(self, indexed: IndexedExchange) -> Exchange:
        """An exchange with its response, read from disk. Raises EyelevelError."""
        path = self.folder / indexed.file
        try:
            stored = parse_response(read_regular(path, BODY_BYTES + HEAD_BYTES))
        except (OSError, MalformedMessage) as error:
            raise EyelevelError(f"{path} is not a recorded response: {error}; import the site again") from None
        return Exchange(
            method=indexed.method,
            url=indexed.url,
            response=stored._replace(headers=without_originals(stored.headers)),
            recorded_ip=self.recorded_ips[indexed.server],
            started_ms=indexed.started_ms,
            ttfb_ms=indexed.ttfb_ms,
        )

    @classmethod
    def load(cls, folder: Path) -> "Site":
        """Read the site in `folder`, which may come from anybody; see `record.index`. Raises EyelevelError."""
        index, page_script = read_index(folder), folder / PAGE_SCRIPT
        return cls(
            folder=folder,
            url=index["url"],
            recorder=index["recorder"],
            user_agent=index["user_agent"],
            viewport=tuple(index["viewport"]) if index["viewport"] else None,
            recorded_ips=index["servers"],
            exchanges=tuple(IndexedExchange(**exchange) for exchange in index["exchanges"]),
            skipped=index["skipped"],
            connections=index["connections"],
            page_script=read_page_script(page_script) if page_script.exists() else None,
        )

    def recorded_connections(self) -> tuple[Connection, ...]:
        """The site's connections in the form of a recording, with recorded IPs."""
        return tuple(replace(one, server=self.recorded_ips[one.server]) for one in self.connections)

    def recording(self) -> Recording:
        """The site as a recording, without live loads. Raises EyelevelError."""
        return Recording(
            url=self.url,
            exchanges=tuple(self.recorded(exchange) for exchange in self.exchanges),
            recorder=self.recorder,
            user_agent=self.user_agent,
            viewport=self.viewport,
            skipped=self.skipped,
            connections=self.recorded_connections(),
            page_script=self.page_script,
        )


def write_site(recording: Recording, folder: Path) -> Site:
    """Store `recording` as the site `folder`; an existing site stays whole until the new one is complete.

    Raises EyelevelError when there is nothing to store, the start URL was not recorded, or the site cannot be written.
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
    except BrokenIndex as error:
        raise EyelevelError(f"{folder.name}: the recording cannot be stored: {error}") from None
    return Site.load(folder)


def _write(recording: Recording, addresses: dict[str, str], folder: Path) -> None:
    rtts = recorded_rtts(recording.connections)
    indexed = [
        _store(folder, order, exchange, addresses[exchange.recorded_ip], _think_ms(exchange, rtts))
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
    if connections := [one for one in recording.connections if one.server in addresses]:
        index["connections"] = [asdict(replace(one, server=addresses[one.server])) for one in connections]
    checked_index(index)  # make sure that what is written can be read again
    if recording.live:
        write_live(recording.live, folder)
    if recording.page_script is not None:
        write_atomically(folder / PAGE_SCRIPT, recording.page_script)
    write_atomically(folder / INDEX, json.dumps(index, indent=1) + "\n")


def kept_request_headers(headers: Headers) -> Headers:
    """A request's header fields without those that are not needed; cookies are never stored."""
    return tuple((name, value) for name, value in headers if name.lower() in KEPT_REQUEST_HEADERS)


def _assign_addresses(recorded_ips: Iterable[str]) -> dict[str, str]:
    distinct = dict.fromkeys(recorded_ips)
    return dict(zip(distinct, server_addresses(len(distinct)), strict=True))


def _think_ms(exchange: Exchange, rtts: Mapping[str, RecordedRtt]) -> float | None:
    """The server's think time: the time to the first byte, minus the round trip if known."""
    if exchange.ttfb_ms is None or exchange.recorded_ip not in rtts:
        return exchange.ttfb_ms
    return max(0.0, exchange.ttfb_ms - rtts[exchange.recorded_ip].rtt_ms)


def _store(folder: Path, order: int, exchange: Exchange, server: str, think_ms: float | None) -> IndexedExchange:
    """Write one response; returns its entry in the index. `think_ms` is how long the server should take to answer, if
    asked to."""
    host = folder / host_folder(authority_of(exchange.url))
    host.mkdir(exist_ok=True)
    path = host / file_name(order, exchange.url)
    response = exchange.response.replayable(exchange.method)
    origin: Headers = ((ORIGINAL_URL, exchange.url), (ORIGINAL_METHOD, exchange.method))
    if think_ms is not None:
        origin += ((ORIGINAL_WAIT_MS, f"{think_ms:g}"),)
    path.write_bytes(format_response(response._replace(headers=origin + response.headers)))
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
