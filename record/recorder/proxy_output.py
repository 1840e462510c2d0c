"""The proxy's output for the recorder: a file for each finished exchange, one for each connection with a finished
exchange, and events as they happen.

The file of an exchange is one line of JSON, then the body as it was sent; that of a connection is JSON. A file gets its
name when it is complete, so all files are whole, however the proxy ends. An event is one line of JSON: `{"listening":
port, "proxy": "…"}`, `{"requested": n, "what": "GET https://…"}`, `{"stored": n}`, `{"failed": n, "why": "…"}`; n is
the number of the request, and URLs are cut after 200 characters.

Standard library only: both the proxy's addon, which writes, and the recorder, which reads, load this module.
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
    """The proxy's side: stores exchanges in `folder`, and writes events to the descriptor `events`."""

    def __init__(self, folder: Path, events: int, keep_cookies: bool) -> None:
        self.folder = folder
        self.events = events
        self.keep_cookies = keep_cookies

    def listening(self, port: int, proxy: str) -> None:
        """The proxy, with this name and version, accepts connections."""
        self._write_event({"listening": port, "proxy": proxy})

    def requested(self, number: int, method: str, url: str) -> None:
        """A request has begun."""
        excerpt = url if len(url) <= URL_CHARACTERS else f"{url[:URL_CHARACTERS]}…"
        self._write_event({"requested": number, "what": f"{method} {excerpt}"})

    def store(self, number: int, exchange: Exchange) -> None:
        """An exchange has ended well; its `started_ms` is a time of day. Header fields that must not be stored are left
        out."""
        response = exchange.response._asdict()
        body = response.pop("body")
        if not self.keep_cookies:
            response["headers"] = without_credentials(exchange.response.headers)
        kept = kept_request_headers(exchange.request_headers)
        head = asdict(replace(exchange, request_headers=kept)) | {"response": response}
        write_atomically(self.folder / f"{number:06d}{SUFFIX}", json.dumps(head).encode() + b"\n" + body)
        self._write_event({"stored": number})

    def connected(self, number: int, connection: Connection) -> None:
        """Store a `connection`; `number` is that of the first exchange over it that ended well."""
        write_atomically(self.folder / f"{number:06d}{CONNECTION_SUFFIX}", json.dumps(asdict(connection)).encode())

    def failed(self, number: int, why: str) -> None:
        """A request has ended, and there is nothing to store."""
        self._write_event({"failed": number, "why": why})

    def _write_event(self, event: dict[str, object]) -> None:
        line = json.dumps(event).encode() + b"\n"
        while line:  # a pipe accepts long lines in parts
            line = line[os.write(self.events, line) :]


def read_exchanges(folder: Path) -> Iterator[Exchange]:
    """The exchanges in `folder`, in the order of their requests; the proxy may still be working. `started_ms` of each
    is a time of day.

    Their files, which are in memory, are removed one by one, so that each exchange is held only once.
    """
    for name in sorted(path.name for path in folder.glob(f"[0-9]*{SUFFIX}")):
        if file := opened_in(folder, name):
            yield _read(file)
            (folder / name).unlink()


def read_connections(folder: Path) -> Iterator[Connection]:
    """The connections in `folder`, in the order of their first exchanges."""
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
