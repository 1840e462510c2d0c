"""The demo sites: identical bytes every time, the promised properties, and pages that a browser loads completely."""

import hashlib
import io
import json
import os
import ssl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pytest
from fontTools.ttLib import TTFont
from PIL import Image
from support.browser import WITHOUT_SUGGESTIONS
from support.processes import PATIENCE_S

from base.namespaces import AS_ORDINARY_USER
from base.places import PROJECT, tool
from record.content import decode
from record.demo import DEMO_SITES, generate
from record.site import Recording, write_site
from servers.certificates import certify, machine_ca

# Servers, then the minimum and maximum of requests and of bytes.
PROMISED = {
    "demo-light": (2, (8, 8), (60_000, 100_000)),
    "demo-news": (12, (85, 95), (1_400_000, 1_600_000)),
    "demo-gallery": (30, (105, 115), (3_000_000, 4_000_000)),
}
DOCUMENTATION = [ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]

DIGESTS = """
import hashlib
from record.demo import DEMO_SITES, generate
for name in DEMO_SITES:
    print(hashlib.sha256(repr(generate(name)).encode()).hexdigest())
"""

pytestmark = pytest.mark.slow


def digest(recording: Recording) -> str:
    """A fingerprint of everything in a recording."""
    return hashlib.sha256(repr(recording).encode()).hexdigest()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[subprocess.Popen[str]]:
    """Another process that generates the sites at the same time, with another hash order."""
    environment = os.environ | {"PYTHONHASHSEED": "4242", "PYTHONDONTWRITEBYTECODE": "1"}
    root = PROJECT
    command = [sys.executable, "-c", DIGESTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def recordings(elsewhere: subprocess.Popen[str]) -> dict[str, Recording]:
    return {name: generate(name) for name in DEMO_SITES}


@pytest.fixture(params=DEMO_SITES)
def recording(request: pytest.FixtureRequest, recordings: dict[str, Recording]) -> Recording:
    return recordings[request.param]


def test_a_site_is_as_large_as_it_promises(recording: Recording) -> None:
    servers, requests, size = PROMISED[recording.recorder["site"]]
    assert len({exchange.recorded_ip for exchange in recording.exchanges}) == servers
    assert requests[0] <= len(recording.exchanges) <= requests[1]
    assert size[0] <= sum(len(exchange.response.body) for exchange in recording.exchanges) <= size[1]


def test_nothing_in_a_site_names_a_real_host_or_address(recording: Recording) -> None:
    for exchange in recording.exchanges:
        url = urlsplit(exchange.url)
        assert url.scheme == "https"
        assert url.netloc.endswith(".example")
        assert any(ip_address(exchange.recorded_ip) in net for net in DOCUMENTATION)


def test_every_body_is_what_its_headers_say(recording: Recording) -> None:
    kinds: Counter[str] = Counter()
    for exchange in recording.exchanges:
        response = exchange.response
        if response.status == 204:
            assert not response.body
            continue
        assert response.header("content-length") == str(len(response.body)), exchange.url
        content = decode(response.body, response.header("content-encoding") or "")
        kind = (response.header("content-type") or "").partition(";")[0]
        kinds[kind] += 1
        match kind.split("/"):
            case ["image", "svg+xml"]:
                assert content.startswith(b"<svg")
            case ["image", _]:
                with Image.open(io.BytesIO(content)) as image:
                    image.load()
                    assert Image.MIME[image.format or ""] in (kind, "image/vnd.microsoft.icon"), exchange.url
            case ["font", _]:
                assert set(range(0x20, 0x7F)) <= TTFont(io.BytesIO(content)).getBestCmap().keys()
            case ["application", "json"]:
                json.loads(content)
            case ["text" | "application", _]:
                assert content.decode().strip()
            case _:
                assert 300 <= response.status < 400
    assert {"text/html", "text/css", "application/javascript", "image/jpeg", "font/woff2"} <= kinds.keys()


def test_photographs_have_the_weight_of_real_ones_and_none_is_like_another(recording: Recording) -> None:
    pictures = [e.response.body for e in recording.exchanges if e.response.header("content-type") == "image/jpeg"]
    assert len({hashlib.sha256(picture).digest() for picture in pictures}) == len(pictures)
    for picture in pictures:
        with Image.open(io.BytesIO(picture)) as image:
            pixels = image.width * image.height
        # Small pictures mostly consist of headers; photographs on the web have 0.1 to 0.25 bytes a pixel.
        assert 0.1 <= len(picture) / pixels <= (0.25 if pixels > 50_000 else 0.4)


def test_text_travels_compressed_in_both_ways(recordings: dict[str, Recording]) -> None:
    for recording in recordings.values():
        encodings = {exchange.response.header("content-encoding") for exchange in recording.exchanges}
        assert encodings == {None, "gzip", "br"}


@pytest.mark.parametrize(
    ("method", "status"), [("OPTIONS", 204), ("GET", 204), ("POST", 204), ("GET", 302)], ids=lambda value: str(value)
)
def test_the_news_has_exchanges_that_are_no_plain_downloads(
    recordings: dict[str, Recording], method: str, status: int
) -> None:
    exchanges = {(exchange.method, exchange.response.status) for exchange in recordings["demo-news"].exchanges}
    assert (method, status) in exchanges


def test_a_site_can_be_stored(recording: Recording, tmp_path: Path) -> None:
    site = write_site(recording, tmp_path / "site")
    assert [(e.method, e.url) for e in site.exchanges] == [(e.method, e.url) for e in recording.exchanges]


def test_another_seed_gives_another_site(recordings: dict[str, Recording]) -> None:
    assert digest(generate("demo-light", seed=1)) != digest(recordings["demo-light"])


def test_the_same_seed_gives_the_same_bytes_in_every_process(
    recordings: dict[str, Recording], elsewhere: subprocess.Popen[str]
) -> None:
    printed, _ = elsewhere.communicate()
    assert printed.split() == [digest(recording) for recording in recordings.values()]


@pytest.mark.needs_browser
def test_a_browser_asks_for_everything_in_a_site_once_and_for_nothing_else(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path / "cache"))
    # A killed browser leaves the folder of its socket, whose path must be short.
    with serving(recording, tmp_path) as (port, requests), TemporaryDirectory() as temporary:
        command = [
            *AS_ORDINARY_USER,
            str(tool("chromium")),
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            f"--{WITHOUT_SUGGESTIONS}",
            "--ignore-certificate-errors",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--host-resolver-rules=MAP *.example 127.0.0.1:{port}, MAP * ~NOTFOUND",
            "--window-size=1366,768",
            "--virtual-time-budget=6000",
            "--dump-dom",
            recording.url,
        ]
        environment = os.environ | {"TMPDIR": temporary}
        loaded = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert "CONSOLE" not in loaded.stderr
    # Some headless browsers request a favicon, some do not.
    expected = Counter((e.method, e.url) for e in recording.exchanges if not e.url.endswith("/favicon.ico"))
    assert Counter(key for key in requests if not key[1].endswith("/favicon.ico")) == expected


@contextmanager
def serving(recording: Recording, folder: Path) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Serve all hosts of a recording on a loopback port; yields the port and the list of requests."""
    responses = {(exchange.method, exchange.url): exchange.response for exchange in recording.exchanges}
    requests: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            key = (self.command, f"https://{self.headers['host']}{self.path}")
            requests.append(key)
            response = responses.get(key)
            if response is None:
                self.send_response_only(404)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            self.send_response_only(response.status, response.reason)
            for name, value in response.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)

        do_GET = do_POST = do_OPTIONS = answer

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """Do nothing: a browser may end with open connections."""

    hosts = tuple(sorted({urlsplit(exchange.url).netloc for exchange in recording.exchanges}))
    certificate = certify(machine_ca(), {"127.0.0.1": hosts}, folder)["127.0.0.1"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1], requests
        finally:
            server.shutdown()
            thread.join()
