"""The folders of responses that servers load may come from anybody: all servers refuse what no import could have
written.

Each error is one line that names the file.
"""

import os
import re
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from base.bounded import TooLong
from base.places import PROJECT, tool
from record import limits
from record.http1 import MalformedMessage
from servers.application.wsgi import load_responses

URL, METHOD = b"X-Original-Url: https://a.example/\r\n", b"X-Original-Method: GET\r\n"
OURS = URL + METHOD
OK = b"HTTP/1.1 200 OK\r\n"
SOUND = OK + OURS + b"\r\n"
# A server that waits for a pipe or a device would not be done by then.
MAX_LOADING_S = 120


OWN_SERVERS = pytest.mark.parametrize(
    "server",
    [
        pytest.param("quic_server", marks=pytest.mark.needs_quic_server),
        pytest.param("quinn_server", marks=pytest.mark.needs_quinn),
    ],
)


def refusal_of(server: str, folder: Path) -> str:
    """The one line of one of our servers about `folder`; empty if the server loads it."""
    completed = subprocess.run(
        [tool(server), "--responses", folder, "--match"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=MAX_LOADING_S,
        check=False,
    )
    error = completed.stderr.decode("ascii")
    assert re.fullmatch(rf"({server}: [ -~]+\n)?", error)
    assert completed.returncode == (1 if error else 0)
    return error


def refusal_of_application(folder: Path) -> str:
    """The one line of the application behind NGINX about `folder`; empty if it loads the folder."""
    try:
        list(load_responses(folder))
    except (MalformedMessage, TooLong) as error:
        assert str(error).isprintable()
        return str(error)
    return ""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host's folder with a valid response, in a folder of responses."""
    folder = tmp_path / "responses" / "a.example"
    folder.mkdir(parents=True)
    (folder / "00000-index").write_bytes(SOUND)
    return folder


def fields(count: int, bytes_in_all: int) -> bytes:
    """`count` header fields that count as `bytes_in_all` bytes."""
    names = [f"x{number:04d}: " for number in range(count)]
    padding = bytes_in_all - sum(len(name) + len("\r\n") for name in names)
    return "".join(f"{name}\r\n" for name in names[1:]).encode() + f"{names[0]}{'v' * padding}\r\n".encode()


@OWN_SERVERS
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no blank line after the headers"),
        (OK + OURS, "no blank line after the headers"),
        (b"200 OK\r\n" + OURS + b"\r\n", "does not begin with a status line"),
        (b"HTTP/1.1 20 OK\r\n" + OURS + b"\r\n", "does not begin with a status line"),
        (b"HTTP/1.1 101 Switching\r\n" + OURS + b"\r\n", "its status is none that can be replayed"),
        (b"HTTP/1.1 600 More\r\n" + OURS + b"\r\n", "its status is none that can be replayed"),
        (b"HTTP/1.1 200 OK\nX-Injected: 1\r\n" + OURS + b"\r\n", "a line break in its header fields"),
        (OK + OURS + b"X: a\nX-Injected: 1\r\n\r\n", "a line break in its header fields"),
        (OK + OURS + b"X: a\0b\r\n\r\n", "a line break in its header fields"),
        (OK + OURS + b"nonsense\r\n\r\n", "header line without a name"),
        (OK + OURS + b"a name: x\r\n\r\n", "header line without a name"),
        (OK + OURS + b"\x1b[31m: x\r\n\r\n", r"header line without a name: \x1b[31m"),
        (OK + METHOD + b"\r\n", "has no X-Original-Url"),
        (OK + URL + b"\r\n", "has no X-Original-Method"),
        (OK + OURS + b"X-ORIGINAL-URL: https://victim.example/login\r\n\r\n", "it has x-original-url more than once"),
        (OK + OURS + b"X-Original-Method: POST\r\n\r\n", "it has x-original-method more than once"),
        (OK + OURS + b"X-Original-Wait-Ms: 1\r\n" * 2 + b"\r\n", "it has x-original-wait-ms more than once"),
        (OK + OURS + b"X-Original-Wait-Ms: abc\r\n\r\n", "its X-Original-Wait-Ms is no time: abc"),
        (OK + OURS + b"X-Original-Wait-Ms: nan\r\n\r\n", "its X-Original-Wait-Ms is no time: nan"),
        (OK + OURS + b"X-Original-Wait-Ms: -1\r\n\r\n", "its X-Original-Wait-Ms is no time: -1"),
        (OK + OURS + b"X-Original-Wait-Ms: 1_0\r\n\r\n", "its X-Original-Wait-Ms is no time: 1_0"),
        (OK + METHOD + b"X-Original-Url: http://a.example/\r\n\r\n", "is not https"),
        (OK + METHOD + b"X-Original-Url: https:///x\r\n\r\n", "has no host"),
        (OK + METHOD + b"X-Original-Url: https://a..example/\r\n\r\n", "has no host"),
        (OK + METHOD + b"X-Original-Url: https://a.example:http/\r\n\r\n", "has no host"),
        (OK + METHOD + b"X-Original-Url: https://a.example/a b\r\n\r\n", "its X-Original-Url is no URL"),
        (
            OK + METHOD + b"X-Original-Url: https://a.example/" + b"x" * limits.URL_BYTES + b"\r\n\r\n",
            "more than 24576",
        ),
        (OK + URL + b"X-Original-Method: get\r\n\r\n", "its X-Original-Method is none of a page"),
        (OK + URL + b"X-Original-Method: CONNECT\r\n\r\n", "its X-Original-Method is none of a page"),
        (OK + OURS + fields(2, limits.HEADER_BYTES + 1) + b"\r\n", "more than 1000 header fields, or 61440 bytes"),
        (
            OK + OURS + fields(limits.HEADER_FIELDS + 1, 20_000) + b"\r\n",
            "more than 1000 header fields, or 61440 bytes",
        ),
        (OK + OURS + b"Content-Length: 5\r\n\r\n1234", "its content-length is 5, its body has 4 bytes"),
        (OK + OURS + b"Content-Length: +4\r\n\r\n1234", "its content-length is +4, its body has 4 bytes"),
        (OK + OURS + b"Content-Length: 4\r\n" * 2 + b"\r\n1234", "it has content-length more than once"),
        (OK + OURS + b"X-Original-Url: x\r\n" * 80_000 + b"\r\n", "its header fields have more than 1048576 bytes"),
    ],
)
def test_all_servers_refuse_a_broken_response_file(server: str, content: bytes, reason: str, host: Path) -> None:
    broken = host / "00001-broken"
    broken.write_bytes(content)
    assert f"broken response file {broken}: " in refusal_of(server, host.parent)
    assert reason in refusal_of(server, host.parent)
    assert str(broken) in refusal_of_application(host.parent)


