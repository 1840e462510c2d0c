"""Broken recordings: broken parts are refused or left out, with their names and the reason; the rest is complete."""

import base64
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.recordings import HTML, PAGE, har_entry, save_file, warc_record

from base.errors import EyelevelError
from base.files import replacing_folder
from record import collection
from record.formats import read_recording
from record.http1 import Response
from record.intake import Intake
from record.limits import BODY_BYTES
from record.names import site_folder
from record.site import Exchange, Recording, Site, write_site
from record.urls import normal_url

GIB = 1 << 30
# This much memory is enough for Python and the modules of importers, but not for a large body.
MEMORY_LIMIT_BYTES = GIB

GARBAGE = random.Random(4).randbytes(5000)


def mahimahi(folder: Path, **files: bytes) -> Recording:
    """The recording that is read from a folder with one whole page and these files."""
    source = folder / "recording"
    source.mkdir()
    (source / "save.0").write_bytes(save_file())
    for name, content in files.items():
        (source / f"save.{name}").write_bytes(content)
    return read_recording(source)


BROKEN_SAVE_FILES: dict[str, tuple[bytes, str]] = {
    "truncated": (save_file(body=b"x" * 1000)[:-500], "it is broken"),
    "empty": (b"", "no request line"),
    "garbage": (GARBAGE[:2000], ""),
    "bad gzip": (save_file(headers=(("Content-Encoding", "gzip"),), body=b"\x1f\x8bno"), "not valid gzip"),
    "cut gzip": (save_file(headers=(("Content-Encoding", "gzip"),), body=gzip.compress(b"x" * 999)[:-9]), "gzip"),
    "bad brotli": (save_file(headers=(("Content-Encoding", "br"),), body=b"\xff" * 20), "not valid br"),
    "cut short": (save_file(headers=(("Content-Length", "100"),), body=b"x" * 50), "Content-Length is 100"),
    "something behind": (save_file(headers=(("Content-Length", "2"),), body=b"<p>"), "its body has 3 bytes"),
    "no status": (save_file(status="200 OK"), "bad status line"),
    "status 0": (save_file(status="HTTP/1.1 000 Nothing"), "status 0"),
    "informational": (save_file(status="HTTP/1.1 103 Early Hints"), "status 103"),
    "websocket": (save_file(status="HTTP/1.1 101 Switching Protocols"), "switched protocols"),
    "up": (save_file("/..%2f..%2fetc/passwd"), "leads out of its root"),
    "up, escaped": (save_file("/a/%2e%2e%2F%2E%2e/etc/passwd"), "leads out of its root"),
    "nul": (save_file("/a%00.html"), "NUL"),
    "no escape": (save_file("/100%"), "begins no escape"),
    "host up": (save_file(host=".."), "not a host name"),
    "host path": (save_file(host="a.example/..%2f../b"), "leads out of its root"),
    "host with nul": (save_file(host="a\0.example"), "not a host name"),
    "host too long": (save_file(host="a" * 64 + ".example"), "not a host name"),
    "name too long": (save_file(host=".".join(["abc"] * 70)), "not a host name"),
    "host is an address": (save_file(host="192.0.2.1"), "not looked up"),
    "host is an address in other words": (save_file(host="0x7f.1"), "not looked up"),
    "localhost": (save_file(host="www.localhost"), "not looked up"),
    "no port": (save_file(host="a.example:99999"), "not a host and port"),
    "url too long": (save_file("/" + "x" * 30_000), "longer than"),
    "no method": (save_file(method="get\x01"), "not a method"),
    "connect": (save_file(method="CONNECT"), "not a method that a page can use"),
}


@pytest.mark.parametrize("case", BROKEN_SAVE_FILES)
def test_a_broken_exchange_is_left_out_with_its_file_and_the_reason(case: str, tmp_path: Path) -> None:
    content, reason = BROKEN_SAVE_FILES[case]
    recording = mahimahi(tmp_path, broken=content)
    assert [exchange.url for exchange in recording.exchanges] == ["https://a.example/"]
    (line,) = recording.skipped
    assert line.startswith("save.broken: ") and reason in line and line.isprintable()


NAMES = (
    "con",
    "aux.html",
    "a:b",
    "..",
    "c:\\windows\\x",
    "a\\..\\b",
    "~root",
    "$(reboot)",
    "-rf",
    "x" * 5000,
    "\u202e",
)


