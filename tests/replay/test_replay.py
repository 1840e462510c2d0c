"""The replay: its network is as configured, its servers answer, and nothing of it outlives it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.processes import descendants, still_there

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT
from base.processes import interruptible
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay import ReplayOutcome, ReplaySpec, run
from tuning import networks, protocols
from tuning.networks import Network
from tuning.settings import choose

pytestmark = pytest.mark.needs_namespaces

NETWORKS = networks.load()
PROTOCOLS = protocols.load()
# Servers that are set up only on request → the mark of the tests that need them.
OPTIONAL_SERVERS = {"caddy": pytest.mark.needs_caddy, "quinn": pytest.mark.needs_quinn}
# Nothing but the options of quic_server distinguishes replays over these from one over `quic+unknown`.
OTHER_QUIC = [name for name, one in PROTOCOLS.items() if one.server == "quic_server" and name != "quic+unknown"]
# Which servers the browser knows, how it learns of an alternative, and whether it opens backup connections make no
# difference to a replay. So one is replayed of all protocols that differ only in these.
REPLAYED = {
    repr(replace(protocol, name="", known_servers=None, backup_connections=None, discovery=None)): protocol
    for protocol in PROTOCOLS.values()
}
assert PROTOCOLS["quic+unknown"] in REPLAYED.values()
BULK_BYTES = 2_000_000
HOSTS = 30
# Prints the kernel's data on each TCP connection, first in the servers' network namespace (that of process 1), then in
# this one; if given a process, only the servers', again and again until it ends.
ACCOUNTS = """
import ctypes, json, os, sys, time
from dataclasses import asdict
from pathlib import Path
from servers.kernel_sockets import KernelSockets, decoded

def show(sockets):
    for message in sockets.ask():
        # A connection that the other side has closed may have no account.
        if (account := decoded(message)) and 443 in (account.server[1], account.client[1]):
            print(json.dumps(asdict(account)))

of_client = KernelSockets()
assert ctypes.CDLL(None).setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0) == 0
of_servers = KernelSockets()
for process in sys.argv[1:]:
    while Path("/proc", process).exists():
        show(of_servers)
        time.sleep(0.02)
    sys.exit()
show(of_servers)
show(of_client)
"""
# Starts quic_server for each of the given protocols, without a whole replay; prints their names.
QUIC_SERVERS = """
import os, sys
from functools import cache, partial
from pathlib import Path
from record.site import Site
from replay import inside, world
from replay.spec import PRIVATE
from servers.contract import Serving
from servers.registry import server_of
from tuning import kernel, protocols

site = Site.load(Path(sys.argv[1]))
os.umask(0o022)
world.make(site)
content = inside._content(site, {}, repeatable=False)
certify = cache(partial(inside._certificates, site, {}, recorded=False))
for name in sys.argv[2:]:
    protocol, folder = protocols.load()[name], PRIVATE / "servers" / name
    folder.mkdir()
    assert kernel.apply_sysctls(protocol.server_kernel) == protocol.server_kernel
    with server_of(protocol).serve(Serving(site, content, protocol, folder, certify, None)):
        print(name)
"""
# Prints the identity of the X servers' folder, if it exists.
X_SOCKETS = "stat --format '%d %i' /tmp/.X11-unix 2> /dev/null"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One page, one large file, and many servers with small files."""
    url = "https://www.bulk.example/"
    page = Exchange("GET", url, Response(200, "OK", (("Content-Type", "text/html"),), b"<p>Hello"), "192.0.2.1")
    exchanges = [
        page,
        replace(page, url=f"{url}bulk", response=Response(200, "OK", (), os.urandom(BULK_BYTES))),
        replace(page, method="POST", url=f"{url}upload", response=Response(204, "", (), b"")),
        *(replace(page, url=f"https://h{n}.bulk.example/", recorded_ip=f"192.0.2.{n}") for n in range(2, HOSTS + 1)),
    ]
    return write_site(Recording(url, tuple(exchanges), {"tool": "test"}), tmp_path_factory.mktemp("sites") / "bulk")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One server with almost no content: it loads at once."""
    url = "https://www.bulk.example/"
    return write_site(Recording(url, (_exchange(url),), {"tool": "test"}), tmp_path_factory.mktemp("sites") / "page")


def replay(site: Site, script: str, network: Network, protocol: str = "tcp") -> tuple[ReplayOutcome, str]:
    """Run a shell script as the client; return the outcome and its output."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
        assert cat.stdin and cat.stdout
        spec = ReplaySpec(site.folder, network, PROTOCOLS[protocol])
        outcome = run(spec, ["bash", "-c", script], stdout=cat.stdin.fileno())
        cat.stdin.close()
        return outcome, cat.stdout.read()


