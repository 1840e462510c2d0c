"""The index of a site, `site.json`: reads it, and accepts only what an import could have written.

A site may come from anybody, and its values become addresses, paths, command lines and header fields. After
`Site.load`, all code can trust them: servers have addresses in 198.18.0.0/15, URLs are https and in the form that
browsers send, files are regular ones inside the site's folder, one for each exchange, and numbers are within
`record.limits`.

Standard library only.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from base.bounded import parse_json, read_regular
from base.errors import EyelevelError
from base.text import excerpt, printable
from record.connections import CONNECTIONS, Connection, parse_connection
from record.http1 import METHOD, STATUSES, MalformedMessage
from record.layout import (
    FORMAT,
    INDEX,
    OURS,
    authority_of,
    host_folder,
    is_file_name,
    server_addresses,
)
from record.limits import BODY_BYTES, FOLDER_BYTES, FURTHER_FILES, HEAD_BYTES, USER_AGENT_BYTES, excess
from record.urls import normal_url

INDEX_BYTES = 256 << 20
KEYS = {"format", "url", "recorder", "user_agent", "viewport", "servers", "exchanges", "skipped"}
OPTIONAL_KEYS = {"connections"}
EXCHANGE_KEYS = {"method", "url", "status", "server", "file", "bytes", "started_ms", "ttfb_ms"}
# The most letters of a recorded server: an address or, without one, a host's name with some words.
RECORDED_IP_LETTERS = 400
SCREEN_PIXELS = 1 << 14


class BrokenIndex(ValueError):
    """An index that no import could have written; the text says what is wrong."""


def read_index(folder: Path) -> dict[str, Any]:
    """The index of the site in `folder`, checked together with its files. Raises EyelevelError."""
    path = folder / INDEX
    try:
        document = read_regular(path, INDEX_BYTES)
    except FileNotFoundError:
        raise EyelevelError(f"{_shown(folder)} is not a recorded site: it has no {INDEX}") from None
    except (OSError, MalformedMessage) as error:
        raise EyelevelError(f"{_shown(path)} cannot be read: {printable(str(error))}") from None
    try:
        index = parse_json(document)
        if isinstance(index, dict) and index.get("format") != FORMAT and "format" in index:
            raise EyelevelError(
                f"{_shown(path)} has format {excerpt(str(index['format']))}, this version reads {FORMAT}; "
                "import the recording again"
            )
        checked = checked_index(index)
        _require_files(folder, (exchange["file"] for exchange in checked["exchanges"]))
    except ValueError as error:
        raise EyelevelError(f"{_shown(path)} is broken ({printable(str(error))}); import the recording again") from None
    except OSError as error:
        raise EyelevelError(f"{_shown(folder)} cannot be read: {error.strerror}") from None
    return checked


def checked_index(index: object) -> dict[str, Any]:
    """`index`, if an import could have written it. Raises BrokenIndex."""
    if not isinstance(index, dict) or index.keys() - OPTIONAL_KEYS != KEYS:
        raise BrokenIndex("it does not have an index's values, which are " + ", ".join(sorted(KEYS)))
    agent, viewport = index["user_agent"], index["viewport"]
    if agent is not None and not is_user_agent(agent):
        raise BrokenIndex(f"user_agent is not printable, or longer than {USER_AGENT_BYTES} bytes")
    if viewport is not None and not _is_viewport(viewport):
        raise BrokenIndex("viewport is not null or [width, height]")
    recorder = _texts_by_name(index["recorder"], "recorder")
    servers = _servers(index["servers"])
    exchanges = _exchanges(index["exchanges"], servers)
    skipped = index["skipped"]
    if not isinstance(skipped, list | tuple) or not all(isinstance(line, str) for line in skipped):
        raise BrokenIndex("skipped is not a list of texts")
    if not any(exchange["url"] == index["url"] for exchange in exchanges):
        raise BrokenIndex("url, the page to start from, is that of no exchange")
    return {
        **index,
        "recorder": {printable(name): printable(text) for name, text in recorder.items()},
        "skipped": tuple(printable(line) for line in skipped),
        "connections": _connections(index.get("connections", []), servers),
    }


def is_user_agent(agent: object) -> bool:
    """Whether a browser can be started with `agent` as its user agent."""
    return isinstance(agent, str) and len(agent) <= USER_AGENT_BYTES and agent.isprintable()


def is_recorded_ip(text: object) -> bool:
    """Whether `text` can denote a recorded server."""
    return isinstance(text, str) and len(text) <= RECORDED_IP_LETTERS and text.isprintable()


def _is_viewport(viewport: object) -> bool:
    """Whether `viewport` is a width and a height in pixels."""
    is_pair = isinstance(viewport, list | tuple) and len(viewport) == 2
    return is_pair and all(type(pixels) is int and 0 < pixels <= SCREEN_PIXELS for pixels in viewport)  # type: ignore[attr-defined]


def _texts_by_name(values: object, what: str) -> dict[str, str]:
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise BrokenIndex(f"{what} is not an object of texts")
    return values


def _servers(servers: object) -> dict[str, str]:
    """Server address → recorded IP, as `write_site` assigns them."""
    recorded_ips = _texts_by_name(servers, "servers")
    if beyond := excess(servers=len(recorded_ips)):
        raise BrokenIndex(f"it has {beyond}")
    if list(recorded_ips) != server_addresses(len(recorded_ips)):
        raise BrokenIndex("servers do not have the addresses from 198.18.0.1 on, in order")
    for ip in recorded_ips.values():
        if not is_recorded_ip(ip):
            raise BrokenIndex(f"servers has {excerpt(ip)}, which stands for no recorded server")
    return recorded_ips


def _connections(connections: object, servers: dict[str, str]) -> tuple[Connection, ...]:
    if not isinstance(connections, list) or len(connections) > CONNECTIONS:
        raise BrokenIndex(f"connections is not a list of at most {CONNECTIONS:,}")
    checked = []
    for number, document in enumerate(connections):
        try:
            connection = parse_connection(document)
        except ValueError as error:
            raise BrokenIndex(f"connection {number}: {error}") from None
        if connection.server not in servers:
            raise BrokenIndex(
                f"connection {number}: server is {excerpt(connection.server)}, which is not one of the site's"
            )
        checked.append(connection)
    return tuple(checked)


def _exchanges(exchanges: object, servers: Iterable[str]) -> list[dict[str, Any]]:
    if not isinstance(exchanges, list) or not exchanges:
        raise BrokenIndex("exchanges is not a list with at least one")
    if beyond := excess(exchanges=len(exchanges)):
        raise BrokenIndex(f"it has {beyond}")
    authorities: set[str] = set()
    for order, exchange in enumerate(exchanges):
        try:
            authorities.add(_checked_exchange(exchange, order))
        except (ValueError, EyelevelError) as error:
            raise BrokenIndex(f"exchange {order}: {error}") from None
    if beyond := excess(hosts=len(authorities), body_bytes=sum(exchange["bytes"] for exchange in exchanges)):
        raise BrokenIndex(f"it has {beyond}")
    if list(dict.fromkeys(exchange["server"] for exchange in exchanges)) != list(servers):
        raise BrokenIndex("servers are not those of the exchanges, in order of first use")
    return exchanges


def _checked_exchange(exchange: object, order: int) -> str:
    """The authority of one exchange. Raises ValueError, and EyelevelError for an invalid host."""
    if not isinstance(exchange, dict) or exchange.keys() != EXCHANGE_KEYS:
        raise BrokenIndex("it does not have the values of an exchange, which are " + ", ".join(sorted(EXCHANGE_KEYS)))
    checks: dict[str, Callable[[Any], bool]] = {
        "method": lambda method: isinstance(method, str) and METHOD.fullmatch(method) is not None,
        "url": lambda url: isinstance(url, str) and url.startswith("https://") and normal_url(url) == url,
        "status": lambda status: type(status) is int and status in STATUSES,
        "server": lambda server: isinstance(server, str),
        "file": lambda file: isinstance(file, str) and is_file_name(file.rpartition("/")[2], order),
        "bytes": lambda count: type(count) is int and 0 <= count <= BODY_BYTES,
        "started_ms": _is_time,
        "ttfb_ms": _is_time,
    }
    for name, is_sound in checks.items():
        if not is_sound(exchange[name]):
            raise BrokenIndex(f"{name} is {excerpt(str(exchange[name]))}, which no import writes")
    authority = authority_of(exchange["url"])
    folder = str(exchange["file"]).rpartition("/")[0]
    if folder != host_folder(authority):
        raise BrokenIndex(f"file is not in the folder of {authority}")
    return authority


def _is_time(time_ms: object) -> bool:
    is_number = type(time_ms) in (int, float)
    return time_ms is None or (is_number and 0 <= time_ms <= sys.float_info.max)  # type: ignore[operator]


def _require_files(folder: Path, files: Iterable[str]) -> None:
    """Refuse a folder in which a file is missing or is not regular, which has additional files in the folders of
    responses, or which is larger than a site may be.

    Raises BrokenIndex, and OSError.
    """
    hosts: dict[str, set[str]] = {}
    stored_bytes = 0
    for file in files:
        host, _, name = file.rpartition("/")
        hosts.setdefault(host, set()).add(name)
        try:
            details = (folder / file).lstat()
        except FileNotFoundError:
            raise BrokenIndex(f"{file} is missing") from None
        if not stat.S_ISREG(details.st_mode):
            raise BrokenIndex(f"{file} is not a regular file")
        if details.st_size > BODY_BYTES + HEAD_BYTES:
            raise BrokenIndex(f"{file} is longer than {BODY_BYTES >> 20} MiB")
        stored_bytes += details.st_size
    further_files = 0
    for entry in (entry for entry in os.scandir(folder) if entry.name not in hosts):
        if not entry.is_file(follow_symlinks=False):
            raise BrokenIndex(f"{excerpt(entry.name)} in its folder is not its own")
        if entry.name in OURS:  # these are limited where they are read
            continue
        further_files += 1
        stored_bytes += entry.stat(follow_symlinks=False).st_size
        if further_files > FURTHER_FILES:
            raise BrokenIndex(f"its folder has more than {FURTHER_FILES:,} files that are not its own; remove them")
    if stored_bytes > FOLDER_BYTES:
        raise BrokenIndex(f"the files in its folder are longer than {FOLDER_BYTES >> 30} GiB together")
    for host, names in hosts.items():
        if (folder / host).is_symlink():
            raise BrokenIndex(f"{host} is a link")
        for entry in os.scandir(folder / host):
            if entry.name not in names:
                raise BrokenIndex(f"{host}/{excerpt(entry.name)} in its folder is not its own")


def _shown(path: Path) -> str:
    return printable(str(path))