def test_whatever_a_path_is_called_its_response_stays_in_the_site(tmp_path: Path) -> None:
    hosts = ("con", "nul.example", "a_b.example", "-.example", "aux", "www.example.")
    files = {f"host{number}": save_file(host=host) for number, host in enumerate(hosts)}
    files |= {f"path{number}": save_file(f"/x/{name}") for number, name in enumerate(NAMES)}
    files |= {f"query{number}": save_file(f"/x?{name}/../../..") for number, name in enumerate(NAMES)}
    recording = mahimahi(tmp_path, **files)
    assert not recording.skipped
    site = write_site(recording, tmp_path / "sites" / "site")
    assert len(site.exchanges) == 1 + len(files)
    inside = [path for path in site.folder.rglob("*") if path.is_file()]
    assert len(inside) == len(site.exchanges) + 1
    assert all(len(path.relative_to(site.folder).parts) <= 2 and len(path.name) < 100 for path in inside)
    assert [path.name for path in (tmp_path / "sites").iterdir()] == ["site"]


def test_header_fields_that_http_cannot_carry_are_left_out_and_the_rest_is_kept(tmp_path: Path) -> None:
    headers = (
        HTML,
        ("", "not a name"),
        ("a b", "space"),
        ("X-Folded", "one\r\n two"),
        ("X-Two", "one\r\ntwo"),
        ("X", "a\0b"),
    )
    (_, odd) = mahimahi(tmp_path, odd=save_file("/odd", headers=headers)).exchanges
    assert odd.response.headers == (HTML, ("X-Folded", "one two"), ("X-Two", "one"), ("X-Two", "two"))


