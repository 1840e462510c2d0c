"""What the proxy gives to the recorder: a file for each finished exchange, and events as they happen.

A file is one line of JSON, then the body as it was sent. It gets its name when it is complete, so whatever
ends the proxy, all files are whole. An event is one line of JSON: `{"listening": port, "proxy": "…"}`,
`{"requested": n, "what": "GET https://…"}`, `{"stored": n}`, `{"failed": n, "why": "…"}`; n counts requests.

Standard library only: the proxy's addon, which writes, and the recorder, which reads, both load it.
"""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

from base.files import write_atomically
from record.http1 import Response
from record.privacy import without_credentials
from record.site import Exchange, kept_request_headers

SUFFIX = ".exchange"

FOLDER, EVENTS, KEEP_COOKIES = "EYELEVEL_EXCHANGES", "EYELEVEL_EVENTS", "EYELEVEL_KEEP_COOKIES"


def environment(folder: Path, events: int, keep_cookies: bool) -> dict[str, str]:
    """Environment variables for the proxy: where it writes, and whether it keeps the values of cookies."""
    return {FOLDER: str(folder), EVENTS: str(events), KEEP_COOKIES: "yes" if keep_cookies else ""}


class ProxyOutput:
    """The proxy's side: stores exchanges in `folder` and writes events to the descriptor `events`."""

    def __init__(self, folder: Path, events: int, keep_cookies: bool) -> None:
        self.folder = folder
        self.events = events
        self.keep_cookies = keep_cookies

    @classmethod
    def of_environment(cls) -> "ProxyOutput":
        """The output that the variables of `environment` describe."""
        return cls(Path(os.environ[FOLDER]), int(os.environ[EVENTS]), bool(os.environ[KEEP_COOKIES]))

    def listening(self, port: int, proxy: str) -> None:
        """The proxy, by name and version, accepts connections."""
        self._write_event({"listening": port, "proxy": proxy})

    def requested(self, number: int, method: str, url: str) -> None:
        """A request has begun."""
        self._write_event({"requested": number, "what": f"{method} {url}"})

    def store(self, number: int, exchange: Exchange) -> None:
        """An exchange has ended well; its `started_ms` is a time of day. What must not be kept is not written."""
        head = asdict(replace(exchange, request_headers=kept_request_headers(exchange.request_headers)))
        body = head["response"].pop("body")
        if not self.keep_cookies:
            head["response"]["headers"] = without_credentials(exchange.response.headers)
        write_atomically(self.folder / f"{number:06d}{SUFFIX}", json.dumps(head).encode() + b"\n" + body)
        self._write_event({"stored": number})

    def failed(self, number: int, why: str) -> None:
        """A request has ended, and there is nothing to keep."""
        self._write_event({"failed": number, "why": why})

    def _write_event(self, event: dict[str, object]) -> None:
        line = json.dumps(event).encode() + b"\n"
        while line:  # a pipe takes long lines in parts
            line = line[os.write(self.events, line) :]


def read_exchanges(folder: Path) -> list[Exchange]:
    """The exchanges in `folder` in the order of their requests; `started_ms` of each is a time of day."""
    return [_read(path) for path in sorted(folder.glob(f"[0-9]*{SUFFIX}"))]


def _read(path: Path) -> Exchange:
    line, _, body = path.read_bytes().partition(b"\n")
    head = json.loads(line)
    response = head["response"]
    response["headers"], head["request_headers"] = (
        tuple((name, value) for name, value in fields) for fields in (response["headers"], head["request_headers"])
    )
    return Exchange(**head | {"response": Response(**response, body=body)})