@pytest.mark.timing
def test_ping_shows_the_minimum_rtt(page: Site) -> None:
    """The networks are replayed in parallel, since pings mostly wait."""
    chosen = choose("network", "all", NETWORKS)
    with ThreadPoolExecutor(len(chosen)) as pool:
        outputs = pool.map(lambda network: replay(page, "ping -c 20 -i 0.05 -W 1 www.bulk.example", network)[1], chosen)
    for network, printed in zip(chosen, outputs, strict=True):
        times_ms = [float(time) for time in re.findall(r"time=([\d.]+)", printed)]
        assert network.up_mbps
        assert network.down_mbps
        # A ping is 84 bytes, which each link serialises; the shortest of many pings met an idle machine.
        serialising_ms = 84 * 8 * (1 / network.up_mbps + 1 / network.down_mbps) / 1e3
        assert min(times_ms) == pytest.approx(network.min_rtt_ms + serialising_ms, abs=1.0), network.name


@pytest.mark.timing
def test_bulk_transfers_run_at_the_rates_of_the_link(site: Site) -> None:
    lte = NETWORKS["lte"]
    assert lte.up_mbps
    assert lte.down_mbps
    times = "-w '%{time_pretransfer} %{time_starttransfer} %{time_total} %{http_code}\\n' -sS -o /dev/null"
    script = f"""
        head -c {BULK_BYTES // 4} /dev/zero > $TMPDIR/up
        curl {times} https://www.bulk.example/bulk
        curl {times} -X POST --data-binary @$TMPDIR/up https://www.bulk.example/upload
    """
    _, printed = replay(site, script, lte, "tcp+")
    (_, first_byte_s, down_s, _), (connected_s, _, up_s, up_status) = [
        map(float, line.split()) for line in printed.splitlines()
    ]
    assert up_status == 204, "a long request has another answer than the recorded one"
    payload_share = 1460 / 1500
    assert BULK_BYTES * 8 / (down_s - first_byte_s) / 1e6 == pytest.approx(lte.down_mbps * payload_share, rel=0.1)
    assert BULK_BYTES / 4 * 8 / (up_s - connected_s) / 1e6 == pytest.approx(lte.up_mbps * payload_share, rel=0.2)


@pytest.mark.loads
def test_no_connection_waits_for_another(site: Site) -> None:
    """Browsers open connections in bursts; NGINX's workers must not block each other when they accept them. If they
    did, a connection of the first or the second round would wait."""
    urls = "".join(f"url = https://h{n}.bulk.example/\\noutput = /dev/null\\n" for n in range(2, HOSTS + 1))
    script = f"""
        printf '{urls}' > $TMPDIR/urls
        for round in $(seq 5); do curl -sS -Z --parallel-max {HOSTS} -m 60 -K $TMPDIR/urls || exit; done
    """
    assert replay(site, script, NETWORKS["dsl"])[0].status == 0