def test_a_raw_response_with_a_header_without_a_colon_is_left_out(tmp_path: Path) -> None:
    host = tmp_path / "cache" / "a.example"
    host.mkdir(parents=True)
    (host / "index").write_bytes(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")
    (host / "broken").write_bytes(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n")
    (host / "lying").write_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n12345")
    read = read_recording(tmp_path / "cache")
    assert [exchange.url for exchange in read.exchanges] == ["https://a.example/index"]
    assert sorted(line.split(":")[0] for line in read.skipped) == ["a.example/broken", "a.example/lying"]
    assert "header line without a colon" in " ".join(read.skipped)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no exchange"),
        (gzip.compress(b"", mtime=0), "holds no exchange"),
        (b"\0" * 5000, "holds no exchange"),
        (GARBAGE, "holds no exchange"),
        (gzip.compress(PAGE, mtime=0)[:-40], "holds no exchange"),
        (warc_record("dns:a.example", b"", "resource"), "holds no exchange"),
        (warc_record("ftp://a.example/x", b"HTTP/1.1 200 OK\r\n\r\n"), "not an http or https URL"),
        (warc_record("https://a.example/", b"not HTTP"), "holds no exchange"),
        (warc_record("https://a.example/x", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n1"), "no HTML page"),
    ],
)
def test_an_archive_with_nothing_to_replay_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(content)
    with pytest.raises(EyelevelError, match=rf"x\.warc.*{reason}"):
        read_recording(tmp_path / "x.warc")


def test_an_archive_that_breaks_off_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(PAGE) + gzip.compress(PAGE + b"x" * 500)[:60])
    read = read_recording(tmp_path / "x.warc.gz")
    assert [exchange.url for exchange in read.exchanges] == ["https://a.example/"]
    assert read.skipped[0].startswith("x.warc.gz: it breaks off")


def har(*entries: Any) -> str:
    return json.dumps({"log": {"entries": list(entries)}})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a HAR file"),
        ("\0\1\2", "not a HAR file"),
        ("[" * 100_000, "not a HAR file"),
        ("[]", "not a HAR file"),
        ('{"log": 7}', "not a HAR file"),
        ('{"log": {"entries": [{}]}}', "its entry is broken"),
        (har(), "holds no exchange"),
        (har(None, 7, []), "holds no exchange"),
        (har(har_entry()), "does not hold its body"),
        (har(har_entry(text="")), "does not hold its body"),
        (har(har_entry(text="<p", encoding="base64")), "not valid base64"),
        (har(har_entry(text=7)), "its entry is broken"),
        (har({**har_entry(text="x"), "response": None}), "its entry is broken"),
        (har(har_entry("https://../", text="x")), "not a host name"),
    ],
)
def test_a_har_that_cannot_be_used_is_refused(content: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.har").write_text(content)
    with pytest.raises(EyelevelError, match=rf"x\.har.*{reason}"):
        read_recording(tmp_path / "x.har")


def test_what_a_har_does_not_know_is_not_taken_for_a_time(tmp_path: Path) -> None:
    entries = [
        {**har_entry(f"https://a.example/{wait}", text="<p>"), "timings": {"wait": wait}} for wait in (-1, None, 12.5)
    ]
    (tmp_path / "x.har").write_text(har(*entries))
    assert [exchange.ttfb_ms for exchange in read_recording(tmp_path / "x.har").exchanges] == [None, None, 12.5]


def test_letters_beyond_latin_1_in_a_har_get_their_bytes_back(tmp_path: Path) -> None:
    entry = har_entry(text="<p>\ud800")
    entry["response"]["headers"].append({"name": "X-Name", "value": "\u4f8b"})
    entry["response"]["headers"].append({"name": "Set-Cookie", "value": "a=\u4f8b\nb=2"})
    (tmp_path / "x.har").write_text(har(entry))
    site = write_site(read_recording(tmp_path / "x.har"), tmp_path / "site")
    headers = site.recorded(site.exchanges[0]).response.headers
    assert ("X-Name", "\u4f8b".encode().decode("latin-1")) in headers
    assert [value for name, value in headers if name == "Set-Cookie"] == ["a=xxx", "b=x"]


# Large inputs must not need more memory than small ones.


def sparse(path: Path, beginning: bytes, size: int, end: bytes = b"") -> None:
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(end)


def too_large_save_file(folder: Path) -> Path:
    (folder / "recording").mkdir()
    (folder / "recording" / "save.0").write_bytes(save_file())
    sparse(folder / "recording" / "save.1", save_file("/large"), 4 * GIB)
    return folder / "recording"


def too_large_raw_response(folder: Path) -> Path:
    host = folder / "recording" / "a.example"
    host.mkdir(parents=True)
    (host / "index.html").write_bytes(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")
    sparse(host / "large", b"HTTP/1.1 200 OK\r\nX-Original-Url: https://a.example/large\r\n\r\n", 4 * GIB)
    return folder / "recording"


def too_large_warc(folder: Path) -> Path:
    message = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    head = warc_record("https://a.example/large", message)[: -len(message) - 4]
    size = len(message) + BODY_BYTES + 1000
    head = head.replace(f"Content-Length: {len(message)}".encode(), f"Content-Length: {size}".encode())
    start = PAGE + head + message
    sparse(
        folder / "x.warc",
        start,
        len(start) + size - len(message),
        b"\r\n\r\n" + PAGE.replace(b"example/", b"example/2"),
    )
    return folder / "x.warc"


def bomb(folder: Path) -> Path:
    (folder / "recording").mkdir()
    (folder / "recording" / "save.0").write_bytes(save_file())
    packed = gzip.compress(bytes(BODY_BYTES + 1), compresslevel=1)
    headers = (HTML, ("Content-Encoding", "gzip"))
    (folder / "recording" / "save.1").write_bytes(save_file("/large", headers=headers, body=packed))
    return folder / "recording"


@pytest.mark.slow
@pytest.mark.parametrize("make", [too_large_save_file, too_large_raw_response, too_large_warc, bomb])
def test_a_body_too_large_for_any_page_is_left_out_and_takes_no_memory(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    completed = imported(make(tmp_path), MEMORY_LIMIT_BYTES)
    assert completed.returncode == 0, completed.stderr
    result = json.loads(completed.stdout)
    assert result["exchanges"] == (2 if make is too_large_warc else 1)
    assert "longer than 256 MiB" in result["skipped"][0]


def test_a_har_too_large_for_any_page_is_refused(tmp_path: Path) -> None:
    sparse(tmp_path / "x.har", b"{", 4 * GIB)
    completed = imported(tmp_path / "x.har", MEMORY_LIMIT_BYTES)
    assert (completed.returncode, completed.stderr.count("\n")) == (1, 1)
    assert "larger than 1024 MiB" in completed.stderr


IMPORT = """
import json, sys
from pathlib import Path
from base.errors import reports_errors
from record.formats import read_recording
recording = reports_errors(read_recording)(Path(sys.argv[1]))
print(json.dumps({"exchanges": len(recording.exchanges), "skipped": recording.skipped}))
"""


def imported(source: Path, memory_bytes: int) -> "subprocess.CompletedProcess[str]":
    """Read `source` in a process that may use at most `memory_bytes` of address space."""
    return subprocess.run(
        [sys.executable, "-c", IMPORT, source],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes)),
    )


def test_a_recording_of_more_than_a_page_is_refused() -> None:
    intake = Intake("x", keep_cookies=False)
    body = bytes(BODY_BYTES)
    large = Exchange("GET", "https://a.example/", Response(200, "", (), body), "192.0.2.1")
    with pytest.raises(EyelevelError, match=r"x holds more than 2 GiB of bodies"):
        for _ in range(9):
            intake.take("x", lambda: large)


# A half-finished import, and another attempt.

KILLED = """
import os, signal, sys
from pathlib import Path
from record.http1 import Response
from record.site import Exchange, Recording, write_site
class Deadly(Response):
    def replayable(self, method):
        os.kill(os.getpid(), signal.SIGKILL)
page = Exchange("GET", "https://a.example/", Response(200, "", (), b"new"), "192.0.2.1")
deadly = Exchange("GET", "https://a.example/2", Deadly(200, "", (), b""), "192.0.2.1")
write_site(Recording(page.url, (page, page, deadly), {"tool": "test"}), Path(sys.argv[1]))
"""


def whole(body: bytes = b"old") -> Recording:
    page = Exchange("GET", "https://a.example/", Response(200, "", (HTML,), body), "192.0.2.1")
    return Recording(page.url, (page,), {"tool": "test"})


def test_an_import_that_is_killed_leaves_the_old_site_and_the_next_one_clears_up(tmp_path: Path) -> None:
    write_site(whole(), tmp_path / "site")
    for name in ("site", "new"):
        killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / name], check=False)
        assert killed.returncode == -9
    leftovers = [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(leftovers) == 2 and all(list(folder.rglob("0000*")) for folder in leftovers), "it was killed half-way"
    assert collection.recorded_names(tmp_path) == ["site"], "nothing half-finished looks like a site"
    assert Site.load(tmp_path / "site").exchanges[0].bytes == 3
    for name in ("site", "new"):
        write_site(whole(b"newer"), tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "site"]


@pytest.mark.slow
def test_a_site_is_there_at_every_moment_while_it_is_imported_again(tmp_path: Path) -> None:
    write_site(whole(), tmp_path / "site")
    ended = threading.Event()

    def import_again() -> None:
        for number in range(100):
            write_site(whole(b"x" * number), tmp_path / "site")
        ended.set()

    thread = threading.Thread(target=import_again)
    thread.start()
    looks = 0
    while not ended.is_set():
        Site.load(tmp_path / "site")
        looks += 1
    thread.join()
    assert looks > 100


def test_what_somebody_still_works_on_is_not_cleared_away(tmp_path: Path) -> None:
    with replacing_folder(tmp_path / "site") as first:
        (first / "file").write_text("first")
        with replacing_folder(tmp_path / "site") as second:
            (second / "file").write_text("second")
        assert (first / "file").read_text() == "first"
    assert (tmp_path / "site" / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_site_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EyelevelError, match="cannot be written"):
        write_site(whole(), tmp_path / "file" / "site")


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "x\0y", "x" * 101, "a b", "-x"])
def test_a_site_cannot_be_called_what_leads_elsewhere(name: str) -> None:
    with pytest.raises(EyelevelError, match="not a name for a site"):
        site_folder(name)


