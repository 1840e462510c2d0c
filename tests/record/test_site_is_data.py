"""A site folder is untrusted: `Site.load` accepts what an import could have written, and refuses the rest in one
line."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.recordings import HTML, har_entry

from base.errors import EyelevelError
from measure.sites import completeness
from record.formats import read_recording
from record.http1 import MalformedMessage, Response
from record.site import Exchange, Recording, Site, write_site
from servers.application.wsgi import load_responses

INDEX = "site.json"


def exchange(url: str, ip: str = "192.0.2.1", **changes: Any) -> Exchange:
    return replace(Exchange("GET", url, Response(200, "", (HTML,), b"<p>"), ip), **changes)


PAGE, PICTURE = exchange("https://a.example/", ttfb_ms=12.5), exchange("https://b.example:8080/x.png", "192.0.2.2")


def written(folder: Path, *exchanges: Exchange) -> Site:
    exchanges = exchanges or (PAGE, PICTURE)
    recording = Recording(exchanges[0].url, exchanges, {"tool": "test"}, user_agent="x", viewport=(1366, 768))
    return write_site(recording, folder)


def refusal(folder: Path) -> str:
    """The one line that refuses the site."""
    with pytest.raises(EyelevelError) as refused:
        Site.load(folder)
    line = str(refused.value)
    assert line.isprintable() and len(line) < 500
    return line


LINES = "198.18.0.1/32 dev lo\nnetns add x\nnetns exec x touch /tmp/made\naddress add 198.18.0.1"


def with_server(address: str) -> Callable[[Any], None]:
    """A change that moves the first server to another address, and keeps everything consistent."""

    def change(index: Any) -> None:
        index["servers"] = {address if old == "198.18.0.1" else old: ip for old, ip in index["servers"].items()}
        index["exchanges"][0]["server"] = address

    return change


def with_value(*path: Any) -> Callable[[Any], None]:
    """A change that sets the value at a path; the value is the last element."""

    def change(index: Any) -> None:
        *places, key, value = path
        for place in places:
            index = index[place]
        index[key] = value

    return change


FIRST = ("exchanges", 0)
CHANGES: dict[str, Callable[[Any], None]] = {
    "commands for ip": with_server(LINES),
    "an address beyond the range": with_server("198.20.0.1"),
    "a private address": with_server("10.0.0.1"),
    "an address of IPv6": with_server("2001:db8::1"),
    "an unused server": with_value("servers", "198.18.0.3", "192.0.2.3"),
    "a server's name with a line break": with_value("servers", "198.18.0.1", "a\nb"),
    "a server that is not there": with_value(*FIRST, "server", "198.18.0.9"),
    "a server that is a list": with_value(*FIRST, "server", []),
    "an absolute file": with_value(*FIRST, "file", "/etc/passwd"),
    "a file outside": with_value(*FIRST, "file", "a.example/../../00000-x"),
    "a file of another host": with_value(*FIRST, "file", "b.example,8080/00000-index"),
    "a file of another place": with_value(*FIRST, "file", "a.example/00001-index"),
    "a file that is a number": with_value(*FIRST, "file", 7),
    "plain http": with_value(*FIRST, "url", "http://a.example/"),
    "a URL with a user": with_value(*FIRST, "url", "https://u:p@a.example/"),
    "a URL with a line break": with_value(*FIRST, "url", "https://a.example/\nx"),
    "a URL of an address": with_value(*FIRST, "url", "https://127.0.0.1/"),
    "a URL of no host": with_value(*FIRST, "url", "https://a[/"),
    "a start page that was not recorded": with_value("url", "https://a.example/other"),
    "a method with a line break": with_value(*FIRST, "method", "GET\r\nX: y"),
    "a method that no page has": with_value(*FIRST, "method", "CONNECT"),
    "a status that cannot be replayed": with_value(*FIRST, "status", 101),
    "a status that is text": with_value(*FIRST, "status", "200"),
    "a negative length": with_value(*FIRST, "bytes", -1),
    "a length of no body": with_value(*FIRST, "bytes", 1 << 40),
    "a time that does not end": with_value(*FIRST, "ttfb_ms", float("inf")),
    "a time that is none": with_value(*FIRST, "started_ms", float("nan")),
    "a time of many digits": with_value(*FIRST, "started_ms", 10**400),
    "a start page that is a list": with_value("url", []),
    "a time before the first": with_value(*FIRST, "started_ms", -1.0),
    "a time that is a truth": with_value(*FIRST, "ttfb_ms", True),
    "a further value": with_value(*FIRST, "command", "reboot"),
    "a long user agent": with_value("user_agent", "x" * 1025),
    "a user agent with an escape": with_value("user_agent", "\x1b[2J"),
    "a viewport of texts": with_value("viewport", ["1", "2"]),
    "a viewport of nothing": with_value("viewport", [0, 0]),
    "a recorder that is a number": with_value("recorder", {"tool": 7}),
    "lines that are numbers": with_value("skipped", [7]),
    "no exchange": with_value("exchanges", []),
    "exchanges that are numbers": with_value("exchanges", [1, 2]),
    "too many servers": with_value("servers", {f"198.18.{n // 256}.{n % 256}": str(n) for n in range(1, 1002)}),
    "nothing of an index": lambda index: index.clear() or index.update(format=1),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_value_that_no_import_writes_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    site = written(tmp_path / "site")
    index = json.loads((site.folder / INDEX).read_text())
    CHANGES[case](index)
    (site.folder / INDEX).write_text(json.dumps(index))
    assert "is broken" in refusal(site.folder)


def to_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_files(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / str(number)).touch()


def to_length(path: Path, length: int) -> None:
    path.touch()
    os.truncate(path, length)


HOST, FILE = Path("a.example"), Path("a.example/00000-index")
FOLDERS: dict[str, Callable[[Path], object]] = {
    "a file that is a link": lambda folder: to_link(folder / FILE),
    "a file that is a pipe": lambda folder: to_pipe(folder / FILE),
    "a file that is a folder": lambda folder: to_folder(folder / FILE),
    "a file that is missing": lambda folder: (folder / FILE).unlink(),
    "a file too long": lambda folder: os.truncate(folder / FILE, 1 << 40),
    "a further file": lambda folder: shutil.copy(folder / FILE, folder / "a.example/00007-more"),
    "a host that is a link": lambda folder: to_link(folder / HOST),
    "a further host": lambda folder: shutil.copytree(folder / HOST, folder / "c.example"),
    "a further link": lambda folder: (folder / "etc").symlink_to("/etc"),
    "many further files beside the index": lambda folder: make_files(folder, 1001),
    "a further file of a terabyte beside the index": lambda folder: to_length(folder / "notes.txt", 1 << 40),
    "an index that is a link": lambda folder: to_link(folder / INDEX),
    "an index that is a pipe": lambda folder: to_pipe(folder / INDEX),
    "an index that is a folder": lambda folder: to_folder(folder / INDEX),
    "an index too long": lambda folder: os.truncate(folder / INDEX, 1 << 40),
    "an index too deep": lambda folder: (folder / INDEX).write_text("[" * 100_000),
    "an index that is no text": lambda folder: (folder / INDEX).write_bytes(b"\xff\xfe"),
    "an index of digits": lambda folder: (folder / INDEX).write_text("7" * 5000),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_what_no_import_puts_into_a_folder_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    site = written(tmp_path / "sites" / "site")
    FOLDERS[case](site.folder)
    refusal(site.folder)


def test_files_that_are_longer_together_than_those_of_a_site_are_refused(tmp_path: Path) -> None:
    site = written(tmp_path / "site", *(exchange(f"https://a.example/{number}") for number in range(13)))
    for path in (site.folder / HOST).iterdir():
        to_length(path, 256 << 20)
    assert "the files in its folder are longer than 3 GiB together" in refusal(site.folder)


def test_what_people_and_we_keep_beside_a_recording_does_no_harm(tmp_path: Path) -> None:
    site = written(tmp_path / "site")
    for name in ("notes.txt", ".DS_Store", "completeness.json"):
        (site.folder / name).write_text("{}")
    assert Site.load(site.folder) == site


# Names of hosts, which are also names of folders.

NAMED_AS_OURS = ("https://site.json/", "https://completeness.json/x")
LONG = f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}"
HOSTS = (*NAMED_AS_OURS, f"https://{LONG}:8080/", f"https://{LONG}:8081/", f"https://{LONG}/", "https://a.example/")


def test_no_two_hosts_have_one_folder_whatever_they_are_called(tmp_path: Path) -> None:
    urls = (*HOSTS, "https://a.example:8080/", "https://a.example_8080/", "https://site.json_443/")
    site = written(tmp_path / "site", *(exchange(url) for url in urls))
    assert len(set(site.host_folders.values())) == len(urls)
    assert site.host_folders["a.example:8080"] == "a.example,8080"
    assert [recorded.url for recorded in load_responses(site.folder)] == list(urls)
    assert completeness.read(site) is None, "a host's folder does not stand where we keep what we know"
    assert Site.load(site.folder) == site


def test_a_long_wait_is_cut_where_it_is_served(tmp_path: Path) -> None:
    site = written(tmp_path / "site")
    for path in (site.folder / INDEX, site.folder / FILE):
        path.write_bytes(path.read_bytes().replace(b": 12.5", b": 1e+300"))
    page, picture = load_responses(Site.load(site.folder).folder)
    assert (page.response.wait_s, picture.response.wait_s) == (60.0, 0.0)


def test_a_recording_beyond_the_limits_is_not_stored_and_the_old_site_stays(tmp_path: Path) -> None:
    site = written(tmp_path / "site")
    many = [exchange(f"https://a.example/{number}", f"server {number}") for number in range(1001)]
    with pytest.raises(EyelevelError, match="more than 1,000 servers"):
        written(site.folder, *many)
    assert Site.load(site.folder) == site and [path.name for path in tmp_path.iterdir()] == ["site"]


# Stored responses that all servers refuse, so that no site is served over one protocol only.

LINE = b"X-Original-Url: https://a.example/\r\n"
STORED: dict[str, Callable[[bytes], bytes]] = {
    "two URLs": lambda stored: stored.replace(LINE, LINE + b"x-original-url: https://victim.example/\r\n"),
    "two methods": lambda stored: stored.replace(LINE, LINE + b"X-Original-Method: POST\r\n"),
    "two waits": lambda stored: stored.replace(LINE, LINE + b"X-Original-Wait-Ms: 1\r\n"),
    "no URL": lambda stored: stored.replace(LINE, b""),
    "no method": lambda stored: stored.replace(b"X-Original-Method: GET\r\n", b""),
    "plain http": lambda stored: stored.replace(b"https:", b"http:"),
    "no host": lambda stored: stored.replace(b"https://a.example/", b"https://a[/"),
    "a port of other digits": lambda stored: stored.replace(b"https://a.example/", b"https://a.example:\xb2/"),
    "a wait that is none": lambda stored: stored.replace(b"12.5", b"nan"),
    "a wait before its request": lambda stored: stored.replace(b"12.5", b"-5"),
    "a method of no page": lambda stored: stored.replace(b"Method: GET", b"Method: get"),
    "an informational status": lambda stored: stored.replace(b"200 ", b"103 "),
    "a reason with a line break": lambda stored: stored.replace(b"200 ", b"200 x\ny: z"),
    "a value with a line break": lambda stored: stored.replace(b"text/html", b"text/html\nX: y"),
    "a name that is none": lambda stored: stored.replace(LINE, LINE + b"a b: c\r\n"),
    "a length that is not the body's": lambda stored: stored.replace(b"Length: 3", b"Length: 4"),
    "two lengths": lambda stored: stored.replace(b"Content-Length: 3", b"Content-Length: 3\r\nContent-Length: 3"),
    "a long header": lambda stored: stored.replace(LINE, LINE + b"X: " + b"x" * 70_000 + b"\r\n"),
    "many fields": lambda stored: stored.replace(LINE, LINE + b"X: y\r\n" * 1001),
}


@pytest.mark.parametrize("case", STORED)
def test_a_stored_response_that_servers_would_not_send_alike_is_refused(case: str, tmp_path: Path) -> None:
    site = written(tmp_path / "site")
    stored = (site.folder / FILE).read_bytes()
    (site.folder / FILE).write_bytes(STORED[case](stored))
    assert (site.folder / FILE).read_bytes() != stored
    with pytest.raises(MalformedMessage, match="00000-index is not a recorded response") as refused:
        list(load_responses(site.folder))
    assert str(refused.value).isprintable()


def test_fields_called_as_ours_in_a_recording_do_not_become_ours(tmp_path: Path) -> None:
    entry = har_entry("https://a.example/x.js", text="1")
    fields = {
        "X-Original-Url": "https://victim.example/login",
        "x-original-method": "POST",
        "X-ORIGINAL-WAIT-MS": "abc",
    }
    entry["response"]["headers"] += [{"name": name, "value": value} for name, value in fields.items()]
    (tmp_path / "x.har").write_text(json.dumps({"log": {"entries": [har_entry(text="<p>"), entry]}}))
    site = write_site(read_recording(tmp_path / "x.har"), tmp_path / "site")
    assert [recorded.url for recorded in load_responses(site.folder)] == [
        "https://a.example/",
        "https://a.example/x.js",
    ]
    assert not [name for name, _ in site.recorded(site.exchanges[1]).response.headers if "riginal" in name]
