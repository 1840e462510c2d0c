"""Collections of web archives (WACZ): all of their archives are one recording, which begins at the page that they list.

The collections are small ones that the tests generate.
"""

import gzip
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.recordings import wacz, warc_record, zipped

from base.errors import EyelevelError
from eyelevel.commands import import_
from record.formats import read_recording

DOCUMENT = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><p>"
PICTURE = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG"
FRAME, START, IMAGE = "https://ads.example/frame", "https://a.example/news", "https://a.example/1.png"
ARCHIVES = {
    "b.warc": warc_record(START, DOCUMENT) + warc_record(IMAGE, PICTURE),
    "a.warc.gz": gzip.compress(warc_record(FRAME, DOCUMENT)),
}
LIST = b'{"format": "json-pages-1.0"}\n{"url": "%s"}\n'


def collection(folder: Path, content: bytes) -> Path:
    (folder / "x.wacz").write_bytes(content)
    return folder / "x.wacz"


@pytest.mark.parametrize("packed_as", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_all_archives_are_one_recording(packed_as: int, tmp_path: Path) -> None:
    recording = read_recording(collection(tmp_path, wacz(ARCHIVES, (START, FRAME), packed_as)))
    assert {exchange.url for exchange in recording.exchanges} == {FRAME, START, IMAGE}
    assert (recording.url, recording.recorder["tool"], recording.skipped) == (START, "wacz", ())


def test_exchanges_of_several_archives_are_in_the_order_they_began(tmp_path: Path) -> None:
    archives = dict(ARCHIVES)
    archives["b.warc"] = archives["b.warc"].replace(b"2026-01-01", b"2025-12-31")
    recording = read_recording(collection(tmp_path, wacz(archives)))
    assert [exchange.url for exchange in recording.exchanges] == [START, IMAGE, FRAME]


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ({}, FRAME),
        ({"pages/pages.jsonl": LIST % START.encode()}, START),
        ({"pages/extraPages.jsonl": LIST % START.encode()}, START),
        (
            {"pages/pages.jsonl": LIST % FRAME.encode(), "datapackage.json": b'{"mainPageUrl": "%s"}' % START.encode()},
            START,
        ),
        ({"pages/pages.jsonl": b"[1]\n{\n" + LIST % START.encode()}, START),
        ({"pages/pages.jsonl": b'{"text": "%s"}\n' % (b"x" * (2 << 20)) + LIST % START.encode()}, START),
    ],
    ids=["no list", "pages", "further pages", "main page", "broken lines", "long list"],
)
def test_it_begins_at_the_page_that_is_listed(more: dict[str, bytes], start: str, tmp_path: Path) -> None:
    archives = {f"archive/{name}": content for name, content in ARCHIVES.items()}
    recording = read_recording(collection(tmp_path, zipped({**more, **archives})))
    assert recording.url == start
    assert len(recording.skipped) == sum(b"\n{\n" in content for content in more.values())


def test_an_import_is_named_after_it_and_begins_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_, "site_folder", lambda name: tmp_path / name)
    source = collection(tmp_path, wacz(ARCHIVES, (START,)))
    done = CliRunner().invoke(import_.main, [str(source), "--url", FRAME], catch_exceptions=False)
    assert f"starts at {FRAME}" in done.output
    assert json.loads((tmp_path / "x" / "site.json").read_text())["url"] == FRAME


def encrypted(content: bytes) -> bytes:
    """`content` with all members marked as encrypted."""
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            (flags,) = struct.unpack_from("<H", content, at + place)
            content = content[: at + place] + struct.pack("<H", flags | 1) + content[at + place + 2 :]
            at = content.find(signature, at + 1)
    return content


def outside(name: str) -> Callable[[], bytes]:
    return lambda: zipped({name: ARCHIVES["b.warc"]})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"no ZIP file", "x.wacz is no WACZ file"),
        (lambda: wacz(ARCHIVES)[:-30], "x.wacz is no WACZ file"),
        (lambda: wacz({}), r"holds no web archive that can be read \(archive/\*\.warc\.gz is missing\)"),
        (outside("archive/../../x.warc"), r"archive/\*\.warc\.gz is missing"),
        (outside("/archive/x.warc"), r"archive/\*\.warc\.gz is missing"),
        (lambda: encrypted(wacz(ARCHIVES)), "archive/a.warc.gz: it is encrypted"),
        (lambda: wacz(ARCHIVES, packed_as=zipfile.ZIP_LZMA), "packed in a way that WACZ files are not"),
        (lambda: wacz({f"{n}.warc": b"" for n in range(1001)}), "more than 1,000 archives"),
    ],
    ids=["no zip", "cut", "no archive", "name above", "absolute name", "encrypted", "lzma", "many"],
)
def test_what_cannot_be_read_is_refused_in_one_line(make: Callable[[], bytes], words: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=words) as refusal:
        read_recording(collection(tmp_path, make()))
    assert str(refusal.value).isprintable()


def test_a_broken_list_of_pages_costs_one_line(tmp_path: Path) -> None:
    content = wacz(ARCHIVES, (START,) * 9, zipfile.ZIP_DEFLATED)
    at = content.index(b"pages/pages.jsonl") + len(b"pages/pages.jsonl")
    recording = read_recording(collection(tmp_path, content[:at] + b"\xff" * 9 + content[at + 9 :]))
    assert recording.url == FRAME
    assert [line.partition(":")[0] for line in recording.skipped] == ["pages/pages.jsonl"]


def test_a_broken_archive_costs_itself_and_one_line(tmp_path: Path) -> None:
    content = wacz({**ARCHIVES, "c.warc": warc_record("https://a.example/2", DOCUMENT)}, (START,))
    at = content.index(b"https://a.example/2")
    recording = read_recording(collection(tmp_path, content[:at] + b"X" + content[at + 1 :]))
    assert recording.url == START
    assert [line for line in recording.skipped if line.startswith("archive/c.warc: it breaks off: Bad CRC")]
