"""Recordings made to do harm: they use little memory, never block an import, and do not affect other recordings or
entries."""

import gzip
import json
import os
import resource
import subprocess
import sys
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import brotli
import pytest
from support.recordings import HTML, PAGE, har_entry, save_file, warc_record, zipped

from base.errors import EyelevelError
from record.content import encode
from record.formats import read_recording
from record.http1 import Headers, MalformedMessage, Response, unchunk
from record.intake import Intake
from record.limits import CHUNK_BYTES
from record.privacy import secret_parameters
from record.site import Exchange, Recording, Site, write_site
from record.summary import summary
from record.upgrade import upgrade

MEMORY_LIMIT_MB = 500
RAW = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"


# Small files that would fill the memory, and things that are not files.

# Imports each given source, and prints the result: the number of exchanges, a line for each exchange that was left out
# or the line of the refusal, and the process's peak memory in kB.
IMPORT = """
import json, re, sys
from pathlib import Path
from base.errors import EyelevelError
from record.formats import read_recording
for source in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")
    try:
        recording = read_recording(Path(source))
        result = [len(recording.exchanges), *recording.skipped]
    except EyelevelError as error:
        result = [0, str(error)]
    print(json.dumps([*result, int(re.search("VmHWM:(.*)kB", Path("/proc/self/status").read_text())[1])]), flush=True)
"""
ADDRESS_SPACE_BYTES = 3 << 30  # makes larger requests fail

MB = 1 << 20
Make = Callable[[Path], Path]


