"""Response bodies over TCP stay in the site's files, and are sent as they were when the server started."""

import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from support.level import FAST

from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay import ReplaySpec, run
from servers.application.body import PIECE_BYTES, BodyInFile
from servers.application.wsgi import SMALL_BODY_BYTES, StoredResponse, load_responses
from tuning import protocols

SIZES_BYTES = (0, 1, SMALL_BODY_BYTES, SMALL_BODY_BYTES + 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES)
BODIES = tuple(os.urandom(size) for size in SIZES_BYTES)
LONG = SIZES_BYTES.index(3 * PIECE_BYTES)
# uWSGI with Python takes about 14 MB without a site.
LARGE_BYTES, MOST_UWSGI_MB = 64 << 20, 40

# The number is from "EXIT CODES" in curl's manual.
CURL_HTTP2_STREAM_ERROR = 92


def site_of(bodies: tuple[bytes, ...], folder: Path) -> Site:
    exchanges = tuple(
        # The long header puts the end of one response's head into another page of its file.
        Exchange(
            "GET", f"https://a.example/{place}", Response(200, "OK", (("X", "x" * place * 2000),), body), "192.0.2.1"
        )
        for place, body in enumerate(bodies)
    )
    return write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), folder)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_of(BODIES, tmp_path / "site")


def loaded(site: Site) -> list[StoredResponse]:
    return [recorded.response for recorded in load_responses(site.folder)]


def open_files(site: Site) -> int:
    """How many of the site's files this process has open."""
    return sum(file.path.startswith(str(site.folder)) for file in psutil.Process().open_files())


def test_bodies_are_those_of_the_files_and_come_in_pieces(site: Site) -> None:
    responses = loaded(site)
    assert tuple(response.body for response in responses) == BODIES
    assert [len(piece) for piece in responses[LONG].pieces()] == [PIECE_BYTES] * 3
    in_files = [isinstance(response.stored_body, BodyInFile) for response in responses]
    assert in_files == [size > SMALL_BODY_BYTES for size in SIZES_BYTES]
    assert open_files(site) == sum(in_files)
    del responses
    assert open_files(site) == 0


def test_a_site_that_is_replaced_meanwhile_is_served_as_it_was(site: Site) -> None:
    responses = loaded(site)
    shutil.rmtree(site.folder)
    site_of(BODIES[::-1], site.folder)
    assert tuple(response.body for response in responses) == BODIES


def test_a_body_that_became_shorter_is_no_whole_response(site: Site) -> None:
    response = loaded(site)[LONG]
    os.truncate(site.folder / response.file, SIZES_BYTES[LONG])
    pieces = response.pieces()
    with pytest.raises(OSError, match="became shorter"):
        list(pieces)


@pytest.mark.needs_namespaces
def test_a_client_does_not_take_a_part_of_a_body_for_all_of_it(site: Site) -> None:
    file, url = site.folder / site.exchanges[LONG].file, site.exchanges[LONG].url
    script = f"curl -sS -o /dev/null {url} && truncate --size -1 {file} && curl -sS -o /dev/null {url}"
    spec = ReplaySpec(site.folder, FAST, protocols.load()["tcp"])
    assert run(spec, ["bash", "-c", script]).status == CURL_HTTP2_STREAM_ERROR


@contextmanager
def few_descriptors(number: int) -> Iterator[None]:
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


def test_bodies_beyond_half_of_the_descriptors_are_in_memory(site: Site) -> None:
    with tempfile.TemporaryFile(), tempfile.TemporaryFile() as second:
        next_two = second.fileno()
    with few_descriptors(2 * (next_two + 1)):
        responses = loaded(site)
    assert tuple(response.body for response in responses) == BODIES
    assert open_files(site) == 2


@pytest.mark.needs_namespaces
def test_bodies_are_not_in_the_memory_of_uwsgi(tmp_path: Path) -> None:
    body = os.urandom(LARGE_BYTES)
    site = site_of((body,), tmp_path / "site")
    spec = ReplaySpec(site.folder, FAST, protocols.load()["tcp"])
    # Look at the memory before and after the body is sent.
    look = f"{sys.executable} -m benchmarks.record.servers_memory"
    script = f"{look}; curl -sS {site.url} | sha256sum; {look}"
    with tempfile.TemporaryFile() as output:
        assert run(spec, ["bash", "-c", script], stdout=output.fileno()).status == 0
        output.seek(0)
        before, checksum, after = output.read().decode().splitlines()
    assert checksum.split()[0] == hashlib.sha256(body).hexdigest()
    for memory in (before, after):
        assert 0 < json.loads(memory)["uwsgi-core"]["pss_mb"] < MOST_UWSGI_MB
