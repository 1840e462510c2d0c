"""Collections of web archives (WACZ): all of their archives are one recording, which begins at the page that they list.

The collections are small ones that the tests generate.
"""

import gzip
import json
import struct
import subprocess
import zipfile
from base64 import b32encode, b64encode
from collections.abc import Callable
from hashlib import md5, sha256
from io import BytesIO
from pathlib import Path

import pytest
from support.recordings import wacz, warc_record, zipped
from warcio.archiveiterator import ArchiveIterator

from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel.commands.import_ import import_recording
from record.demo import generate
from record.formats import name_of, read_recording
from record.formats import wacz as FORM
from record.site import write_site
from record.wacz_writer import search_key

DOCUMENT = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><p>"
PICTURE = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG"
FRAME, START, IMAGE = "https://ads.example/frame", "https://a.example/news", "https://a.example/1.png"
ARCHIVES = {
    "b.warc": warc_record(START, DOCUMENT) + warc_record(IMAGE, PICTURE),
    "a.warc.gz": gzip.compress(warc_record(FRAME, DOCUMENT)),
}
DIGEST = "datapackage-digest.json"
LIST = b'{"format": "json-pages-1.0"}\n{"url": "%s"}\n'


def with_digest(digest: str, name: str = "archive/b.warc") -> bytes:
    """A collection that says of its member `name` that it has this digest."""
    package = json.dumps({"resources": [{"path": name, "hash": digest}]}).encode()
    return zipped({"archive/b.warc": ARCHIVES["b.warc"], "datapackage.json": package})


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


def test_an_import_is_named_after_it_and_begins_where_it_is_asked_to(tmp_path: Path) -> None:
    source = collection(tmp_path, wacz(ARCHIVES, (START,)))
    assert name_of(source) == "x"
    assert import_recording(source, tmp_path / "x", FRAME).url == FRAME
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
        (lambda: with_digest("sha256:" + "0" * 64), "archive/b.warc is not what its digest in datapackage.json says"),
        (lambda: with_digest("sha256:", "archive/c.warc"), "archive/c.warc is listed, and not in the collection"),
        (
            lambda: zipped(
                {"archive/b.warc": ARCHIVES["b.warc"], "datapackage.json": b"{}", DIGEST: b'{"hash": "md5:"}'}
            ),
            "datapackage.json is not what its digest in datapackage-digest.json says",
        ),
        (lambda: wacz({f"{n}.warc": b"" for n in range(1001)}), "more than 1,000 archives"),
    ],
    ids=[
        "no zip",
        "cut",
        "no archive",
        "name above",
        "absolute name",
        "encrypted",
        "lzma",
        "digest",
        "lost",
        "package",
        "many",
    ],
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


def test_a_true_digest_and_the_address_of_a_server_are_taken(tmp_path: Path) -> None:
    archive = warc_record(START, DOCUMENT, **{"WARC-IP-Address": "192.0.2.7"}) + warc_record(IMAGE, PICTURE)
    package = {"resources": [{"path": "archive/b.warc", "hash": f"sha256:{sha256(archive).hexdigest()}"}]}
    members = {"archive/b.warc": archive, "datapackage.json": json.dumps(package).encode()}
    recording = read_recording(collection(tmp_path, zipped(members)))
    assert [exchange.recorded_ip for exchange in recording.exchanges] == ["192.0.2.7", "a.example"]
    assert "server_ips" in recording.recorder


@pytest.mark.parametrize("label", ["sha256", "sha-256", "SHA-256", "md5"])
@pytest.mark.parametrize("encode", [bytes.hex, lambda b: b32encode(b).decode(), lambda b: b64encode(b).decode()])
def test_digests_are_compared_by_their_value(label: str, encode: Callable[[bytes], str], tmp_path: Path) -> None:
    content = ARCHIVES["b.warc"]
    true = encode(md5(content).digest() if label == "md5" else sha256(content).digest())
    assert not read_recording(collection(tmp_path, with_digest(f"{label}:{true}"))).skipped
    false = encode(bytes(16) if label == "md5" else bytes(32))
    with pytest.raises(EyelevelError, match=r"archive/b\.warc is not what its digest"):
        read_recording(collection(tmp_path, with_digest(f"{label}:{false}")))


@pytest.mark.parametrize("name", ["archive/b.warc", "archive/c.warc"], ids=["changed", "lost"])
def test_a_collection_that_was_changed_is_imported_if_that_is_asked_for_and_says_so(name: str, tmp_path: Path) -> None:
    source = collection(tmp_path, with_digest("sha256:" + "0" * 64, name))
    with pytest.raises(EyelevelError, match="import it with --allow-changed"):
        import_recording(source, tmp_path / "site")
    site = import_recording(source, tmp_path / "site", allow_changed=True)
    assert len(site.exchanges) == 2
    (line,) = site.skipped
    assert line.startswith(f"the digest of {name}: the file is ")


def test_make_import_allows_a_changed_collection() -> None:
    command = ["make", "-n", "import", "FROM=x.wacz", "ALLOW_CHANGED=yes"]
    done = subprocess.run(command, cwd=PROJECT, text=True, capture_output=True, check=True)
    assert "eyelevel import --allow-changed x.wacz\n" in done.stdout


def test_pages_are_in_the_order_of_their_dates(tmp_path: Path) -> None:
    pages = [{"url": FRAME, "ts": "2026-01-01T00:00:09Z"}, {"url": START, "ts": "2026-01-01T00:00:01Z"}, {"url": IMAGE}]
    members = {f"archive/{name}": content for name, content in ARCHIVES.items()}
    members["pages/pages.jsonl"] = "\n".join(map(json.dumps, pages)).encode()
    assert read_recording(collection(tmp_path, zipped(members))).url == START


def test_a_site_written_as_a_collection_is_found_by_its_index(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    FORM.write(site, tmp_path / "x.wacz")
    back = write_site(read_recording(tmp_path / "x.wacz", keep_cookies=True), tmp_path / "back")
    assert [back.recorded(one).response for one in back.exchanges] == [
        site.recorded(o).response for o in site.exchanges
    ]
    assert (back.url, back.servers, back.skipped) == (site.url, site.servers, ())
    with zipfile.ZipFile(tmp_path / "x.wacz") as package:
        archive = package.read("archive/data.warc.gz")
        lines = package.read("indexes/index.cdxj").decode().splitlines()
    assert lines == sorted(lines) and len(lines) == len(site.exchanges)
    for line in lines:
        entry = json.loads(line.split(" ", 2)[2])
        begin = int(entry["offset"])
        (record,) = ArchiveIterator(BytesIO(archive[begin : begin + int(entry["length"])]), check_digests="raise")
        assert record.rec_headers.get_header("WARC-Target-URI") == entry["url"]
        body = record.raw_stream.read()
        assert record.digest_checker.passed or not body


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.A.example/B?d&c", "example,a)/b?c&d"),
        ("https://a.example:8443/", "example,a:8443)/"),
        ("https://a.b.example/x%20y", "example,b,a)/x%20y"),
        ("https://www2.a.example//x/../y/?b=%3A&a_=2&a=1", "example,a)/y?a=1&a_=2&b=:"),
        ("https://a.example/../%2541/.?", "example,a)/../a"),
        ("https://a.example/%23x?%26&sid=0123456789abcdef0123456789ABCDEF&y", "example,a)/%23x?&&y"),
    ],
)
def test_the_index_is_sorted_as_those_of_webrecorder(url: str, key: str) -> None:
    assert search_key(url) == key
