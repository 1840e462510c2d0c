"""The proxy's output for the recorder: a file for each finished exchange, one for each connection with a finished
exchange, and events as they happen.

The file of an exchange is one line of JSON, then the body as it was sent; that of a connection is JSON. A file gets its
name when it is complete, so all files are whole, however the proxy ends. An event is one line of JSON:
`{"listening": port, "proxy": "…"}`, `{"requested": n, "what": "GET https://…"}`, `{"stored": n}`,
`{"failed": n, "why": "…"}`; n counts requests, and URLs are cut after 200 characters.

Standard library only: the proxy's addon, which writes, and the recorder, which reads, both load it.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO

from base.files import write_atomically
from base.jail import opened_in
from record.connections import Connection
from record.http1 import Response
from record.privacy import without_credentials
from record.site import Exchange, kept_request_headers

SUFFIX, CONNECTION_SUFFIX = ".exchange", ".connection"
URL_CHARACTERS = 200


class ProxyOutput:
    """The proxy's side: stores exchanges in `folder` and writes events to the descriptor `events`."""

    def __init__(self, folder: Path, events: int, keep_cookies: bool) -> None:
        self.folder = folder
        self.events = events
        self.keep_cookies = keep_cookies

    def listening(self, port: int, proxy: str) -> None:
        """The proxy, by name and version, accepts connections."""
        self._write_event({"listening": port, "proxy": proxy})

    def requested(self, number: int, method: str, url: str) -> None:
        """A request has begun."""
        excerpt = url if len(url) <= URL_CHARACTERS else f"{url[:URL_CHARACTERS]}…"
        self._write_event({"requested": number, "what": f"{method} {excerpt}"})

    def store(self, number: int, exchange: Exchange) -> None:
        """An exchange has ended well; its `started_ms` is a time of day. Header fields not to be kept are left out."""
        response = exchange.response._asdict()
        body = response.pop("body")
        if not self.keep_cookies:
            response["headers"] = without_credentials(exchange.response.headers)
        kept = kept_request_headers(exchange.request_headers)
        head = asdict(replace(exchange, request_headers=kept)) | {"response": response}
        write_atomically(self.folder / f"{number:06d}{SUFFIX}", json.dumps(head).encode() + b"\n" + body)
        self._write_event({"stored": number})

    def connected(self, number: int, connection: Connection) -> None:
        """A connection was made, over which the exchange `number` is the first that ended well."""
        write_atomically(self.folder / f"{number:06d}{CONNECTION_SUFFIX}", json.dumps(asdict(connection)).encode())

    def failed(self, number: int, why: str) -> None:
        """A request has ended, and there is nothing to keep."""
        self._write_event({"failed": number, "why": why})

    def _write_event(self, event: dict[str, object]) -> None:
        line = json.dumps(event).encode() + b"\n"
        while line:  # a pipe takes long lines in parts
            line = line[os.write(self.events, line) :]


def read_exchanges(folder: Path) -> Iterator[Exchange]:
    """The exchanges in `folder`, where the proxy may be at work, in the order of their requests; `started_ms` of each
    is a time of day.

    Their files, which are in memory, are removed one by one: each exchange is held once.
    """
    for name in sorted(path.name for path in folder.glob(f"[0-9]*{SUFFIX}")):
        if file := opened_in(folder, name):
            yield _read(file)
            (folder / name).unlink()


def read_connections(folder: Path) -> Iterator[Connection]:
    """The connections in `folder`, in the order in which they had their first exchange."""
    for name in sorted(path.name for path in folder.glob(f"[0-9]*{CONNECTION_SUFFIX}")):
        if file := opened_in(folder, name):
            with file:
                document = json.load(file)
            yield Connection(**document | {key: tuple(document[key]) for key in ("certificates", "names")})


def _read(file: BinaryIO) -> Exchange:
    with file:
        head, body = json.loads(file.readline()), file.read()
    response = head["response"]
    response["headers"], head["request_headers"] = (
        tuple((name, value) for name, value in fields) for fields in (response["headers"], head["request_headers"])
    )
    return Exchange(**head | {"response": Response(**response, body=body)})