@pytest.mark.loads
@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(protocol.name, marks=OPTIONAL_SERVERS.get(protocol.server, ()))
        for protocol in REPLAYED.values()
        if protocol.name not in OTHER_QUIC
    ],
)
def test_every_protocol_is_set_up_and_read_back_and_used_by_the_servers(page: Site, protocol: str) -> None:
    """The test reads the kernel's data on a connection that has sent next to nothing (process 1 is on the servers'
    side)."""
    wanted = PROTOCOLS[protocol]
    script = f"""
        coproc openssl s_client -connect www.bulk.example:443
        until [[ $line == *"handshake has read"* ]]; do read -r -u ${{COPROC[0]}} line; done
        {sys.executable} -c '{ACCOUNTS}'
        kill $COPROC_PID
    """
    outcome, printed = replay(page, script if wanted.in_kernel else "true", NETWORKS["dsl"], protocol)
    assert outcome.evidence["server_sysctls"] == wanted.server_kernel
    if not wanted.in_kernel:
        return
    metrics = [route["metrics"][0] for route in outcome.evidence["server_routes"]]
    expected = {"initcwnd": wanted.initial_window_packets, "congestion": wanted.congestion_control}
    assert metrics == [expected] * len(metrics)
    server, client = [json.loads(line) for line in printed.splitlines()]
    assert server["congestion_control"] == wanted.congestion_control
    # BBR increases its window by the acknowledged data, here the few segments of the handshake.
    assert wanted.initial_window_packets <= server["cwnd"] <= wanted.initial_window_packets + 4
    assert client["congestion_control"] == "cubic"


def test_quic_server_starts_with_every_protocol_that_names_it(page: Site) -> None:
    command = [*namespaced("mount", "net", "ipc"), sys.executable, "-c", QUIC_SERVERS, page.folder, *OTHER_QUIC]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.split(), done.returncode) == (OTHER_QUIC, 0), done.stderr


@pytest.mark.loads
def test_the_kernel_holds_no_more_unsent_data_than_it_may(site: Site) -> None:
    """The unsent data is measured while a large file is sent; with tcp+, which is limited only by its send buffer, it
    is a megabyte."""
    script = f"""
        curl -sS -o /dev/null https://www.bulk.example/bulk &
        {sys.executable} -c '{ACCOUNTS}' $!
    """
    outcome, printed = replay(site, script, NETWORKS["lte"], "tcp+lowat")
    limit_bytes = PROTOCOLS["tcp+lowat"].notsent_lowat_bytes
    assert limit_bytes
    assert outcome.evidence["largest_buffer_bytes"] == limit_bytes
    unsent_bytes = max(json.loads(line)["unsent_bytes"] for line in printed.splitlines())
    assert 0 < unsent_bytes <= 2 * limit_bytes  # the limit, plus the buffer that was begun below it


@dataclass(frozen=True)
class Look:
    """How a client that looked around ended, the lines that it printed under each heading, and the earlier folder of X
    servers."""

    x_before: list[str]
    outcome: ReplayOutcome
    printed: dict[str, list[str]]


