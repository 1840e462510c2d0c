"""quic_server: the matching rule, its errors, and Chromium loading from it over HTTP/3."""

import errno
import hashlib
import itertools
import json
import os
import re
import select
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import psutil
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.browser import WITHOUT_SUGGESTIONS
from support.http3_order import arrivals_of
from support.own_servers import (
    MATCHING_CASES,
    Certificate,
    endpoints_file,
    exchange,
    make_certificate,
    match,
    ok,
    require_rule,
    stored,
)

from base import jailer
from base.errors import EyelevelError
from base.namespaces import AS_ORDINARY_USER
from base.places import tool
from base.qlog import METRICS, PRIORITY, STATE, read_qlog
from servers.quic import fetch

# The slowest answer, a body of 5 MB on a busy machine, takes a second or two.
ANSWER_TIMEOUT_S = 120
# x86-64's numbers of system calls, and the position of the second argument in filters of system calls
# (linux/seccomp.h).
SYS_MPROTECT, SYS_CLONE3 = 10, 435
AT_SECOND_ARGUMENT = 24
# Memory shared by servers is at least this large (servers/quic/shared_memory.cc); other protected memory is smaller.
SHARED_BYTES = 16 << 20
BIG = hashlib.shake_256(b"a body of 5 MB").digest(5_000_000)


# The answers, without a client.


match_quic_server = partial(match, "quic_server")


@pytest.mark.needs_quic_server
@pytest.mark.parametrize("case", MATCHING_CASES, ids=[case["name"] for case in MATCHING_CASES])
def test_matching_rule(case: dict[str, Any], tmp_path: Path) -> None:
    require_rule("quic_server", case, tmp_path)


@pytest.mark.needs_quic_server
def test_headers_are_sent_in_nginx_order_and_as_recorded(tmp_path: Path) -> None:
    headers = (
        ("Set-Cookie", "a=1"),
        ("X-Frame-Options", "DENY"),
        ("Location", "https://b.example/"),
        ("Content-Type", "text/html"),
        ("Set-Cookie", "b=2"),
        ("Last-Modified", "Thu, 20 Nov 2025 00:00:00 GMT"),
        ("Alt-Svc", 'h3=":443"'),
        ("Connection", "close"),
        ("Server", "Apache"),
    )
    folder = stored(tmp_path, exchange("GET", "https://a.example/", ok(b"12345", *headers)))
    (_, _, status, length), sent = match_quic_server(folder, "GET\thttps://a.example/")[0]
    assert (status, length) == ("200", "5")
    assert sent == [
        "content-type: text/html",
        "content-length: 5",
        "location: https://b.example/",
        "set-cookie: a=1",
        "set-cookie: b=2",
        "x-frame-options: DENY",
        "last-modified: Thu, 20 Nov 2025 00:00:00 GMT",
        "server: Apache",
        "date: Thu, 01 Jan 2026 00:00:00 GMT",
    ]


@pytest.mark.needs_quic_server
def test_answers_made_up_and_answers_without_a_body(tmp_path: Path) -> None:
    folder = stored(
        tmp_path,
        exchange("GET", "https://a.example/", ok(b"12345")),
        exchange("GET", "https://a.example/204", ok(b"dropped", ("Content-Length", "7"), status=204)),
        exchange("GET", "https://a.example/304", ok(b"dropped", ("Content-Length", "7"), status=304)),
    )
    defaults = ["server: eyelevel", "date: Thu, 01 Jan 2026 00:00:00 GMT"]
    answers = match_quic_server(
        folder,
        "HEAD\thttps://a.example/",
        "GET\thttps://a.example/204",
        "GET\thttps://a.example/304",
        "OPTIONS\thttps://a.example/\thttps://b.example\tPUT\tx-one,x-two",
        "GET\thttps://a.example/never",
    )
    assert [fields[2:] for fields, _ in answers] == [
        ["200", "0"],
        ["204", "0"],
        ["304", "0"],
        ["204", "0"],
        ["404", "0"],
    ]
    assert [headers for _, headers in answers] == [
        ["content-length: 5", *defaults],
        defaults,
        defaults,
        [
            *defaults,
            "access-control-allow-origin: https://b.example",
            "access-control-allow-credentials: true",
            "access-control-allow-methods: PUT",
            "access-control-allow-headers: x-one,x-two",
        ],
        ["content-length: 0", *defaults],
    ]


