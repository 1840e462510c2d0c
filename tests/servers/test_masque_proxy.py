"""masque_proxy: where it forwards, what it counts, and hostile clients and servers."""

import asyncio
import json
import re
import resource
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest
from aioquic.asyncio.client import connect
from aioquic.buffer import encode_uint_var
from aioquic.quic.configuration import QuicConfiguration
from support.hostile_http3 import ANSWER_TIMEOUT_S, EXCESSIVE_LOAD, HEADERS_FRAME, Client, connected
from support.own_servers import make_certificate

from base.errors import EyelevelError
from base.places import tool
from measure.validate.network.tunnel import TIMEOUT_S, Proxy, Tunnel, measure

pytestmark = pytest.mark.needs_quinn

# Several times more than the queue to a browser holds (1 MiB).
DATAGRAMS, DATAGRAM_BYTES, QUEUE_BYTES = 4000, 1000, 1 << 20
# How many datagrams fit into a socket's buffer; the proxy must read them before more are sent.
AT_ONCE = 50
HOP = "hop.example"
# The proxy's own limit.
MAX_CONNECTIONS = 100


@contextmanager
def proxy(folder: Path, host: str = HOP) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A proxy with a certificate for `host`; yields its process and its port.

    It knows `server.example`, and its own address is that of `proxy.example`.
    """
    certificate, hosts = make_certificate(folder, host), folder / "hosts"
    hosts.write_text("127.0.0.2 server.example\n127.0.0.1 proxy.example\n")
    command: list[str | Path] = [
        tool("masque_proxy"),
        "--address",
        "127.0.0.1:0",
        "--hosts",
        hosts,
        "--account",
        folder / "account",
    ]
    command += ["--certificate", certificate.chain, "--key", certificate.key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def tunnel(client: Client, host: str, port: int) -> int:
    """The stream of a request for a tunnel to `port` of `host`."""
    path = f"/.well-known/masque/udp/{host}/{port}/"
    return client.request(path, end=False, method="CONNECT", protocol="connect-udp")


def test_it_forwards_nothing_to_itself(tmp_path: Path) -> None:
    async def ask(port: int) -> tuple[int, int]:
        async with connected(port) as client:
            to_server, to_itself = tunnel(client, "server.example", 443), tunnel(client, "proxy.example", port)
            return await client.status(to_server), await client.status(to_itself)

    with proxy(tmp_path) as (_, port):
        assert asyncio.run(ask(port)) == (200, 404)
    account = json.loads((tmp_path / "account").read_text())
    assert (account["tunnels"], account["unknown_requests"]) == (1, 1)


def test_it_says_so_when_it_has_no_socket_for_a_tunnel(tmp_path: Path) -> None:
    async def ask(port: int, process: int) -> tuple[int, int]:
        async with connected(port) as client:
            served = await client.status(tunnel(client, "server.example", 443))
            highest = max(int(file.name) for file in Path(f"/proc/{process}/fd").iterdir())
            _, most = resource.prlimit(process, resource.RLIMIT_NOFILE)
            resource.prlimit(process, resource.RLIMIT_NOFILE, (highest + 1, most))
            return served, await client.status(tunnel(client, "server.example", 443))

    with proxy(tmp_path) as (process, port):
        assert asyncio.run(ask(port, process.pid)) == (200, 502)
    assert json.loads((tmp_path / "account").read_text())["tunnels"] == 1


def test_a_request_that_is_too_long_or_never_whole_keeps_no_other_from_its_tunnel(tmp_path: Path) -> None:
    async def attack(port: int) -> None:
        async with connected(port) as client:
            client.raw(encode_uint_var(HEADERS_FRAME) + encode_uint_var(1000))
            long = client.raw(encode_uint_var(HEADERS_FRAME) + encode_uint_var(1 << 30) + bytes(10_000))
            assert await client.end(long) == EXCESSIVE_LOAD
            assert await client.status(tunnel(client, "server.example", 443)) == 200

    with proxy(tmp_path) as (_, port):
        asyncio.run(attack(port))


@pytest.mark.slow
def test_it_takes_no_more_connections_than_a_browser_has(tmp_path: Path) -> None:
    async def crowd(port: int) -> None:
        async with asyncio.TaskGroup() as group, asyncio.timeout(ANSWER_TIMEOUT_S):
            ready, enough = asyncio.Semaphore(0), asyncio.Event()

            async def hold() -> None:
                async with connected(port):
                    ready.release()
                    await enough.wait()

            for _ in range(MAX_CONNECTIONS):
                group.create_task(hold())
                await ready.acquire()
            with pytest.raises(ConnectionError):
                async with connected(port):
                    pass
            enough.set()

    with proxy(tmp_path) as (_, port):
        asyncio.run(crowd(port))
    assert json.loads((tmp_path / "account").read_text())["connections"] == MAX_CONNECTIONS


def test_a_server_that_sends_more_than_the_browser_takes_fills_the_queue_and_that_is_counted(tmp_path: Path) -> None:
    async def flood(port: int, process: "subprocess.Popen[str]") -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.2", 0))
            async with connected(port) as client:
                assert await client.status(tunnel(client, "server.example", server.getsockname()[1])) == 200
                sockets = psutil.Process(process.pid).net_connections("udp")
                (address,) = [one.laddr for one in sockets if one.raddr == server.getsockname()]
                # While these are sent, the client acknowledges nothing.
                for _ in range(DATAGRAMS // AT_ONCE):
                    for _ in range(AT_ONCE):
                        server.sendto(bytes(DATAGRAM_BYTES), tuple(address))
                    wait_until_read(address.port)

    with proxy(tmp_path) as (process, port):
        asyncio.run(flood(port, process))
        assert psutil.Process(process.pid).memory_info().rss < 100 << 20
    account = json.loads((tmp_path / "account").read_text())
    assert (account["datagrams_to_browser"], account["datagrams_too_long"]) == (DATAGRAMS, 0)
    assert account["queue_overflows"] >= DATAGRAMS - QUEUE_BYTES // DATAGRAM_BYTES - AT_ONCE


def ask_through(port: int, trusted: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float = TIMEOUT_S) -> None:
    """Let validation's client send a request through the proxy at `port`, whose certificate must be one of
    `trusted`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    asyncio.run(measure("server.example", 1, Proxy(HOP, "127.0.0.1", port, timeout_s)))


