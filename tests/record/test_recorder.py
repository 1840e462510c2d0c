"""Recording: what servers sent is stored and replayed, nothing private is kept, and nothing is left half-finished."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from clients.origin import HOSTS, NOWHERE, SECRETS
from clients.origin import STATIC as STATIC_IP
from hypothesis import given
from hypothesis import strategies as st
from support.leaks import processes_marked
from support.processes import PATIENCE_S

from base.errors import EyelevelError
from base.namespaces import has_capabilities, namespaced
from base.places import PROJECT, tool
from base.structure import from_json, to_json
from record.connections import Connection
from record.http1 import Headers, Response, parse_response
from record.layout import ORIGINAL_WAIT_MS, without_originals
from record.privacy import without_cookie_values
from record.recorder.addresses import AddressPolicy
from record.recorder.browser_options import is_background_request
from record.recorder.proxy_output import ProxyOutput, read_connections, read_exchanges
from record.recorder.proxy_settings import ProxySettings
from record.recorder.spec import RecordSpec
from record.recorder.targets import Target, read_targets
from record.recorder.traffic import Traffic
from record.round_trips import extra_rtts_ms, rtts_of
from record.site import Exchange, Recording, Site, write_site
from replay import ReplaySpec, run
from servers.certificates import machine_ca_certificate
from tuning import protocols
from tuning.networks import Network

CLIENTS = PROJECT / "tests" / "clients"
FAST = Network("fast", up_mbps=1000, down_mbps=1000, min_rtt_ms=0, loss=0, queue_ms=100)

# One server is farther away than the others.
RTT_MS, FAR_RTT_MS = 200.0, 600.0
SHELL = [str(tool("mm-net")), f"--delay={RTT_MS / 2}", f"--server-delay={STATIC_IP}={(FAR_RTT_MS - RTT_MS) / 2}", "--"]

# The requests of origin.py's page, and the status of each answer.
WWW, STATIC, API = "https://www.origin.example", "https://static.origin.example", "https://api.other.example"
EXPECTED = {
    ("GET", "https://origin.example/", 302),
    ("GET", f"{WWW}/", 200),
    ("GET", f"{STATIC}/style.css", 200),
    ("GET", f"{STATIC}/code.js", 200),
    ("GET", f"{WWW}/photo.png", 200),
    ("GET", f"{WWW}/far-down.png", 200),
    ("GET", f"{WWW}/favicon.ico", 404),
    ("GET", f"{WWW}/clip.bin", 206),
    ("GET", f"{WWW}/photo.png?again", 304),
    ("GET", f"{WWW}/missing", 404),
    ("GET", f"{WWW}/nothing", 204),
    ("POST", f"{API}/simple", 200),
    ("OPTIONS", f"{API}/preflighted", 204),
    ("PUT", f"{API}/preflighted", 201),
    ("GET", f"{STATIC}/stream.txt", 200),
    # The page reports in this way that the stream arrived as sent, and the size of its window.
    ("GET", f"{WWW}/streamed?slowly", 204),
    ("GET", f"{WWW}/1366x768", 204),
}


@dataclass(frozen=True)
class Recorded:
    """A recorded site, the recorder's messages, NGINX's log, and its servers' answers without the proxy."""

    site: Site
    status: int
    messages: str
    access_log: str
    answers: list[dict[str, Any]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A page of origin.py, recorded between two pages that cannot be recorded."""
    folder = tmp_path_factory.mktemp("origin")
    urls = ["https://nowhere.example/", "http://origin.example/", "https://static.origin.example/missing"]
    options = ["--origin-ca", str(machine_ca_certificate()), "--into", str(folder / "sites")]
    command = [*map(str, namespaced("net", "mount")), sys.executable]
    command += [str(CLIENTS / "origin.py"), str(folder), *SHELL, sys.executable, "-m", "eyelevel", "record", *urls]
    command += options
    completed = subprocess.run(command, env=environment(), cwd=PROJECT, capture_output=True, text=True, check=False)
    messages = completed.stdout + completed.stderr
    assert (folder / "answers.json").exists(), messages
    answers = json.loads((folder / "answers.json").read_text())
    assert set(answers) == {"origin.example"}, messages
    access_log = (folder / "access.log").read_text()
    site = Site.load(folder / "sites" / "origin.example")
    return Recorded(site, completed.returncode, messages, access_log, answers["origin.example"])


@pytest.mark.needs_namespaces
def test_a_page_is_recorded_to_its_end_with_all_that_it_asks_for_and_nothing_else(recorded: Recorded) -> None:
    assert {(e.method, e.url, e.status) for e in recorded.site.exchanges} == EXPECTED
    assert len(recorded.site.exchanges) == len(EXPECTED)
    assert recorded.site.url == "https://origin.example/"
    assert recorded.site.viewport == (1366, 768)
    assert "Chrome/" in str(recorded.site.user_agent)


@pytest.mark.needs_namespaces
def test_what_is_stored_is_what_the_servers_send(recorded: Recorded) -> None:
    encodings = set()
    for exchange, sent in zip(recorded.site.exchanges, recorded.answers, strict=True):
        stored = parse_response((recorded.site.folder / exchange.file).read_bytes())
        expected = as_stored(sent, exchange.method)
        assert (stored.status, stored.body) == (expected.status, expected.body), exchange.url
        assert comparable(stored.headers) == comparable(expected.headers), exchange.url
        encodings.add(stored.header("content-encoding"))
    assert encodings == {None, "gzip", "br"}
    # The answers used both versions of HTTP, and every framing.
    assert "GET /photo.png HTTP/2.0" in recorded.access_log and "GET /code.js HTTP/1.1" in recorded.access_log
    assert any(["Transfer-Encoding", "chunked"] in answer["headers"] for answer in recorded.answers)


@pytest.mark.needs_namespaces
def test_servers_are_asked_for_encodings_that_can_be_decoded(recorded: Recorded) -> None:
    assert '"gzip, deflate, br"' in recorded.access_log
    assert "zstd" not in recorded.access_log


@pytest.mark.needs_namespaces
def test_servers_and_times_are_kept(recorded: Recorded) -> None:
    site = recorded.site
    for exchange in site.exchanges:
        assert site.recorded_ips[exchange.server] == HOSTS[str(urlsplit(exchange.url).hostname)]
        assert exchange.ttfb_ms is not None and exchange.ttfb_ms >= 0
    started_ms = [exchange.started_ms or 0 for exchange in site.exchanges]
    assert started_ms == sorted(started_ms) and started_ms[-1] > 0


@pytest.mark.needs_namespaces
def test_connections_are_kept_as_they_were(recorded: Recorded) -> None:
    site = recorded.site
    assert {(connection.host, connection.alpn) for connection in site.connections} == {
        ("origin.example", None),  # over plain http, which redirected the browser
        ("origin.example", "h2"),
        ("www.origin.example", "h2"),
        ("api.other.example", "h2"),
        ("static.origin.example", "http/1.1"),
    }
    for connection in site.connections:
        ip = site.recorded_ips[connection.server]
        least_ms = FAR_RTT_MS if ip == STATIC_IP else RTT_MS
        assert connection.handshake_ms is not None
        # The emulator is never early. The machine may be late, but hardly by another round trip.
        assert least_ms - 0.01 <= connection.handshake_ms < least_ms + RTT_MS
        if connection.tls_ms is not None:
            assert least_ms <= connection.tls_ms
            (size,) = connection.certificates
            assert 300 < size < 1500
            assert connection.host in connection.names
    rtts_ms = {site.recorded_ips[address]: extra_ms for address, extra_ms in extra_rtts_ms(site).items()}
    assert rtts_ms.pop(STATIC_IP) == pytest.approx(FAR_RTT_MS - RTT_MS, abs=RTT_MS / 2)
    assert list(rtts_ms.values()) == pytest.approx([0] * len(rtts_ms), abs=RTT_MS / 2)


@pytest.mark.needs_namespaces
def test_servers_that_take_their_time_take_it_without_the_way(recorded: Recorded) -> None:
    site = recorded.site
    rtts = rtts_of(site)
    for exchange in site.exchanges:
        stored = parse_response((site.folder / exchange.file).read_bytes())
        think_ms = float(stored.header(ORIGINAL_WAIT_MS.lower()) or "nan")
        assert exchange.ttfb_ms is not None
        assert think_ms == pytest.approx(max(0, exchange.ttfb_ms - rtts[exchange.server].rtt_ms), rel=1e-4, abs=1e-3)


@pytest.mark.needs_namespaces
def test_what_could_not_be_recorded_is_named(recorded: Recorded) -> None:
    reasons = dict(reason.split(": ", 1) for reason in recorded.site.skipped)
    assert NOWHERE in reasons.pop("GET https://nowhere.example/")
    assert "WebSocket" in reasons.pop("GET https://socket.other.example/talk")
    assert "complete message body" in reasons.pop("GET https://socket.other.example/cut")
    assert "https form" in reasons.pop("GET http://origin.example/")
    assert not reasons
    assert recorded.status == 1
    assert "nowhere.example was not recorded: https://nowhere.example/ could not be loaded" in recorded.messages
    assert "static.origin.example was not recorded" in recorded.messages and "status 404" in recorded.messages
    assert "not recorded: nowhere.example, static.origin.example;" in recorded.messages


@pytest.mark.needs_namespaces
def test_nothing_private_is_stored(recorded: Recorded) -> None:
    files = [path.read_bytes() for path in recorded.site.folder.rglob("*") if path.is_file()]
    assert any(b"set-cookie: session=xxx" in content.lower() for content in files)
    for secret in SECRETS:
        assert not [content for content in files if secret.encode() in content]


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(("protocol", "version"), [("tcp", "h2"), ("quic", "h3")])
def test_the_replay_sends_what_was_recorded(recorded: Recorded, protocol: str, version: str, tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.json", tmp_path / "answers.json"
    requests.write_text(json.dumps([{"method": e.method, "url": e.url} for e in recorded.site.exchanges]))
    spec = ReplaySpec(recorded.site.folder, FAST, protocols.load()[protocol])
    with answers.open("wb") as file:
        assert run(spec, [sys.executable, CLIENTS / "fetch.py", version, requests], stdout=file.fileno()).status == 0
    for exchange, sent, replayed in zip(
        recorded.site.exchanges, recorded.answers, json.loads(answers.read_text()), strict=True
    ):
        expected = as_stored(sent, exchange.method)
        assert (replayed["status"], replayed["sha256"]) == (expected.status, sha256(expected.body)), exchange.url
        replayed_headers = tuple((name, value) for name, value in replayed["headers"])
        assert sorted(comparable(replayed_headers)) == sorted(comparable(expected.headers)), exchange.url


@pytest.mark.needs_namespaces
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_recording_that_is_ended_leaves_the_old_site_and_nothing_else(how: signal.Signals, tmp_path: Path) -> None:
    url = "https://silent.example/"
    old = Exchange("GET", url, Response(200, "OK", (("Content-Type", "text/html"),), b"<p>old"), "192.0.2.1")
    write_site(Recording(url, (old,), {"tool": "test"}), tmp_path / "127.0.0.1")
    mark = f"EYELEVEL_TEST_RECORDER={uuid.uuid4().hex}"
    own_user = [] if has_capabilities() else ["--user", "--map-current-user", "--keep-caps"]
    command = ["unshare", *own_user, "--net", sys.executable, str(CLIENTS / "silent.py"), str(tmp_path), mark]
    with subprocess.Popen(
        command,
        env=environment(),
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin and process.stdout
        # The line is printed when the request has arrived, and the browser waits for an answer.
        recorder = process.stdout.readline()
        assert recorder, "the recorder ended by itself"
        os.kill(int(recorder), how)
        leftovers = processes_marked(mark, timeout_s=PATIENCE_S)
        process.stdin.close()
    assert leftovers == []
    assert [path.name for path in tmp_path.iterdir()] == ["127.0.0.1"]
    assert Site.load(tmp_path / "127.0.0.1").url == url


attributes = st.sampled_from(["", "; Path=/; HttpOnly", ";Max-Age=0;secure", "; Expires=Thu, 01 Jan 2026 00:00:00 GMT"])
tokens = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters=";="), min_size=1)
values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters=";")).map(str.strip)


@given(tokens, values, attributes)
def test_a_cookie_keeps_its_name_its_attributes_and_its_length_but_not_its_value(
    name: str, value: str, rest: str
) -> None:
    ((field, stood_in),) = without_cookie_values((("Set-Cookie", f"{name}={value}{rest}"),))
    assert field == "Set-Cookie"
    assert stood_in.startswith(f"{name}=") and stood_in.endswith(rest)
    hidden = stood_in[len(name) + 1 : len(stood_in) - len(rest)]
    assert hidden == "x" * len(value)
    assert without_cookie_values(((field, stood_in),)) == ((field, stood_in),)


@given(tokens, attributes)
def test_a_cookie_without_a_name_is_all_value(value: str, rest: str) -> None:
    ((_, stood_in),) = without_cookie_values((("set-cookie", value + rest),))
    assert stood_in.endswith(rest) and len(stood_in) == len(value + rest)
    assert stood_in[: len(value)] == "x" * len(value)


def test_other_fields_are_left_as_they_are() -> None:
    headers = (("Content-Type", "text/html"), ("set-cookie2", "a=b"), ("X", "a=b; c"))
    assert without_cookie_values(headers) == headers


def test_a_capture_gives_back_what_was_kept_and_nothing_half_written(tmp_path: Path) -> None:
    events, events_end = os.pipe()
    writer = ProxyOutput(tmp_path, events_end, keep_cookies=True)
    body = b"\r\n\x00\xff\n" * 100
    headers = (("Set-Cookie", "a=secret"), ("X", "\xe9"))
    request_headers = (("Referer", "https://a.example/"), ("Cookie", "a=secret"), ("Authorization", "secret"))
    exchange = Exchange(
        "GET", "https://a.example/b", Response(200, "", headers, body), "::1", 5e12, 3.5, request_headers
    )
    writer.store(1, exchange)
    (tmp_path / ".000000.exchange.half").write_bytes(b'{"method": "GE')
    (stored,) = read_exchanges(tmp_path)
    assert stored.response == exchange.response and (stored.url, stored.recorded_ip) == (exchange.url, "::1")
    assert (stored.started_ms, stored.ttfb_ms, stored.request_headers) == (5e12, 3.5, request_headers[:1])
    for descriptor in (events, events_end):
        os.close(descriptor)


def test_what_the_proxy_stored_is_read_from_the_file_that_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compromised proxy may replace a file by a link at any moment."""
    folder, secret = tmp_path / "exchanges", tmp_path / "secret"
    folder.mkdir()
    events, events_end = os.pipe()
    exchange = Exchange("GET", "https://a.example/", Response(200, "", (), b"recorded"), "192.0.2.1")
    output = ProxyOutput(folder, events_end, keep_cookies=True)
    output.store(1, exchange)
    output.connected(1, Connection("192.0.2.1", "recorded"))
    is_file = Path.is_file

    def look(path: Path) -> bool:
        answer = is_file(path)
        if path.parent == folder:
            secret.write_bytes(path.read_bytes().replace(b"recorded", b"secret"))
            path.unlink()
            path.symlink_to(secret)
        return answer

    monkeypatch.setattr(Path, "is_file", look)
    assert [stored.response.body for stored in read_exchanges(folder)] == [b"recorded"]
    assert [connection.host for connection in read_connections(folder)] == ["recorded"]
    for descriptor in (events, events_end):
        os.close(descriptor)


WITHOUT_PACKAGES = f"""
import sys, unittest.mock
sys.path.insert(0, {str(PROJECT)!r})
for name in ("mitmproxy", "mitmproxy.proxy.mode_servers", "mitmproxy.proxy.server_hooks", "mitmproxy.tools.main"):
    sys.modules[name] = unittest.mock.MagicMock()
import record.recorder.addon, record.recorder.mitmdump
"""


def test_the_proxy_s_side_needs_no_package_but_mitmproxy(tmp_path: Path) -> None:
    # -S ignores the installed packages.
    command = [sys.executable, "-I", "-S", "-B", "-c", WITHOUT_PACKAGES]
    settings = ProxySettings(tmp_path, 1, 0, AddressPolicy.PUBLIC, keep_cookies=False)
    completed = subprocess.run(command, env=settings.environment(), capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr


def test_the_network_is_quiet_only_when_nothing_is_under_way(tmp_path: Path) -> None:
    events, events_end = os.pipe()
    writer = ProxyOutput(tmp_path, events_end, keep_cookies=False)
    traffic = Traffic(os.fdopen(events, "rb"))
    # Events are read in order: when the port is known, the request has been read, too.
    writer.requested(0, "GET", "https://a.example/")
    writer.listening(8080, "mitmproxy 0")
    assert (traffic.port(5), traffic.proxy) == (8080, "mitmproxy 0")
    traffic.await_quiet(0.0, 0.1)
    assert traffic.failures() == (("GET https://a.example/", "had not ended when the recording did"),)
    writer.failed(0, "it broke")
    traffic.await_quiet(0.1, 60)
    assert traffic.failures() == (("GET https://a.example/", "it broke"),)
    os.close(events_end)


@pytest.mark.parametrize(
    ("host", "fetch_site", "fetch_mode", "background"),
    [
        ("www.a.example", "none", "navigate", False),
        ("www.a.example", "cross-site", "no-cors", False),
        ("www.a.example", None, None, False),  # over plain http
        ("update.a.example", "none", "no-cors", True),
        ("browser.invalid", None, None, True),
    ],
)
def test_requests_of_the_browser_itself_are_distinguished_from_those_of_pages(
    host: str, fetch_site: str | None, fetch_mode: str | None, background: bool
) -> None:
    assert is_background_request(host, fetch_site, fetch_mode) is background


@pytest.mark.parametrize(
    "spec",
    [
        RecordSpec("https://a.example/", Path("/sites/a")),
        RecordSpec(
            "https://a.example/",
            Path("/sites/a"),
            True,
            True,
            Path("/ca.pem"),
            ("https://a.example/b",),
            AddressPolicy.ALL,
        ),
    ],
)
def test_a_recording_s_description_survives_the_way_into_the_namespaces(spec: RecordSpec) -> None:
    assert from_json(to_json(spec), RecordSpec, "x") == spec


def test_targets_are_read_from_urls_and_files(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text(
        "# three\nhttps://www.a.example/x#y\n\nbee http://b.example/  # the second\nhttps://c.example:8443/\n"
    )
    assert read_targets([str(file), "https://d.example/"]) == [
        Target("a.example", "https://www.a.example/x#y"),
        Target("bee", "http://b.example/"),
        Target("c.example", "https://c.example:8443/"),
        Target("d.example", "https://d.example/"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("https://a.example/\nwww.b.example\n", "line 2"),
        ("../up https://a.example/\n", "not a name for a site"),
        ("a b https://a.example/\n", "neither a URL nor a name and a URL"),
        ("https://a.example/\nhttps://www.a.example/\n", "the name a.example"),
    ],
)
def test_targets_that_cannot_be_meant_are_refused(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text(text)
    with pytest.raises(EyelevelError, match=complaint):
        read_targets([str(file)])


def test_a_source_that_is_nothing_is_an_error() -> None:
    with pytest.raises(EyelevelError, match="neither a URL"):
        read_targets(["/no/such/file"])


def test_sites_txt_lists_as_many_sites_as_the_paper_and_those_it_names() -> None:
    names = {target.name for target in read_targets([str(PROJECT / "sites.txt")])}
    assert len(names) == 38
    assert {"wikipedia.org", "gnu.org", "nytimes.com", "github.com"} <= names


def environment(**more: str) -> dict[str, str]:
    """Our environment, with the project in Python's path and the system's programs."""
    return {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": f"{tool('ip').parent}:{os.environ['PATH']}", **more}


def as_stored(sent: dict[str, Any], method: str) -> Response:
    """The expected stored form of an answer."""
    headers = without_cookie_values(tuple((name, value) for name, value in sent["headers"]))
    return Response(sent["status"], "", headers, bytes.fromhex(sent["body"])).replayable(method)


def comparable(headers: Headers) -> list[tuple[str, str]]:
    """Header fields in a form common to all versions of HTTP, without those that a site adds, and without the date."""
    fields = ((name.lower(), value) for name, value in without_originals(headers))
    return [(name, value) for name, value in fields if name != "date"]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