# Errors.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def arguments(tmp_path: Path, certificate: Certificate) -> dict[str, str | Path]:
    """A valid command line of a server, which tests change to make it invalid."""
    folder = stored(tmp_path, exchange("GET", "https://a.example/", ok(b"hello")))
    endpoints = endpoints_file(tmp_path, ["127.0.0.1", "0", certificate.chain, certificate.key])
    return {"--endpoints": endpoints, "--responses": folder}


def fails(arguments: dict[str, str | Path], **options: Any) -> tuple[int, str]:
    """The exit status and the one line of standard error of a quic_server that does not start."""
    ended = subprocess.run(
        command_of(arguments), capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False, **options
    )
    assert ended.stdout == ""
    assert re.fullmatch(r"\S*quic_server: .+\n", ended.stderr), ended.stderr
    return ended.returncode, ended.stderr


@pytest.mark.needs_quic_server
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--endpoints", ""),
        ("--responses", ""),
        ("--adress", "127.0.0.1"),
        ("--emulated-connections", "11"),
        ("--max-window", "0"),
        ("--emulated-connections", "one"),
        ("--scheduler", "last-come"),
        ("--tls-group", "X448"),
    ],
)
def test_bad_usage_is_status_2(option: str, value: str, arguments: dict[str, str | Path]) -> None:
    status, error = fails(arguments | {option: value})
    assert status == 2
    assert option in error


@pytest.mark.needs_quic_server
def test_certificate_errors_name_the_file(
    arguments: dict[str, str | Path], certificate: Certificate, tmp_path: Path
) -> None:
    other_key = tmp_path / "other.pem"
    other_key.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    not_pem = tmp_path / "not.pem"
    not_pem.write_text("nothing")
    sound: list[str | Path] = ["127.0.0.1", "0", certificate.chain, certificate.key]
    for field, path, reason in [
        (2, tmp_path / "none.pem", "No such file"),
        (2, not_pem, "no usable PEM certificate"),
        (3, tmp_path / "none.pem", "No such file"),
        (3, not_pem, "no usable PEM private key"),
        (3, other_key, "does not belong to the certificate"),
    ]:
        endpoints_file(tmp_path, sound, [*sound[:field], path, *sound[field + 1 :]])
        status, error = fails(arguments)
        assert status == 1
        assert str(path) in error
        assert reason in error


SOUND_LINE = "127.0.0.1\t0\t/chain.pem\t/key.pem\n"
LINE_FORM = "not ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>KEY"


@pytest.mark.needs_quic_server
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "there is no endpoint in FILE\n"),
        (SOUND_LINE + "\n", f"line 2 of the endpoints FILE is broken: {LINE_FORM}: \n"),
        (SOUND_LINE + "127.0.0.1\t443\t/chain.pem\n", rf"line 2 of the endpoints FILE is broken: {LINE_FORM}: "),
        ("127.0.0.1\t443\t\t/key.pem\n", LINE_FORM),
        ("127.0.0.1\t443\t/chain.pem\t/key.pem\t\n", LINE_FORM),
        ("localhost\t443\t/chain.pem\t/key.pem\n", "line 1 of the endpoints FILE is broken: no IP address: "),
        ("127.0.0.1\t65536\t/chain.pem\t/key.pem\n", "no port: 65536\n"),
        ("127.0.0.1\t-1\t/chain.pem\t/key.pem\n", "no port: -1\n"),
        ("127.0.0.1\t\t/chain.pem\t/key.pem\n", "no port: \n"),
        ("\x1b[2J\xff\0\n", r"KEY: \x1b[2J\xc3\xbf\x00"),
    ],
)
def test_a_broken_endpoint_is_one_line(content: str, reason: str, arguments: dict[str, str | Path]) -> None:
    file = Path(arguments["--endpoints"])
    file.write_text(content)
    status, error = fails(arguments)
    assert status == 1
    assert reason.replace("FILE", str(file)) in error