def in_archive(start: bytes, unit: bytes = b"", mb: int = 0, end: bytes = b"", times: int = 1) -> Make:
    """An archive with a page, and `times` copies of a record, which is `start`, `mb` MiB of `unit`, and `end`. Each
    record is compressed by itself, as in real archives."""

    def make(folder: Path) -> Path:
        packer = zlib.compressobj(1, wbits=31)
        block = unit * (MB // len(unit)) if unit else b""
        record = b"".join([packer.compress(start), *(packer.compress(block) for _ in range(mb)), packer.compress(end)])
        record += packer.flush()
        (folder / "x.warc.gz").write_bytes(gzip.compress(PAGE) + record * times)
        return folder / "x.warc.gz"

    return make


def message(start: bytes, unit: bytes, mb: int, kind: str = "response", times: int = 1) -> Make:
    """An archive with a record whose message has this many MiB of header fields."""
    first = b"HTTP/1.1 200 OK\r\n" if kind == "response" else b"GET / HTTP/1.1\r\n"
    length = len(first + start) + mb * (MB // len(unit)) * len(unit) + len(b"\r\n\r\n")
    head = warc_record("https://a.example/x", b"", kind).replace(b"Content-Length: 0", b"Content-Length: %d" % length)
    return in_archive(head.rstrip() + b"\r\n\r\n" + first + start, unit, mb, b"\r\n" * 4, times)


def beside_a_page(page: str, content: bytes, add: Callable[[Path], object]) -> Make:
    def make(folder: Path) -> Path:
        first = folder / "recording" / page
        first.parent.mkdir(parents=True)
        first.write_bytes(content)
        (folder / "secret").write_bytes(RAW)
        add(first.parent)
        return folder / "recording"

    return make


def in_save_files(add: Callable[[Path], object]) -> Make:
    return beside_a_page("save.0", save_file(), add)


def in_raw_responses(add: Callable[[Path], object]) -> Make:
    return beside_a_page("a.example/index", RAW, add)


def har_of(*texts: str, times: int = 1) -> Make:
    """A HAR of these texts. If there are three, the second occurs `times` times."""

    def make(folder: Path) -> Path:
        start, repeated, end = texts if len(texts) == 3 else (texts[0], "", "")
        (folder / "x.har").write_text(start + repeated * times + end)
        return folder / "x.har"

    return make


def collection(content: Callable[[], bytes]) -> Make:
    def make(folder: Path) -> Path:
        (folder / "x.wacz").write_bytes(content())
        return folder / "x.wacz"

    return make


def with_member(name: str, content: Callable[[], bytes]) -> Make:
    """A collection with a page in one archive, and a deflated member of this name."""
    return collection(lambda: zipped({"archive/a.warc": PAGE, name: content()}, zipfile.ZIP_DEFLATED))


def directory_of_nothing() -> bytes:
    """A list of members that is 2 MiB long."""
    return zipped({"archive/a.warc": PAGE, **{f"{number:0150}": b"" for number in range(11_000)}})


def empty_headers(folder: Path) -> None:
    """Field 5 (the response), 16 MiB long, consisting of field 2 (a header) repeated."""
    (folder / "save.2").write_bytes(save_file() + b"\x2a\x80\x80\x80\x08" + b"\x12\0" * (8 * MB))


def raw_lines(folder: Path) -> None:
    (folder / "2").write_bytes(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * (2 * MB) + b"\r\n")


def exchanges_of(message: Callable[[], bytes], times: int) -> Make:
    """An archive with a page and this many responses."""

    def make(folder: Path) -> Path:
        response = message()
        records = [gzip.compress(warc_record(f"https://a.example/{number}", response), 1) for number in range(times)]
        (folder / "x.warc.gz").write_bytes(gzip.compress(PAGE) + b"".join(records))
        return folder / "x.warc.gz"

    return make


def of_brotli() -> bytes:
    """A response of 255 MiB that is compressed to a few hundred bytes."""
    body: bytes = brotli.compress(bytes(255 * MB), quality=1)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\n\r\n" + body


def of_chunks(size: int, count: int) -> bytes:
    framed = b"%x\r\n%s\r\n" % (size, b"x" * size)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed * count + b"0\r\n\r\n"


# An import of each takes its page and prints a line with these words, or is refused with them.
SMALL_BUT_LARGE: dict[str, tuple[Make, str]] = {
    "an archive of header lines": (in_archive(b"WARC/1.0\r\n", b"a:\r\n", 20), "longer than any page's"),
    "a message of header lines": (message(b"", b"a:\r\n", 20), "more than 1 MiB"),
    "a line without an end": (in_archive(b"WARC/1.0\r\nX: ", b"x", 300), "longer than any page's"),
    "a long field": (message(b"X: ", b"x", 200), "more than 1 MiB"),
    "many requests": (message(b"Referer: ", b"x", 8, "request", times=60), ""),
    "a link to a device": (in_save_files(lambda folder: (folder / "save.2").symlink_to("/dev/zero")), "save.2: "),
    "a pipe": (in_save_files(lambda folder: os.mkfifo(folder / "save.2")), "save.2: save.2 is not a regular file"),
    "a link to a file": (in_save_files(lambda folder: (folder / "save.2").symlink_to("../secret")), "save.2: "),
    "a folder": (in_save_files(lambda folder: (folder / "save.2").mkdir()), "save.2: "),
    "empty header fields": (in_save_files(empty_headers), "save.2: it has more than 1 MiB besides the body"),
    "a raw pipe": (in_raw_responses(lambda folder: os.mkfifo(folder / "2.txt")), "not a regular file"),
    "a raw link": (in_raw_responses(lambda folder: (folder / "2").symlink_to("../../secret")), "a.example/2: "),
    "a raw link to a device": (in_raw_responses(lambda folder: (folder / "2").symlink_to("/dev/zero")), "example/2: "),
    "raw header lines": (in_raw_responses(raw_lines), "longer than 1024 KiB"),
    "a collection of many members": (collection(directory_of_nothing), "the list of its members is longer than 1 MiB"),
    "a deflated archive": (
        with_member("archive/b.warc", lambda: b"WARC/1.0\r\nX: " + b"x" * (300 * MB)),
        "archive/b.warc: it breaks off",
    ),
    "a deflated list of pages": (with_member("pages/pages.jsonl", lambda: b"x" * (300 * MB)), "longer than 16 MiB"),
    "a list of pages of lists": (with_member("pages/pages.jsonl", lambda: b"[" * (15 * MB)), "3,000,000 values"),
    "bodies that are small when compressed": (exchanges_of(of_brotli, 20), "more than 512 MiB of compressed"),
    "chunks of a byte": (exchanges_of(lambda: of_chunks(1, 16 * MB), 1), "more than 512 MiB of compressed or chunked"),
    "a HAR of lists": (har_of('{"log": {"entries": [', "[],", "[]]}}", times=4 * MB), "3,000,000 values"),
}


REFUSED = (
    "a HAR of lists",
    "a collection of many members",
    "bodies that are small when compressed",
    "chunks of a byte",
)


@pytest.mark.slow
def test_an_import_takes_little_memory_and_never_waits(tmp_path: Path) -> None:
    sources = []
    for number, (make, _) in enumerate(SMALL_BUT_LARGE.values()):
        (tmp_path / str(number)).mkdir()
        sources.append(make(tmp_path / str(number)))
    completed = subprocess.run(
        [sys.executable, "-c", IMPORT, *sources],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES)),
    )
    assert completed.stderr == ""
    for (case, (_, words)), line in zip(SMALL_BUT_LARGE.items(), completed.stdout.splitlines(), strict=True):
        exchanges, *lines, peak_kb = json.loads(line)
        assert peak_kb < MEMORY_LIMIT_MB << 10, case
        assert exchanges == (0 if case in REFUSED else 1), case
        assert len(lines) == bool(words) and all(words in line and line.isprintable() for line in lines), case