# According to the WHATWG URL standard, plus `|`, which Chromium also escapes in paths.
AS_BROWSERS = (
    ("https://a.example/{id}.png", "https://a.example/%7Bid%7D.png"),
    ('https://a.example/"<>{}|^`', "https://a.example/%22%3C%3E%7B%7D%7C%5E%60"),
    ("https://a.example/'?{}|^`'\"<>", "https://a.example/'?{}|^`%27%22%3C%3E"),
)
# URLs, and the form in which Node's `new URL` returns them (by ICU's UTS 46).
HOSTS = (
    ("https://stra\u00dfe.example/", "https://xn--strae-oqa.example/"),
    ("https://\u1e9e.example/", "https://xn--zca.example/"),
    ("https://\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3.example/", "https://xn--kxa6akbbkh.example/"),
    ("https://\u2603.example./", "https://xn--n3h.example./"),
    ("https://\uff45\ufb01\u2167a\u00adb.example/", "https://efiviiiab.example/"),
)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTPS://User:secret@WWW.Example.org:443/a b?c#d", "https://www.example.org/a%20b?c"),
        ("http://a.example:80", "http://a.example/"),
        ("https://a.example?b", "https://a.example/?b"),
        ("https://a.example:0443/", "https://a.example/"),
        ("https://a.example:80/\u00e9?\u00e9=%c3", "https://a.example:80/%C3%A9?%C3%A9=%c3"),
        ("https://b\u00fccher.example\u3002de/", "https://xn--bcher-kva.example.de/"),
        ("https://a.example/a/./b/../%2E%2e/c/..", "https://a.example/"),
        ("https://a.example/../x/.", "https://a.example/x/"),
        ("\x1fhttps://a.example\\b\\c\td?\\ ", "https://a.example/b/cd?\\"),
        ("https://a.example/\ud800?\udfff", "https://a.example/%EF%BF%BD?%EF%BF%BD"),
        *(
            pytest.param(url, normal, marks=pytest.mark.case("path-as-browsers-write-it"))
            for url, normal in AS_BROWSERS
        ),
        *(pytest.param(url, normal, marks=pytest.mark.case("host-with-sharp-s")) for url, normal in HOSTS),
    ],
)
def test_a_url_is_stored_as_a_browser_asks_for_it(url: str, normal: str) -> None:
    assert normal_url(url) == normal
    assert normal_url(normal) == normal