@pytest.mark.needs_quic_server
def test_endpoints_that_cannot_be_read_are_named(arguments: dict[str, str | Path], tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        assert fails(arguments | {"--endpoints": path}) == (
            1,
            f"quic_server: cannot read the endpoints {path}: {reason}\n",
        )


@pytest.mark.needs_quic_server
def test_an_empty_or_missing_response_folder_is_named(arguments: dict[str, str | Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "a.example").mkdir(parents=True)
    for folder in (empty, tmp_path / "missing"):
        status, error = fails(arguments | {"--responses": folder})
        assert status == 1
        assert str(folder) in error


@pytest.mark.needs_quic_server
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (SYS_CLONE3, "no thread can be started to load the responses: "),
        (SYS_MPROTECT, "the memory that servers share cannot be made read-only: "),
    ],
)
def test_what_the_kernel_refuses_is_one_line(call: int, reason: str, arguments: dict[str, str | Path]) -> None:
    error = f"quic_server: {reason}{os.strerror(errno.EAGAIN)}\n"
    assert fails(arguments, preexec_fn=partial(refuse, call)) == (1, error)


def refuse(call: int) -> None:
    """Make the kernel refuse the system call of this number in this process, except for small amounts of memory."""
    lines = (
        (jailer.LOAD, jailer.AT_NUMBER, 0, 0),
        (jailer.JUMP_IF_EQUAL, call, 0, 4),
        (jailer.JUMP_IF_EQUAL, SYS_CLONE3, 2, 0),
        (jailer.LOAD, AT_SECOND_ARGUMENT, 0, 0),
        (jailer.JUMP_IF_AT_LEAST, SHARED_BYTES, 0, 1),
        (jailer.RETURN, jailer.SECCOMP_RET_ERRNO | errno.EAGAIN, 0, 0),
        (jailer.RETURN, jailer.SECCOMP_RET_ALLOW, 0, 0),
    )
    jailer.prctl(jailer.PR_SET_NO_NEW_PRIVS, 1)
    jailer.filter_calls(lines)


def command_of(arguments: dict[str, str | Path]) -> list[str | Path]:
    return [tool("quic_server"), *(part for pair in arguments.items() for part in pair)]