# A broken entry costs only itself.


def with_har_entry(**changes: Any) -> Make:
    entry = har_entry("https://a.example/x", text="1")
    for path, value in changes.items():
        place: Any = entry
        *places, key = path.split("__")
        for name in places:
            place = place[name]
        place[key] = value
    return har_of(json.dumps({"log": {"entries": [har_entry(text="<p>"), entry]}}))


def with_save_file(**changes: Any) -> Make:
    return in_save_files(lambda folder: (folder / "save.1").write_bytes(save_file("/x", **changes)))


def with_raw_response(name: str, *fields: bytes) -> Make:
    response = RAW.replace(b"\r\n\r\n", b"".join(b"\r\n" + field for field in fields) + b"\r\n\r\n")

    def add(folder: Path) -> None:
        (folder.parent / name).parent.mkdir(exist_ok=True)
        (folder.parent / name).write_bytes(response)

    return in_raw_responses(add)


def many(count: int, length: int) -> Headers:
    return tuple((f"X-{number}", "x" * length) for number in range(count))


BROKEN_ENTRIES: dict[str, Make] = {
    "a list as a header's name": with_har_entry(response__headers=[{"name": [], "value": "x"}]),
    "a number as a header's name": with_har_entry(request__headers=[{"name": 7, "value": "x"}]),
    "a port of other digits": with_save_file(host="a.example:\xb2"),
    "a port of many digits": with_save_file(host=f"a.example:{'7' * 5000}"),
    "a host that is none": with_raw_response("a[x/2"),
    "a URL that is none": with_raw_response("a.example/2", b"X-Original-Url: https://a[.example/"),
    "two URLs": with_raw_response(
        "a.example/2", b"X-Original-Url: https://a.example/2", b"x-original-url: https://b.example/"
    ),
    "headers that uWSGI does not take": with_save_file(headers=many(70, 1000)),
    "more fields than servers take": with_save_file(headers=many(1001, 1)),
    "a server of many letters": with_har_entry(serverIPAddress="1" * 1000),
    "a server that clears the screen": with_har_entry(serverIPAddress="\x1b[2J"),
}


@pytest.mark.parametrize("case", BROKEN_ENTRIES)
def test_one_broken_entry_costs_that_entry_and_one_line(case: str, tmp_path: Path) -> None:
    recording = read_recording(BROKEN_ENTRIES[case](tmp_path))
    assert len(recording.exchanges) == len(recording.skipped) == 1
    assert recording.skipped[0].isprintable()
    write_site(recording, tmp_path / "site")


