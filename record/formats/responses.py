"""Folders of raw responses, `<host>/<file>`: the format of Chromium's quic_server, and of our sites.

A response has its URL in the header field `X-Original-Url`; without this field the file's path is the URL. The format
has no server IPs, so every host gets a server of its own.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from record.assemble import assemble
from record.http1 import Response, parse_response
from record.intake import Intake, bounded, with_true_length
from record.site import (
    INDEX,
    ORIGINAL_METHOD,
    ORIGINAL_URL,
    ORIGINAL_WAIT_MS,
    Exchange,
    Recording,
    authority_of,
    without_originals,
)

NAME = "responses"
DESCRIPTION = "a folder of raw responses (HOST/FILE)"
ENDINGS = ()

BEGINNING = b"HTTP/"


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_dir() and any(_begins_as_response(file) for file in _files(path))


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The responses under `path`, in the order of their names. Broken ones are named. Raises EyelevelError."""
    intake = Intake(path.name, keep_cookies=keep_cookies)
    for file in _files(path):
        place = file.relative_to(path)
        intake.take(str(place), partial(_exchange, file, place))
    recorder = {"tool": "raw responses", "server_ips": "not recorded; one for each host"}
    return assemble(intake, recorder)


def _files(path: Path) -> Iterator[Path]:
    files = (file for file in path.rglob("*") if file.is_file() and file.parent != path and file.name != INDEX)
    return iter(sorted(files, key=lambda file: (file.name, file)))


def _begins_as_response(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(BEGINNING)) == BEGINNING


def _exchange(file: Path, place: Path) -> Exchange:
    response = parse_response(bounded(file))
    url = response.header(ORIGINAL_URL.lower()) or f"https://{place.as_posix()}"
    method = response.header(ORIGINAL_METHOD.lower()) or "GET"
    replayed = with_true_length(method, replace(response, headers=without_originals(response.headers)))
    return Exchange(method, url, replayed, authority_of(url), ttfb_ms=_wait_ms(response))


def _wait_ms(response: Response) -> float | None:
    try:
        return float(response.header(ORIGINAL_WAIT_MS.lower()) or "nan")
    except ValueError:
        return None