def start(arguments: dict[str, str | Path], *wrapper: str) -> "subprocess.Popen[str]":
    """quic_server, started by `wrapper` (a command that executes another one)."""
    command = [*wrapper, *command_of(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGINT)


@pytest.mark.needs_quic_server
def test_a_busy_address_is_refused_and_signals_end_the_server(
    arguments: dict[str, str | Path], certificate: Certificate, tmp_path: Path
) -> None:
    (tmp_path / "busy").mkdir()
    for stop in (subprocess.Popen.terminate, interrupt):
        with start(arguments) as server:
            assert server.stdout is not None and server.stderr is not None
            listening = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", server.stdout.readline())
            assert listening
            busy = ["127.0.0.1", listening[1], certificate.chain, certificate.key]
            try:
                status, error = fails(arguments | {"--endpoints": endpoints_file(tmp_path / "busy", busy, busy)})
            finally:
                stop(server)
            assert status == 1
            assert error == f"quic_server: cannot listen on 127.0.0.1:{listening[1]}: Address already in use\n"
            assert server.wait(timeout=ANSWER_TIMEOUT_S) == 0
            assert server.stderr.read() == ""


@pytest.mark.needs_quic_server
def test_version_names_the_chromium_it_was_built_from() -> None:
    version = subprocess.run([tool("quic_server"), "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"quic_server \(Eyelevel\) Chromium \d+\.\d+\.\d+\.\d+\n", version.stdout)


# Many addresses.

ADDRESSES = 40


@pytest.fixture
def many(arguments: dict[str, str | Path], certificate: Certificate, tmp_path: Path) -> dict[str, str | Path]:
    """A command line that serves on many addresses."""
    addresses = [f"127.0.0.{number}" for number in range(1, ADDRESSES + 1)]
    endpoints: list[list[str | Path]] = [[address, "0", certificate.chain, certificate.key] for address in addresses]
    endpoints_file(tmp_path, *endpoints)
    return arguments


def endpoints_of(server: "subprocess.Popen[str]") -> dict[str, int]:
    """The ADDRESSES on which the server reports to listen, with their ports."""
    assert server.stdout is not None
    lines = [server.stdout.readline() for _ in range(ADDRESSES)]
    parts = [re.fullmatch(r"listening on ([0-9.]+):(\d+)\n", line) for line in lines]
    return {part[1]: int(part[2]) for part in parts if part}


def processes_of(server: "subprocess.Popen[str]") -> list[int]:
    """The processes of its addresses."""
    return [int(child) for child in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


@pytest.mark.needs_quic_server
def test_each_of_many_addresses_answers(many: dict[str, str | Path], tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    with start(many | {"--request-log": log}) as server:
        try:
            endpoints = endpoints_of(server)
            assert len(endpoints) == len(processes_of(server)) == ADDRESSES
            for address in ("127.0.0.1", f"127.0.0.{ADDRESSES}"):
                arrivals = arrivals_of(endpoints[address], "a.example", [("/", "u=3")], address=address)
                assert sum(length for _, length in arrivals) == len(b"hello")
        finally:
            server.terminate()
        assert server.stdout is not None and server.stderr is not None
        assert (server.stdout.read(), server.stderr.read(), server.wait()) == ("", "", 0)
    assert log.read_text() == "exact\tGET\thttps://a.example/\ta.example/00000-index\n" * 2


@pytest.mark.needs_quic_server
@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGKILL, "was ended by signal 9 (Killed)"), (signal.SIGTERM, "ended with status 0")]
)
def test_a_process_that_ends_is_named_and_ends_all(
    number: signal.Signals, how: str, many: dict[str, str | Path]
) -> None:
    with start(many) as server:
        endpoints_of(server)
        os.kill(processes_of(server)[ADDRESSES // 2], number)
        assert server.stdout is not None and server.stderr is not None
        # Read to the end: no process has the pipes open any more.
        assert server.stdout.read() == ""
        assert server.stderr.read() == f"quic_server: the server of 127.0.0.{ADDRESSES // 2 + 1}:0 {how}\n"
        assert server.wait() == 1


@pytest.mark.needs_quic_server
def test_a_process_that_ends_is_noticed_where_the_caller_ignores_that_children_end(
    many: dict[str, str | Path],
) -> None:
    with start(many, "env", "--ignore-signal=CHLD") as server:
        try:
            endpoints_of(server)
            os.kill(processes_of(server)[0], signal.SIGKILL)
            assert server.wait(timeout=ANSWER_TIMEOUT_S) == 1
        finally:
            server.kill()


@pytest.mark.needs_quic_server
def test_all_processes_end_when_the_first_is_killed(many: dict[str, str | Path]) -> None:
    with start(many) as server:
        endpoints_of(server)
        server.kill()
        assert server.stdout is not None
        assert server.stdout.read() == ""


@pytest.mark.needs_quic_server
def test_processes_share_the_responses(many: dict[str, str | Path], tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    folder = stored(tmp_path / "big", exchange("GET", "https://a.example/", ok(BIG)))
    with start(many | {"--responses": folder}) as server:
        try:
            endpoints_of(server)
            of_one = [psutil.Process(process).memory_full_info().uss for process in processes_of(server)]
        finally:
            server.terminate()
    assert max(of_one) < len(BIG) / 2


# The order of service.

BODY_BYTES = 64_000  # four turns of the server
# The paths in the order of the requests. The first response may take a whole window before the other requests are read.
PRIORITIES = {"/first": "u=7", "/a": "u=3", "/b": "u=3", "/c": "u=5, i", "/d": "u=5, i", "/urgent": "u=1"}


@contextmanager
def listening(arguments: dict[str, str | Path]) -> Iterator[int]:
    """A quic_server; yields its port."""
    with start(arguments) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline().split(":")[1])
        finally:
            server.terminate()


@pytest.mark.needs_quic_server
@pytest.mark.parametrize(
    ("scheduler", "order", "in_force"),
    [
        ("urgency", ["/urgent", "/a /b", "/c /d", "/first"], {**PRIORITIES}),
        ("urgency-incremental", ["/urgent", "/a", "/b", "/c /d", "/first"], {**PRIORITIES}),
        (
            "urgency-first-come",
            ["/urgent", "/a", "/b", "/c", "/d", "/first"],
            {**PRIORITIES, "/c": "u=5", "/d": "u=5"},
        ),
        ("fair", ["/first /a /b /c /d /urgent"], {**dict.fromkeys(PRIORITIES, "u=3"), "/c": "u=3, i", "/d": "u=3, i"}),
        ("first-come", [*PRIORITIES], dict.fromkeys(PRIORITIES, "u=3")),
    ],
)
def test_a_scheduler_sends_in_its_order(
    scheduler: str, order: list[str], in_force: dict[str, str], arguments: dict[str, str | Path], tmp_path: Path
) -> None:
    """`order`: which bodies are complete before others; those that take turns are grouped."""
    bodies = [exchange("GET", f"https://a.example{path}", ok(bytes(BODY_BYTES))) for path in PRIORITIES]
    (tmp_path / "bodies").mkdir()
    (tmp_path / "qlog").mkdir()
    # A server that was late sends a whole window without a turn; a body is larger than a window of 27 kB.
    options: dict[str, str | Path] = {"--scheduler": scheduler, "--emulated-connections": "1", "--max-window": "20"}
    options |= {"--responses": stored(tmp_path / "bodies", *bodies), "--qlog": tmp_path / "qlog"}
    with listening(arguments | options) as port:
        arrivals = arrivals_of(port, "a.example", [*PRIORITIES.items()])

    def arrived(path: str, until: str) -> int:
        """The bytes of a body that had arrived when another one ended."""
        end = max(number for number, (name, _) in enumerate(arrivals) if name == until)
        return sum(length for name, length in arrivals[: end + 1] if name == path)

    groups = [group.split() for group in order]
    for number, group in enumerate(groups):
        later = list(itertools.chain(*groups[number + 1 :]))
        for path in group:
            assert all(arrived(other, path) < BODY_BYTES for other in later), arrivals
            # When the body of `path` ends, a later body has received at most the end of a burst. A body that takes
            # turns with it has had a turn, or a few on a busy machine.
            assert all(arrived(other, path) < BODY_BYTES / 5 for other in later if other != "/first"), arrivals
            beside = [other for other in group if "/first" not in (other, path)]
            assert all(arrived(other, path) >= BODY_BYTES / 5 for other in beside), arrivals

    (log,) = [read_qlog(path) for path in (tmp_path / "qlog").iterdir()]
    assert (log.parameters["scheduler"], log.parameters["emulated_connections"]) == (scheduler, 1)
    priorities = {event.data["stream_id"]: event.data for event in log.named(PRIORITY)}
    assert [data["new"] for data in priorities.values()] == [*PRIORITIES.values()]
    assert [data["in_force"] for data in priorities.values()] == [*in_force.values()]


# Chromium over HTTP/3.

SENT, RECEIVED, LOST = "transport:packet_sent", "transport:packet_received", "recovery:packet_lost"


@contextmanager
def namespace() -> Iterator[list[str]]:
    """A network namespace that has only loopback, so that nothing can leave; yields the start of a command line that
    runs in it."""
    privilege = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    enter = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    keeper = ["unshare", *privilege, "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
    with subprocess.Popen(keeper, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield ["nsenter", f"--target={process.pid}", *enter, "--net", "--"]


@contextmanager
def serving(
    run: list[str], folder: Path, certificate: Certificate, log: Path, qlog: Path | None = None
) -> Iterator[None]:
    """Run quic_server on 127.0.0.1:443 of a namespace."""
    endpoints = endpoints_file(folder.parent, ["127.0.0.1", "443", certificate.chain, certificate.key])
    arguments: dict[str, str | Path] = {"--endpoints": endpoints, "--responses": folder, "--request-log": log}
    arguments |= {"--qlog": qlog} if qlog else {}
    with subprocess.Popen([*run, *command_of(arguments)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"listening on 127.0.0.1:443\n"
        try:
            yield
        finally:
            server.terminate()
    assert server.returncode == 0


class Browser:
    """A page of a headless Chromium, controlled over the DevTools protocol."""

    def __init__(self, to_browser: IO[bytes], from_browser: IO[bytes]) -> None:
        self._to = to_browser
        self._from = from_browser
        self._received = b""
        self._calls = 0
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command; events that arrive before it are kept in `events`."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters} | self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._calls:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def load(self, url: str) -> None:
        """Navigate, and wait for the load event."""
        navigated = self.call("Page.navigate", url=url)
        assert "errorText" not in navigated, navigated
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            readable, _, _ = select.select([self._from], [], [], ANSWER_TIMEOUT_S)
            assert readable, f"the browser has said nothing for {ANSWER_TIMEOUT_S} s"
            chunk = self._from.read(65536)
            assert chunk, "the browser has ended"
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def browsing(run: list[str], profile: Path, certificate: Certificate) -> Iterator[Browser]:
    """Run a headless Chromium in a namespace; it requests every host from 127.0.0.1, only over QUIC."""
    binary = Path("/usr/lib/chromium/chromium")  # Debian's wrapper in /usr/bin adds flags
    flags = [
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        f"--{WITHOUT_SUGGESTIONS}",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * 127.0.0.1",
        "--origin-to-force-quic-on=*",
        f"--ignore-certificate-errors-spki-list={certificate.spki_sha256}",
    ]
    commands, to_browser = os.pipe()
    from_browser, answers = os.pipe()
    # All its processes end with the first one, however that ends. It reads commands from descriptor 3, and answers on
    # 4.
    contained = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    renumbered = ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash"]
    program = [
        *run,
        *contained,
        *AS_ORDINARY_USER,
        *renumbered,
        str(binary if binary.exists() else tool("chromium")),
        *flags,
    ]
    with (
        # Chromium keeps a Unix socket there, so its path must be short.
        TemporaryDirectory() as temporary,
        os.fdopen(to_browser, "wb", buffering=0) as to,
        os.fdopen(from_browser, "rb", buffering=0) as back,
        subprocess.Popen(
            program,
            pass_fds=(commands, answers),
            env=os.environ | dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), temporary),
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        os.close(commands)
        os.close(answers)
        try:
            browser = Browser(to, back)
            yield browser
            browser.call("Browser.close")
            process.wait(timeout=ANSWER_TIMEOUT_S)
        finally:
            process.kill()


@pytest.mark.needs_quic_server
@pytest.mark.needs_browser
def test_chromium_loads_a_site_over_http3(tmp_path: Path, certificate: Certificate) -> None:
    html = ("Content-Type", "text/html")
    cors = ("Access-Control-Allow-Origin", "https://www.example")
    folder = stored(
        tmp_path,
        exchange("GET", "https://www.example/", ok(b"<!doctype html><title>home</title>", html)),
        exchange("GET", "https://www.example/big?n=1,2", ok(BIG, ("Content-Type", "application/octet-stream"))),
        exchange("GET", "https://www.example/from", ok(b"", ("Location", "/to?a=1"), status=302)),
        exchange("GET", "https://www.example/to?a=1", ok(b"arrived")),
        exchange("GET", "https://www.example/empty", ok(status=204)),
        exchange("GET", "https://www.example/part", ok(b"part", ("Content-Range", "bytes 0-3/9"), status=206)),
        exchange("POST", "https://www.example/form", ok(b"posted", status=201)),
        exchange("PUT", "https://api.example/x", ok(b"put", cors, ("Access-Control-Allow-Credentials", "true"))),
        exchange("GET", "https://www.example/poll", ok(b"first", ("Cache-Control", "no-store"))),
        exchange("GET", "https://www.example/poll", ok(b"second", ("Cache-Control", "no-store"))),
        # A response whose headers exceed a first flight, so that the body must wait for them.
        exchange("GET", "https://www.example/headers", ok(b"body", ("X-Long", "x" * 60_000))),
    )
    log = tmp_path / "requests.log"
    with (
        namespace() as run,
        serving(run, folder, certificate, log),
        browsing(run, tmp_path / "profile", certificate) as browser,
    ):
        browser.load("https://www.example/")
        assert browser.evaluate("document.title") == "home"
        assert browser.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h3"

        long_headers = "fetch('/headers').then(r => r.text().then(t => [r.headers.get('x-long').length, t]))"
        assert browser.evaluate(long_headers) == [60_000, "body"]

        digest = """fetch("/big?n=1,2").then(r => r.arrayBuffer()).then(b => crypto.subtle.digest("SHA-256", b))
                    .then(d => Array.from(new Uint8Array(d), x => x.toString(16).padStart(2, "0")).join(""))"""
        assert browser.evaluate(digest) == hashlib.sha256(BIG).hexdigest()

        def fetched(url: str, options: str = "{}") -> Any:
            text = "r.text().then(t => [r.status, new URL(r.url).pathname, t])"
            return browser.evaluate(f"fetch({json.dumps(url)}, {options}).then(r => {text})")

        assert fetched("/from") == [200, "/to", "arrived"]
        assert fetched("/empty") == [204, "/empty", ""]
        assert fetched("/part") == [206, "/part", "part"]
        assert fetched("/form", "{method: 'POST', body: 'x'.repeat(300000)}") == [201, "/form", "posted"]
        assert fetched("/big?n=1,2", "{method: 'HEAD'}") == [200, "/big", ""]
        assert fetched("https://api.example/x", "{method: 'PUT', credentials: 'include'}") == [200, "/x", "put"]
        assert [fetched("/poll")[2] for _ in range(3)] == ["first", "second", "second"]
        assert fetched("/to?a=1&nonce=7") == [200, "/to", "arrived"]
        assert fetched("/never") == [404, "/never", ""]

        # The timing of another origin is hidden, so its protocol is read from the network log below.
        timings = "performance.getEntriesByType('resource').filter(e => e.name.startsWith(location.origin))"
        assert set(browser.evaluate(f"{timings}.map(e => e.nextHopProtocol)")) == {"h3"}
        responses = [
            event["params"]["response"] for event in browser.events if event["method"] == "Network.responseReceived"
        ]
        assert {response["protocol"] for response in responses} == {"h3"}
        groups = {
            response["securityDetails"]["keyExchangeGroup"] for response in responses if "securityDetails" in response
        }
        assert groups == {"X25519"}

    log_lines = [line.split("\t") for line in log.read_text().splitlines()]
    kinds = {(method, url): kind for kind, method, url, _ in log_lines}
    assert kinds["HEAD", "https://www.example/big?n=1,2"] == "head"
    assert kinds["OPTIONS", "https://api.example/x"] == "preflight"
    assert kinds["GET", "https://www.example/to?a=1&nonce=7"] == "prefix"
    assert kinds["GET", "https://www.example/never"] == "miss"
    assert ["exact", "GET", "https://www.example/", "www.example/00000-index"] in log_lines


@pytest.mark.timing
@pytest.mark.needs_quic_server
@pytest.mark.needs_browser
def test_a_qlog_tells_all_of_a_connection_that_qvis_reads(tmp_path: Path, certificate: Certificate) -> None:
    folder = stored(
        tmp_path,
        exchange(
            "GET", "https://www.example/", ok(b"<!doctype html><title>home</title>", ("Content-Type", "text/html"))
        ),
        exchange("GET", "https://www.example/big", ok(BIG, ("Content-Type", "application/octet-stream"))),
    )
    (tmp_path / "qlog").mkdir()
    with (
        namespace() as run,
        browsing(run, tmp_path / "profile", certificate) as browser,
        # SIGTERM ends it while the browser is connected.
        serving(run, folder, certificate, tmp_path / "requests.log", tmp_path / "qlog"),
    ):
        browser.load("https://www.example/")
        assert browser.evaluate("fetch('/big').then(r => r.arrayBuffer()).then(b => b.byteLength)") == len(BIG)

    # There is a complete file for each connection.
    logs = [read_qlog(path) for path in (tmp_path / "qlog").glob("quic-127.0.0.1-*.sqlog")]
    log = max(logs, key=lambda log: len(log.events))
    assert (log.events[-1].name, log.events[-1].data["owner"]) == ("connectivity:connection_closed", "local")
    assert log.parameters["congestion_control"] == "cubic"
    assert log.parameters["initial_congestion_window"] == 32 * 1460
    assert log.parameters["pacing"] is True
    assert (log.parameters["emulated_connections"], log.parameters["scheduler"]) == (2, "urgency")
    assert log.parameters["connection_options"] == ["ORIG"]  # the browser's own

    # The data that qvis draws: packets by number and length, acknowledged ranges, losses, windows.
    sent = {event.data["header"]["packet_number"]: event.data["raw"]["length"] for event in log.named(SENT)}
    acked = {
        number
        for event in log.named(RECEIVED)
        for frame in event.data["frames"]
        for first, last in frame["acked_ranges"]
        for number in range(first, last + 1)
    }
    assert acked
    assert acked <= set(sent)
    metrics: dict[str, list[float]] = defaultdict(list)
    for event in log.named(METRICS):
        for name, value in event.data.items():
            metrics[name].append(value)
    assert all(0 < rtt < 1000 for rtt in metrics["smoothed_rtt"])
    assert min(metrics["latest_rtt"]) == pytest.approx(metrics["min_rtt"][-1], abs=0.002)
    assert max(metrics["congestion_window"]) > 32 * 1460
    assert max(metrics["bytes_in_flight"]) <= max(metrics["congestion_window"]) + 1500
    delivered = metrics["bytes_delivered"][-1]
    assert len(BIG) < delivered < 1.05 * len(BIG)
    lost = [event.data["header"]["packet_number"] for event in log.named(LOST)]
    assert sum(sent.values()) - sum(sent[number] for number in lost) == pytest.approx(delivered, rel=0.02)
    assert len(lost) == max(metrics["packets_lost"], default=0)
    states = [event.data["new"] for event in log.named(STATE)]
    assert states[0] == "slow_start"
    # On a busy machine the last acknowledgement may be late.
    assert states[-1] in ("application_limited", "pto")
    assert [event.data.get("old") for event in log.named(STATE)] == [None, *states[:-1]]


@pytest.mark.needs_quic_server
def test_a_folder_for_qlogs_that_cannot_be_written_to_is_named(arguments: dict[str, str | Path]) -> None:
    status, error = fails(arguments | {"--qlog": "/nowhere"})
    assert status == 1
    assert "cannot write qlogs to /nowhere: No such file or directory" in error


# Fetching the source.


def test_versions_we_build_with_come_first_then_those_nearest_to_the_browser() -> None:
    browser = (156, 0, 8078, 79)
    versions = ["150.0.7871.100", "157.0.9000.1", "156.0.8078.41", "150.0.7871.181", "156.0.8078.79", "120.0.1.1"]
    by_nearness = sorted(versions, key=lambda version: fetch.distance(fetch.upstream(version), browser))
    assert by_nearness[:2] == ["150.0.7871.181", "150.0.7871.100"]
    assert by_nearness[2:] == ["156.0.8078.79", "156.0.8078.41", "157.0.9000.1", "120.0.1.1"]
    newest = sorted(versions, key=lambda version: fetch.distance(fetch.upstream(version), None))
    assert newest[:3] == ["150.0.7871.181", "150.0.7871.100", "157.0.9000.1"]


def test_versions_already_removed_are_passed_over_and_named_when_nothing_is_left(tmp_path: Path) -> None:
    wanted = ["156.0.8078.79-1~deb12u1", "150.0.7871.181-1~deb12u1"]
    available = {wanted[1]}

    def download(version: str, folder: Path) -> str | None:
        if version not in available:
            return "404 Not Found"
        (folder / f"chromium_{fetch.upstream_text(version)}.orig.tar.xz").touch()
        return None

    assert fetch.download_nearest(download, wanted, tmp_path).name == "chromium_150.0.7871.181.orig.tar.xz"
    available.clear()
    with pytest.raises(EyelevelError, match=r"156\S+ \(404 Not Found\), 150\S+ \(404 Not Found\)"):
        fetch.download_nearest(download, wanted, tmp_path)


def test_only_the_needed_parts_are_unpacked(tmp_path: Path) -> None:
    tree = tmp_path / "chromium-1.2.3.4"
    for path in (*fetch.PARTS[:2], *(f"{part}/file" for part in fetch.PARTS[2:]), "chrome/other", "x/chrome/VERSION"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(path)
    archive = tmp_path / "chromium_1.2.3.4.orig.tar.xz"
    subprocess.run(["tar", "-cJf", archive, "-C", tmp_path, tree.name], check=True)
    fetch.unpack(archive, tmp_path / "unpacked")
    unpacked = {str(path.relative_to(tmp_path / "unpacked")) for path in (tmp_path / "unpacked").rglob("*")}
    assert {path for path in unpacked if (tmp_path / "unpacked" / path).is_file()} == {
        *fetch.PARTS[:2],
        *(f"{part}/file" for part in fetch.PARTS[2:]),
    }
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(EyelevelError, match="could not be unpacked"):
        fetch.unpack(archive, tmp_path / "unpacked")


def test_source_lists_are_derived_from_both_kinds_of_lists() -> None:
    one_line = """# deb file:/commented stable main
deb [arch=amd64 signed-by=/k.gpg] file:/one stable main  # why
deb-src [arch=amd64 signed-by=/k.gpg] file:/one stable main
"""
    deb822 = """Types: deb
# a comment
URIs: file:/two
Suites: stable stable-updates
Components: main
Architectures: amd64
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: file:/three
Suites: stable
"""
    assert dict(fetch.source_lists([("a.list", one_line), ("b.sources", deb822), ("c.list", "# none\n")])) == {
        "a.list": "deb-src [arch=amd64 signed-by=/k.gpg] file:/one stable main\n",
        "b.sources": """Types: deb-src
URIs: file:/two
Suites: stable stable-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
""",
    }