def test_a_header_without_a_name_costs_that_header(tmp_path: Path) -> None:
    source = with_har_entry(response__headers=[{"name": "", "value": "x"}, {"name": "X", "value": "y"}])(tmp_path)
    (_, entry) = read_recording(source).exchanges
    assert entry.response.headers == (("X", "y"),)


def test_a_reason_phrase_is_cut_to_what_servers_take(tmp_path: Path) -> None:
    (_, entry) = read_recording(with_save_file(status=f"HTTP/1.1 200 {'x' * 100_000}")(tmp_path)).exchanges
    assert entry.response.reason == "x" * 1024


def test_as_many_header_fields_as_servers_take_are_stored(tmp_path: Path) -> None:
    site = write_site(read_recording(with_save_file(headers=many(990, 40))(tmp_path)), tmp_path / "site")
    assert len(site.exchanges) == 2


@pytest.mark.parametrize("field", [b"Location: http://[", b"Location: https://a[.example/"])
def test_a_redirect_that_leads_nowhere_stops_no_import(field: bytes, tmp_path: Path) -> None:
    message = b"HTTP/1.1 302 Moved\r\n" + field + b"\r\n\r\n"
    (tmp_path / "x.warc").write_bytes(PAGE + warc_record("http://a.example/from", message))
    assert len(read_recording(tmp_path / "x.warc").exchanges) == 2