@OWN_SERVERS
@pytest.mark.parametrize(
    "content",
    [
        OK + OURS + fields(2, limits.HEADER_BYTES) + b"\r\n",
        OK + OURS + fields(limits.HEADER_FIELDS, 20_000) + b"\r\n",
        OK + METHOD + b"X-Original-Url: https://a.example/" + b"x" * 24_000 + b"\r\n\r\n",
        OK + METHOD + b"X-Original-Url: https://a-b.c_d.example.:8080?x#y\r\n\r\n",
        OK + OURS + b"X-Original-Wait-Ms: 1e-05\r\n\r\n",
        # Servers wait at most a minute.
        OK + OURS + b"X-Original-Wait-Ms: 1e+305\r\n\r\n",
        OK + OURS + b"X: \xff\t.\r\n\r\n",
        SOUND + b"\r\n\0\n",
    ],
)
def test_all_servers_take_what_is_within_the_limits(server: str, content: bytes, host: Path) -> None:
    (host / "00001-sound").write_bytes(content)
    assert (refusal_of(server, host.parent), refusal_of_application(host.parent)) == ("", "")


@pytest.mark.needs_quic_server
@pytest.mark.needs_quinn
def test_control_characters_are_refused_by_quinn_server_alone(host: Path) -> None:
    """HTTP/3 cannot carry control characters (RFC 9114, section 10.3), and quinn_server's library sends none."""
    (host / "00001-control").write_bytes(OK + OURS + b"X: \x01\r\n\r\n")
    assert (refusal_of("quic_server", host.parent), refusal_of_application(host.parent)) == ("", "")
    assert "x has characters that HTTP/3 cannot carry" in refusal_of("quinn_server", host.parent)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def unix_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_PATH)  # the path itself may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@OWN_SERVERS
