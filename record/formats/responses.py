"""Folders of raw responses, `<host>/<file>`: what Chromium's quic_server and our sites are made of.

A response names its URL in an `X-Original-Url` header; without one it is that of the file's path. Server
IPs are not part of the format: every host is taken to have a server of its own.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from record.assemble import assemble
from record.http1 import MalformedMessage, parse_response
from record.site import INDEX, ORIGINAL_METHOD, ORIGINAL_URL, Exchange, Recording, authority_of

BEGINNING = b"HTTP/"


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_dir() and any(_begins_as_response(file) for file in _files(path))


def read(path: Path) -> Recording:
    """The responses under `path`, in the order of their names. Broken ones are named. Raises EyelevelError."""
    exchanges, skipped = [], []
    for file in _files(path):
        try:
            exchanges.append(_exchange(file, file.relative_to(path)))
        except MalformedMessage as error:
            skipped.append(f"{file.relative_to(path)}: {error}")
    recorder = {"tool": "raw responses", "server_ips": "not recorded; one for each host"}
    return assemble(path.name, exchanges, skipped, recorder)


def _files(path: Path) -> Iterator[Path]:
    files = (file for file in path.rglob("*") if file.is_file() and file.parent != path and file.name != INDEX)
    return iter(sorted(files, key=lambda file: (file.name, file)))


def _begins_as_response(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(BEGINNING)) == BEGINNING


def _exchange(file: Path, place: Path) -> Exchange:
    response = parse_response(file.read_bytes())
    url = response.header(ORIGINAL_URL.lower()) or f"https://{place.as_posix()}"
    method = response.header(ORIGINAL_METHOD.lower()) or "GET"
    own = {ORIGINAL_URL.lower(), ORIGINAL_METHOD.lower()}
    headers = tuple((name, value) for name, value in response.headers if name.lower() not in own)
    return Exchange(method, url, replace(response, headers=headers), authority_of(url))
