"""The folder given to servers: the content of the index, checked against it."""

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from base.errors import EyelevelError
from record.http1 import Response, parse_response
from record.limits import HEADER_BYTES
from record.site import Exchange, Recording, Site, write_site
from replay.content import make_content
from replay.repeatable import with_scripts

PAGE = Response(200, "OK", (("Content-Type", "text/html"),), b"<!doctype html><p>")
URL = "https://a.example/"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    exchanges = (
        Exchange("GET", URL, PAGE, "192.0.2.1"),
        Exchange("GET", "https://a.example:8080/x", PAGE._replace(body=b"plain"), "192.0.2.1"),
    )
    return write_site(Recording(URL, exchanges, {"tool": "test"}), tmp_path / "site")


@pytest.fixture
def content(tmp_path: Path) -> Path:
    folder = tmp_path / "content"
    folder.mkdir()
    return folder


def test_documents_are_changed_and_the_rest_is_linked(site: Site, content: Path) -> None:
    evidence = make_content(site, content, repeatable=True)
    assert evidence["repeatable"]["documents"] == 1
    document, other = (content / exchange.file for exchange in site.exchanges)
    assert not document.is_symlink()
    response = parse_response(document.read_bytes())
    assert b"<script>" in response.body
    assert response.header("content-length") == str(len(response.body))
    assert other.readlink() == site.folder.resolve() / site.exchanges[1].file


def test_a_site_as_recorded_is_linked_whole_and_has_nothing_beside_its_index(site: Site, content: Path) -> None:
    (site.folder / site.exchanges[0].file).with_name("00007-further").write_bytes(b"x")
    assert make_content(site, content, repeatable=False) == {}
    links = {str(path.relative_to(content)): path.readlink() for path in content.glob("*/*")}
    assert links == {exchange.file: site.folder.resolve() / exchange.file for exchange in site.exchanges}


def other_url(text: bytes) -> bytes:
    return text.replace(URL.encode(), b"https://victim.example/login")


def other_method(text: bytes) -> bytes:
    return text.replace(b"Method: GET", b"Method: POST")


def other_status(text: bytes) -> bytes:
    return text.replace(b" 200 ", b" 404 ")


def second_url(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\r\nX-Original-Url: https://victim.example/login\r\n", 1)


@pytest.mark.parametrize("change", [other_url, other_method, other_status, second_url, lambda _: b"nonsense"])
def test_a_file_that_is_not_the_response_of_the_index_is_named(
    change: Callable[[bytes], bytes], site: Site, content: Path
) -> None:
    """TCP would serve the file for every host of the site, QUIC for the hosts of one server."""
    file = site.folder / site.exchanges[0].file
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(EyelevelError, match=f"^{file} is not (the|a recorded) response.*import the site again$"):
        make_content(site, content, repeatable=False)


def test_a_link_in_a_site_is_refused(site: Site, content: Path, tmp_path: Path) -> None:
    file = site.folder / site.exchanges[0].file
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EyelevelError, match=f"^{file} is not a recorded response"):
        make_content(site, content, repeatable=True)


def test_policies_that_become_too_long_with_the_script_leave_the_document_as_it_is(
    tmp_path: Path, content: Path
) -> None:
    policies = ",".join(["script-src a"] * (HEADER_BYTES // 26))
    page = PAGE._replace(headers=(*PAGE.headers, ("Content-Security-Policy", policies)))
    site = write_site(Recording(URL, (Exchange("GET", URL, page, "192.0.2.1"),), {"tool": "test"}), tmp_path / "site")
    evidence = make_content(site, content, repeatable=True)
    assert evidence["repeatable"]["documents"] == 0
    assert (content / site.exchanges[0].file).is_symlink()


@pytest.mark.parametrize("kind", ["text/html", "text/javascript"])
def test_texts_that_become_too_long_when_they_are_decoded_keep_a_replay_from_starting(
    kind: str, tmp_path: Path, content: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text is small, but all together would take hours before every load.

    Each is decoded to find workers, and again to be changed.
    """
    headers = (("Content-Type", kind), ("Content-Encoding", "gzip"))
    text = PAGE._replace(headers=headers, body=gzip.compress(b"<html>" * 100))
    exchanges = [Exchange("GET", f"{URL}worker-{number}", text, "192.0.2.1") for number in range(4)]
    page = Exchange("GET", URL, PAGE, "192.0.2.1")
    site = write_site(Recording(URL, (page, *exchanges), {"tool": "test"}), tmp_path / "site")
    monkeypatch.setattr("record.content.DECODED_BYTES", 2 * 4 * 600 - 1)
    with pytest.raises(EyelevelError, match=f"^{site.folder} holds more than 0 MiB of compressed or chunked bodies"):
        make_content(site, content, repeatable=True)


@pytest.mark.parametrize(
    ("body", "is_document"),
    [
        (b"<!---->" * 10_000 + b"<p>", False),
        (b"<!-- -->\n" * 10_000 + b"<html>", True),
        (b"<html>" + b"<head " * 20_000, True),
        (b"<!doctype html" + b"<!doctype " * 20_000, True),
    ],
    ids=["comments", "comments of a document", "heads", "doctypes"],
)
def test_no_document_takes_long(body: bytes, is_document: bool) -> None:
    """With an earlier pattern, 30 comments took minutes, each further comment doubled the time, and the time for
    unfinished tags grew with the square of their number."""
    before = time.process_time()
    assert (with_scripts(PAGE._replace(body=body), [b""]) is not None) == is_document
    assert time.process_time() - before < 1