def test_a_body_in_an_encoding_that_we_lack_is_kept_as_it_is(tmp_path: Path) -> None:
    headers = (HTML, ("Content-Encoding", "dcz"))
    recording = mahimahi(tmp_path, dcz=save_file("/z", headers=headers, body=b"(\xb5/\xfd"))
    assert recording.exchanges[1].response.body == b"(\xb5/\xfd"


def test_cookies_and_authorisation_are_not_imported(tmp_path: Path) -> None:
    entry = har_entry(text="<p>")
    entry["request"]["headers"] = [{"name": n, "value": "s3cret"} for n in ("Cookie", "Authorization", "X-Token")]
    entry["response"]["headers"].append({"name": "set-cookie", "value": "id=s3cret; Path=/"})
    (tmp_path / "x.har").write_text(har(entry))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "save.0").write_bytes(save_file(headers=(HTML, ("Set-Cookie", "id=s3cret; Path=/"))))
    cookie = b"Set-Cookie: id=s3cret; Path=/"
    message = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + cookie + b"\r\n\r\n<p>"
    (tmp_path / "x.warc").write_bytes(warc_record("https://a.example/", message))
    (tmp_path / "raw" / "a.example").mkdir(parents=True)
    (tmp_path / "raw" / "a.example" / "index").write_bytes(message)
    for source in ("x.har", "m", "x.warc", "raw"):
        for keep in (False, True):
            site = write_site(read_recording(tmp_path / source, keep_cookies=keep), tmp_path / "site")
            stored = b"".join(path.read_bytes() for path in site.folder.rglob("*") if path.is_file())
            assert stored.count(b"s3cret") == keep, "at most the value of the cookie that was set"
            assert (b"id=xxxxxx; Path=/" in stored) != keep
            assert site.recorder["cookies"] == ("as sent" if keep else "stand-ins")


def test_a_start_page_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "save.0").write_bytes(save_file())
    completed = subprocess.run(
        [sys.executable, "-m", "eyelevel", "import", tmp_path / "m", "--url", "https://b.example/"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completed.returncode, completed.stderr.count("\n")) == (1, 1)
    assert "--url: https://b.example/ was not recorded; likely ones are: https://a.example/" in completed.stderr


def test_a_body_is_base64_when_the_archive_says_so(tmp_path: Path) -> None:
    entry = har_entry(text=base64.b64encode(b"<p>\xff").decode(), encoding="base64")
    (tmp_path / "x.har").write_text(har(entry))
    assert read_recording(tmp_path / "x.har").exchanges[0].response.body == b"<p>\xff"