@pytest.mark.timeout(ANSWER_TIMEOUT_S)
def test_a_proxy_whose_certificate_is_not_trusted_is_one_line_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other").chain
    message = r"^the hop at hop\.example: the handshake with the proxy failed: self.signed certificate$"
    with proxy(tmp_path) as (_, port), pytest.raises(EyelevelError, match=message):
        ask_through(port, other, monkeypatch)


@pytest.mark.timeout(ANSWER_TIMEOUT_S)
@pytest.mark.parametrize(
    ("host", "fault"),
    [
        ("other.example", "the handshake with the proxy failed: hostname 'hop.example' doesn't match "),
        ("*.example", "the certificate of the proxy is invalid: Certificate's DNS-ID b'*.example' has too few host "),
    ],
)
def test_a_proxy_whose_certificate_is_of_no_such_host_is_one_line_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, fault: str
) -> None:
    message = f"^the hop at hop\\.example: {re.escape(fault)}"
    with proxy(tmp_path, host) as (_, port), pytest.raises(EyelevelError, match=message):
        ask_through(port, tmp_path / "chain.pem", monkeypatch)


@pytest.mark.timeout(ANSWER_TIMEOUT_S)
def test_a_proxy_that_never_answers_is_one_line_after_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = r"^the hop at hop\.example: the proxy completes no handshake within 0\.5 s$"
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(EyelevelError, match=message):
            ask_through(silent.getsockname()[1], make_certificate(tmp_path).chain, monkeypatch, timeout_s=0.5)


@pytest.mark.timeout(ANSWER_TIMEOUT_S)
def test_a_server_that_never_answers_through_the_proxy_is_one_line_after_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens at its port, and the proxy does not report refused packets. The proxy itself answers in this time.
    message = r"^the hop at hop\.example: the server completes no handshake through the hop within 6 s$"
    with proxy(tmp_path) as (_, port), pytest.raises(EyelevelError, match=message):
        ask_through(port, tmp_path / "chain.pem", monkeypatch, timeout_s=6.0)


def test_a_connection_that_ended_between_two_steps_is_told_at_once(tmp_path: Path) -> None:
    async def go_on(port: int) -> None:
        configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, verify_mode=ssl.CERT_NONE)
        tunnel = partial(Tunnel, proxy=Proxy())
        async with connect("127.0.0.1", port, configuration=configuration, create_protocol=tunnel) as client:
            assert isinstance(client, Tunnel)
            client.close()
            await asyncio.wait_for(client.wait_closed(), ANSWER_TIMEOUT_S)
            await client.open("server.example")

    with proxy(tmp_path) as (_, port), pytest.raises(EyelevelError, match="the connection to the proxy ended"):
        asyncio.run(go_on(port))


def wait_until_read(port: int) -> None:
    """Wait until everything received by the UDP socket at `port` has been read."""
    end_s = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < end_s:
        rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
        if all(row[4].endswith(":00000000") for row in rows if int(row[1].partition(":")[2], 16) == port):
            return
    raise TimeoutError(f"the proxy did not read from port {port} within {ANSWER_TIMEOUT_S:g} s")
