"""Folders of raw responses, `<host>/<file>`: the format of Chromium's quic_server, and of our sites.

A response has its URL in the header field `X-Original-Url`; otherwise the file's path is the URL. The format has no
server IPs, so every host gets a server of its own.
"""

import os
from functools import partial
from itertools import islice
from pathlib import Path

from base.bounded import open_regular
from base.errors import EyelevelError
from record.assemble import assemble
from record.content import Budget
from record.http1 import Response
from record.intake import Intake, bounded, with_true_length
from record.layout import (
    INDEX,
    ORIGINAL_METHOD,
    ORIGINAL_URL,
    ORIGINAL_WAIT_MS,
    authority_of,
    require_single_originals,
    without_originals,
)
from record.limits import EXCHANGES, excess
from record.site import Exchange, Recording
from record.urls import normal_url
from record.wire import read_response

NAME = "responses"
DESCRIPTION = "a folder of raw responses (HOST/FILE)"
ENDINGS = ()

BEGINNING = b"HTTP/"


def recognises(path: Path) -> bool:
    """Whether `path` is a recording in this format."""
    return path.is_dir() and any(_begins_as_response(file) for file in _files(path))


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The responses in `path`, in the order of their names. Broken ones are left out and named. Raises EyelevelError.

    Links, pipes and devices are named, too: only files in the folder belong to the recording.
    """
    intake = Intake(path.name, keep_cookies=keep_cookies)
    files = _files(path)
    if beyond := excess(exchanges=len(files)):
        raise EyelevelError(f"{path} holds {beyond}; import one page's load of it")
    for file in files:
        place = file.relative_to(path)
        intake.take(str(place), partial(_exchange, file, place, intake.budget))
    recorder = {"tool": "raw responses", "server_ips": "not recorded; one for each host"}
    return assemble(intake, recorder)


def _files(path: Path) -> list[Path]:
    """All entries of the subfolders of `path` that are not folders; at most one more than the limit."""
    files = (file for file in path.rglob("*") if file.parent != path and file.name != INDEX and not _is_folder(file))
    return sorted(islice(files, EXCHANGES + 1), key=lambda file: (file.name, file))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _begins_as_response(file: Path) -> bool:
    try:
        with os.fdopen(open_regular(file), "rb") as stream:
            return stream.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False  # it is named when the recording is read


def _exchange(file: Path, place: Path, budget: Budget) -> Exchange:
    response = read_response(bounded(file))
    require_single_originals(response.headers)
    url = normal_url(response.header(ORIGINAL_URL.lower()) or f"https://{place.as_posix()}")
    method = response.header(ORIGINAL_METHOD.lower()) or "GET"
    replayed = with_true_length(method, response._replace(headers=without_originals(response.headers)), budget)
    return Exchange(method, url, replayed, authority_of(url), ttfb_ms=_wait_ms(response))


def _wait_ms(response: Response) -> float | None:
    try:
        return float(response.header(ORIGINAL_WAIT_MS.lower()) or "nan")
    except ValueError:
        return None