def x_sockets() -> list[str]:
    return subprocess.run(["sh", "-c", X_SOCKETS], capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.fixture(scope="module")
def look(site: Site) -> Look:
    x_before = x_sockets()
    script = f"""
        echo = name; getent hosts nowhere.example || echo none
        echo = beyond; ping -c 1 -W 1 192.0.2.1 2>&1
        echo = links; ls /sys/class/net > /dev/null; ip -json link
        echo = systems; stat --format %d "$TMPDIR" /run/eyelevel/servers /run/eyelevel/names /run/eyelevel
        ls /run/eyelevel/servers/* > /dev/null
        echo = x; {X_SOCKETS}
        exit 7
    """
    outcome, printed = replay(site, script, NETWORKS["dsl"])
    sections = [section.splitlines() for section in printed.split("= ")[1:]]
    return Look(x_before, outcome, {heading: lines for heading, *lines in sections})


def test_unknown_names_do_not_exist_and_are_told(look: Look) -> None:
    assert look.printed["name"] == ["none"]
    assert look.outcome.evidence["unknown_names"] == ["nowhere.example"]


def test_nothing_outside_can_be_reached(look: Look) -> None:
    assert re.search("[Uu]nreachable", "".join(look.printed["beyond"]))
    (links,) = look.printed["links"]
    assert {link["ifname"] for link in json.loads(links)} == {"lo", "ingress"}


def test_what_the_page_may_fill_is_not_what_servers_and_names_need(look: Look) -> None:
    assert len(set(look.printed["systems"])) == 4, look.printed
    assert "full" not in look.outcome.evidence


def test_a_replay_makes_no_folder_of_x_servers_and_hides_none(look: Look) -> None:
    """A host may have none; and whoever creates it owns it."""
    assert look.printed["x"] == look.x_before
    assert x_sockets() == look.x_before


def test_the_exit_status_is_the_command_s(look: Look) -> None:
    assert look.outcome.status == 7


def test_a_name_server_or_servers_without_space_are_told(site: Site) -> None:
    outcome, _ = replay(site, "fallocate --length 63M /run/eyelevel/names/filler", NETWORKS["dsl"])
    assert outcome.evidence["full"] == "the page made the name server write more than the 64 MiB that there are"
    buffers = "/run/eyelevel/servers/buffers"
    fill = f"fallocate --length {(1 << 30) - (64 << 10)} {buffers}/filler"
    upload = f"head --bytes 256K /dev/zero | curl --silent --output /dev/null --data-binary @- {site.url}"
    outcome, _ = replay(site, f"{fill}; {upload}; rm {buffers}/filler", NETWORKS["dsl"])
    assert outcome.evidence["full"] == "the page made the servers keep for it more than the 1024 MiB that there are"


def test_a_command_that_does_not_exist_is_said(site: Site) -> None:
    spec = ReplaySpec(site.folder, NETWORKS["dsl"], PROTOCOLS["tcp"])
    assert run(spec, ["/no/such/program"], stderr=subprocess.DEVNULL).status == 127


def test_a_broken_response_file_stops_the_replay(site: Site, tmp_path: Path) -> None:
    recording = Recording("https://a.example/", (_exchange("https://a.example/"),), {"tool": "test"})
    broken = write_site(recording, tmp_path / "broken")
    (broken.folder / broken.exchanges[0].file).write_bytes(b"no response")
    for protocol in ("tcp", "quic"):
        with pytest.raises(EyelevelError, match="00000-index"):
            replay(broken, "true", NETWORKS["dsl"], protocol)


@contextmanager
def client_process(site: Site, protocol: str) -> Iterator["subprocess.Popen[str]"]:
    """A replay whose client prints `up` and then waits for ever."""
    program = (
        "import sys; from pathlib import Path; from replay import *; from tuning import *; "
        "from tuning import networks, protocols; "
        "run(ReplaySpec(Path(sys.argv[1]), networks.load()['lte'], protocols.load()[sys.argv[2]]), "
        "['bash', '-c', 'echo up; exec sleep 1000'])"
    )
    command = interruptible([sys.executable, "-c", program, str(site.folder), protocol])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
@pytest.mark.parametrize(
    ("protocol", "program"),
    [("tcp", "nginx"), *(pytest.param(f"caddy-{v}", "caddy", marks=pytest.mark.needs_caddy) for v in ("h2", "h3"))],
)
def test_nothing_outlives_a_replay_however_it_ends(
    site: Site, protocol: str, program: str, how: signal.Signals
) -> None:
    with client_process(site, protocol) as replay_process:
        assert replay_process.stdout
        assert replay_process.stdout.readline() == "up\n"
        processes = descendants(replay_process.pid)
        assert {program, "uwsgi-core", "dnsmasq", "mm-net"} <= {name for _, name in processes}
        replay_process.send_signal(how)
        replay_process.wait()
        assert not still_there(pid for pid, _ in processes)


INTERRUPTED = """
import os, sys
from pathlib import Path
from replay import ReplaySpec, run
from tuning import networks, protocols
spec = ReplaySpec(Path(sys.argv[1]), networks.load()["dsl"], protocols.load()["tcp"])
sys.exit(run(spec, ["sh", "-c", "kill -INT $$; echo went on"]).status)
"""


def test_a_client_can_be_interrupted_though_the_caller_ignores_it(site: Site) -> None:
    """A script's background jobs ignore SIGINT, and so would their child processes."""
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", INTERRUPTED, str(site.folder)]
    ended = subprocess.run(ignoring, stdout=subprocess.PIPE, text=True, cwd=PROJECT, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")


def _exchange(url: str) -> Exchange:
    return Exchange("GET", url, Response(200, "OK", (), b"<p>"), "192.0.2.1")