@pytest.mark.parametrize(
    "make",
    [os.mkfifo, Path.mkdir, huge, unix_socket, link_to("/dev/zero"), link_to("missing"), link_to("00002-itself")],
    ids=["pipe", "folder", "huge", "socket", "device", "missing", "loop"],
)
def test_all_servers_refuse_what_is_no_file_of_a_response(
    server: str, make: Callable[[Path], None], host: Path
) -> None:
    broken = host / "00002-itself"
    make(broken)
    assert str(broken) in refusal_of(server, host.parent)
    assert str(broken) in refusal_of_application(host.parent)


@OWN_SERVERS
def test_servers_follow_a_link_to_a_file_and_none_to_a_link(server: str, host: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    recorded.write_bytes(SOUND)
    (host / "00001-stand-in").symlink_to(recorded)
    assert refusal_of(server, host.parent) == ""
    recorded.rename(tmp_path / "elsewhere")
    recorded.symlink_to(tmp_path / "elsewhere")
    assert "it is a link that leads to a link" in refusal_of(server, host.parent)


@OWN_SERVERS
@pytest.mark.parametrize("name", ["index", "0000-index", "00001-", "00001-a\tb", "00001-\n", "00001-é", ".DS_Store"])
def test_all_servers_refuse_a_file_with_a_name_that_no_site_gives(server: str, name: str, host: Path) -> None:
    (host / name).write_bytes(SOUND)
    assert "is no name of a response file" in refusal_of(server, host.parent)
    assert refusal_of_application(host.parent)


@OWN_SERVERS
def test_many_fields_are_put_in_order_in_time_to_their_number(server: str, host: Path) -> None:
    """Before, the time grew with the square of the number of names in a response: this took 10 s and now takes 0.3
    s."""
    many = host / "00001-many"
    many.write_bytes(OK + OURS + fields(limits.HEADER_FIELDS, 20_000) + b"\r\n")
    for number in range(2, 2000):
        (host / f"{number:05d}-many").hardlink_to(many)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert refusal_of(server, host.parent) == ""
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 2


def test_quinn_server_has_the_limits_of_record() -> None:
    text = (PROJECT / "servers" / "quinn" / "src" / "responses.rs").read_text()
    numbers = re.findall(r"^const (MAX_\w+): \w+ = ([0-9_.]+);$", text, re.MULTILINE)
    assert {name: float(number) for name, number in numbers} == {
        "MAX_HOSTS": limits.HOSTS,
        "MAX_EXCHANGES": limits.EXCHANGES,
        "MAX_HEADER_FIELDS": limits.HEADER_FIELDS,
        "MAX_HEADER_BYTES": limits.HEADER_BYTES,
        "MAX_URL_BYTES": limits.URL_BYTES,
        "MAX_HEAD_BYTES": limits.HEAD_BYTES,
        "MAX_BODY_BYTES": limits.BODY_BYTES,
        "MAX_SITE_BYTES": limits.FOLDER_BYTES,
        "MAX_THINK_TIME_MS": limits.THINK_TIME_S * 1000,
    }


def test_quic_server_has_the_limits_of_record() -> None:
    text = (PROJECT / "servers" / "quic" / "site_limits.h").read_text()
    values: dict[str, float] = {}
    for name, value in re.findall(r"constexpr \w+ (k\w+) =\s+([^;]+);", text):
        number = re.sub(r"uint64_t\{(\d+)\}", r"\1", value.replace("'", ""))
        values[name] = eval(number, {"__builtins__": {}}, values)
    assert values == {
        "kMaxHosts": limits.HOSTS,
        "kMaxExchanges": limits.EXCHANGES,
        "kMaxHeaderFields": limits.HEADER_FIELDS,
        "kMaxHeaderBytes": limits.HEADER_BYTES,
        "kMaxUrlBytes": limits.URL_BYTES,
        "kMaxHeadBytes": limits.HEAD_BYTES,
        "kMaxBodyBytes": limits.BODY_BYTES,
        "kMaxThinkTimeMs": limits.THINK_TIME_S * 1000,
        "kMaxFileBytes": limits.BODY_BYTES + limits.HEAD_BYTES,
        "kMaxSiteBytes": limits.FOLDER_BYTES,
    }