def test_links_that_grow_beyond_what_servers_take_cost_their_exchange(tmp_path: Path) -> None:
    links = b"Link: " + b"<http://b.example/>," * 3000
    message = b"HTTP/1.1 200 OK\r\n" + links + b"\r\n\r\n"
    url = "http://b.example/?" + "http://b.example/&" * ((24 << 10) // 18 - 2)
    records = (PAGE, warc_record("http://b.example/", message), warc_record(url, b"HTTP/1.1 200 OK\r\n\r\n"))
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    recording = read_recording(tmp_path / "x.warc")
    assert (len(recording.exchanges), len(recording.skipped)) == (1, 2)
    assert "header fields have" in recording.skipped[0] and "longer than 24 KiB" in recording.skipped[1]


def test_a_response_in_segments_is_left_out(tmp_path: Path) -> None:
    fields = {"WARC-Segment-Number": "1"}
    first = warc_record("https://a.example/x", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst", **fields)
    (tmp_path / "x.warc").write_bytes(PAGE + first + warc_record("https://a.example/x", b"rest", "continuation"))
    recording = read_recording(tmp_path / "x.warc")
    assert [exchange.url for exchange in recording.exchanges] == ["https://a.example/"]
    assert "https://a.example/x: its response is split into segments" in recording.skipped[0]


@pytest.mark.parametrize(("wait", "kept"), [(1e305, 60_000.0), (60_001, 60_000.0), (59_999, 59_999), (True, None)])
def test_a_server_is_not_remembered_as_slower_than_a_minute(wait: Any, kept: float | None, tmp_path: Path) -> None:
    (_, entry) = read_recording(with_har_entry(timings={"wait": wait})(tmp_path)).exchanges
    assert entry.ttfb_ms == kept


# Limits that no page reaches.


def exchange(number: int, host: str = "a.example", server: str = "192.0.2.1", headers: Headers = ()) -> Exchange:
    return Exchange("GET", f"https://{host}/{number}", Response(200, "", headers, b""), server)


@pytest.mark.parametrize(
    ("count", "make", "words"),
    [
        (1000, lambda number: exchange(number, server=f"server {number}"), "1,000 servers"),
        (2000, lambda number: exchange(number, host=f"{number}.example"), "2,000 hosts"),
        (3000, exchange, "3,000 exchanges"),
        (20, lambda number: exchange(number, headers=(("X", "x" * 52_000),)), "1 MiB of URLs and header fields"),
    ],
)
def test_a_recording_of_more_than_a_page_is_refused(
    count: int, make: Callable[[int], Exchange], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("record.limits.EXCHANGES", 3000)  # instead of 50,000
    monkeypatch.setattr("record.limits.TEXT_BYTES", MB)  # instead of 64
    intake = Intake("x", keep_cookies=False)
    for number in range(count):
        intake.take("x", partial(make, number))
    assert not intake.skipped
    with pytest.raises(EyelevelError, match=f"x holds more than {words}; import one page's load of it"):
        intake.take("x", partial(make, count))


CHUNKS = b"1\r\nx\r\n" * 2 + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", encode(bytes(600), "gzip")),
        ("br", encode(bytes(600), "br")),
        ("deflate", encode(bytes(600), "deflate")),
        ("deflate", encode(bytes(600), "deflate")[:-1]),
        ("chunked", CHUNKS),
    ],
)
def test_all_bodies_of_a_recording_together_are_decoded_up_to_a_limit(
    encoding: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken bodies count, too, up to the place where they break."""
    monkeypatch.setattr("record.content.DECODED_BYTES", 3000)
    field = ("Transfer-Encoding" if encoding == "chunked" else "Content-Encoding", encoding)
    one = Exchange("GET", "https://a.example/", Response(200, "", (field,), body), "192.0.2.1")
    intake = Intake("x", keep_cookies=False)
    with pytest.raises(EyelevelError, match="x holds more than 0 MiB of compressed or chunked bodies, decoded"):
        for _ in range(10):
            intake.take("x", lambda: one)
    assert intake.exchanges or intake.skipped


def test_bodies_of_a_har_that_only_seem_to_be_packed_are_tried_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is longer than a body may be, so it counts as uncompressed, and is compressed again."""
    monkeypatch.setattr("record.content.BODY_BYTES", 4000)
    monkeypatch.setattr("record.content.DECODED_BYTES", 20_000)
    entries = [har_entry(text="<p>")]
    for number in range(5):
        entry = har_entry(f"https://a.example/{number}", text=b64encode(encode(bytes(5000), "gzip")).decode())
        entry["response"]["content"]["encoding"] = "base64"
        entry["response"]["headers"] = [{"name": "Content-Encoding", "value": "gzip"}]
        entries.append(entry)
    with pytest.raises(EyelevelError, match="holds more than 0 MiB of compressed or chunked bodies"):
        read_recording(har_of(json.dumps({"log": {"entries": entries}}))(tmp_path))


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_all_texts_of_a_recording_in_which_links_become_https_are_changed_up_to_a_limit(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each needs several copies in memory."""
    monkeypatch.setattr("record.upgrade.UPGRADED_BYTES", 1000)
    response = Response(200, "", (HTML, ("Content-Encoding", encoding)), encode(bytes(600), encoding))
    exchanges = [Exchange("GET", f"http://a.example/{number}", response, "192.0.2.1") for number in range(2)]
    assert len(upgrade(exchanges[:1])[0]) == 1
    with pytest.raises(EyelevelError, match="more than 0 MiB of texts, decoded, with URLs in plain http"):
        upgrade(exchanges)


def test_a_body_of_more_chunks_than_a_page_has_is_not_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limit applies to a stranger's site, which no import has checked."""
    monkeypatch.setattr("record.http1.DECODED_BYTES", 6 * CHUNK_BYTES)
    assert unchunk(CHUNKS) == b"xx"
    with pytest.raises(MalformedMessage, match="more chunks than those of a page"):
        unchunk(CHUNKS[:6] + CHUNKS)


@pytest.mark.parametrize(("letters", "lines"), [(6, 10_000), (60_000, 656)])
def test_lines_about_what_is_left_out_are_not_without_end(letters: int, lines: int) -> None:
    intake = Intake("x", keep_cookies=False)
    for _ in range(10_007):
        intake.leave_out("x", "b" * letters)
    first, *_, last = intake.all_skipped()
    assert len(intake.all_skipped()) == lines + 1 and last == f"{10_007 - lines:,} more"
    assert len(first) < 30_000


@pytest.mark.parametrize("agent", ["x" * 200_000, "a\x1b[2Jb"])
def test_a_user_agent_that_no_browser_can_be_started_with_is_left_out(agent: str, tmp_path: Path) -> None:
    entry = har_entry(text="<p>")
    entry["request"]["headers"] = [{"name": "User-Agent", "value": agent}]
    recording = read_recording(har_of(json.dumps({"log": {"entries": [entry]}}))(tmp_path))
    assert recording.user_agent is None
    assert "User-Agent: not printable, or longer than 1024 bytes" in recording.skipped[0]
    write_site(recording, tmp_path / "site")


def test_a_chain_of_redirects_takes_no_longer_than_its_length(tmp_path: Path) -> None:
    entries = [har_entry(text="<p>")]
    for number in range(2000):
        entry = har_entry(f"https://a.example/{number}", text="")
        entry["response"]["status"] = 302
        target = f"/{number - 1}" if number else "/"
        entry["response"]["headers"] = [{"name": "Location", "value": target}]
        entries.append(entry)
    recording = read_recording(har_of(json.dumps({"log": {"entries": entries}}))(tmp_path))
    assert recording.url == "https://a.example/1999"


# Secrets.

CREDENTIALS = (
    *("Authorization", "Proxy-Authorization", "Authentication-Info", "Proxy-Authentication-Info", "Set-Cookie2"),
    *("Access-Token", "Id-Token", "Refresh-Token", "Session-Token", "Token", "X-Access-Token", "X-Auth-Token"),
    *("X-CSRF-Token", "X-XSRF-Token", "X-Session", "X-Session-Id", "X-Vault-Token", "X-Goog-Csrf", "X-Api-Key"),
    *("X-Goog-Iap-Jwt-Assertion", "X-Amzn-Remapped-Authorization", "X-Amz-Security-Token", "X-Ms-Token-Aad"),
    "X-Set-Cookie",
)
# Fields that affect how pages are drawn, or that are in most recordings.
KEPT = (
    *("Content-Security-Policy", "Access-Control-Allow-Credentials", "Cross-Origin-Opener-Policy", "WWW-Authenticate"),
    *("X-Status-Code", "Strict-Transport-Security", "Last-Modified", "ETag", "Origin-Trial", "Server-Timing"),
)


@pytest.mark.parametrize("keep", [False, True])
def test_credentials_in_header_fields_are_taken_off_unless_cookies_are_kept(keep: bool, tmp_path: Path) -> None:
    kept = (HTML, *((name, "yes") for name in KEPT))
    headers = (*kept, *((name, "s3cret") for name in CREDENTIALS))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "save.0").write_bytes(save_file(headers=headers))
    (stored,) = read_recording(tmp_path / "m", keep_cookies=keep).exchanges
    assert stored.response.headers == (headers if keep else kept)


def test_values_in_urls_that_look_like_secrets_are_counted_and_told(tmp_path: Path) -> None:
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
    urls = [
        f"https://a.example/?{query}"
        for query in (
            "access_token=abcdefgh12345678",
            "access_token=abcdefgh12345678&x=y",
            "access_token=another-of-them",
            "accessToken=abcdefgh12345678",
            f"q={jwt}",
            "X-Amz-Signature=0123456789abcdef",
            "token=short",
            "keyword=abcdefgh12345678&page=12345678&author=abcdefghijkl&design=abcdefghijkl&code=US",
            "%",
        )
    ]
    assert secret_parameters(urls) == {"access_token": 2, "accessToken": 1, "q": 1, "X-Amz-Signature": 1}
    exchanges = tuple(Exchange("GET", url, Response(200, "", (HTML,), b""), "192.0.2.1") for url in urls[:-1])
    site = write_site(Recording(urls[0], exchanges, {"tool": "test"}), tmp_path / "site")
    (line,) = [line for line in summary(site).splitlines() if "secrets" in line]
    assert line.startswith(
        "  URLs have 5 values that look like secrets (access_token, accessToken, q, X-Amz-Signature) and stay"
    )
    plain = Site(site.folder, urls[6], {}, None, None, site.recorded_ips, site.exchanges[6:7])
    assert "secrets" not in summary(plain)
