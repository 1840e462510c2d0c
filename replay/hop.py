"""The hop of a replay: what runs between the two halves of its network, in a network namespace of its own.

    servers ══ far half ══ the hop's namespace ══ near half ══ client
                             HAProxy (split), Caddy (terminate), masque_proxy (masque)

Without a program, the kernel hands packets on there. A hop that splits connections gets every packet of TCP that comes
from the client, whatever address it is for (AnyIP), answers as the server would, and connects to that server from its
own address. UDP is handed on. One that terminates them gets UDP, too (`replay.edge`). One that tunnels has an address
that the browser knows, and sends the packets of the browser's QUIC from its own.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.jail import Jail, file_in, jailed
from base.network_namespaces import NetworkNamespace
from base.places import tool
from base.processes import Daemon, first_readable, last_line_of, pidfd, run_program, running
from replay.edge import await_connections, origin_protocol, running_edge
from replay.names import HOSTS
from replay.spec import PRIVATE, PROXY_ADDRESS, PROXY_HOST, PROXY_PORT, ReplaySpec
from replay.world import open_ports, outward_device
from servers.certificates import certify, machine_ca
from servers.contract import BUFFERS, Serving
from servers.own_quic import SEGMENT_BYTES
from servers.registry import server_of
from servers.sockets import make_transparent
from tuning import kernel
from tuning.hops import MASQUE, SPLIT, TERMINATE, Hop
from tuning.networks import Network
from tuning.protocols import Protocol

# The program of a hop of each kind, with the option by which it prints its version.
PROGRAMS = {SPLIT: {"haproxy": "-v"}, TERMINATE: {"caddy": "version"}, MASQUE: {"masque_proxy": "--version"}}
FOLDER = PRIVATE / "hop"
# Of the hop's side of the namespace: what shells call the device that leads to the servers.
FAR_DEVICE = "ingress"
# Whose routes are for what comes from the client: everything is the hop's own.
TABLE = "201"
# What the hop's TCP does, beside what is set; told with each run.
SYSCTLS = (
    *("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
    *("net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_ecn"),
    *("net.ipv4.tcp_fastopen", "net.ipv4.tcp_moderate_rcvbuf"),
)
TRANSPORTS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}
# Of IP packets, which have no such (RFC 5237).
NO_TRANSPORT = 255
START_TIMEOUT_S = 20.0
# Where a program says that it is ready (sd_notify(3)).
NOTIFY_SOCKET = "NOTIFY_SOCKET"
# From linux/if_packet.h, if_ether.h and socket.h, which Python does not have.
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER = 0x3, 263, 6, 26
# HAProxy copies nothing of what it hands on: the kernel moves it from socket to socket. It gives a connection up only
# when the client or the server does.
CONFIGURATION = """\
global
  nbthread 1
  maxconn 2048
defaults
  mode tcp
  timeout connect 1h
  timeout client 1h
  timeout server 1h
  retries 0
  option splice-auto
frontend client
{binds}
  default_backend servers
backend servers
  server asked 0.0.0.0
"""


def programs_of(network: Network) -> dict[str, str]:
    """The programs of the hop of `network`, and those of the servers behind it that are not the protocol's under test,
    each with the option by which it prints its version."""
    if not network.hop:
        return {}
    origins = server_of(origin_protocol(network.hop)).programs if network.hop.terminates else {}
    return {**PROGRAMS.get(network.hop.kind, {}), **origins}


def serving_protocol(spec: ReplaySpec) -> Protocol:
    """By what the servers of `spec` serve: not by the protocol under test where that ends at a hop."""
    hop = spec.network.hop
    return origin_protocol(hop) if hop and hop.terminates else spec.protocol


@contextmanager
def hopped(spec: ReplaySpec, connection: socket.socket, serving: Serving, evidence: dict[str, Any]) -> Iterator[None]:
    """Have the hop of the network of `spec`, if there is one, do its work while the block runs.

    `connection` is the client's, who waits at its other end; `serving` is the servers'. What the hop is, and what it
    did, is put into `evidence`. Raises EyelevelError when it cannot be set up, and when it failed: also when a packet
    was seen at the servers that is not the hop's, though it should be, or it opened no connection though it accepted
    some.
    """
    if not (hop := spec.network.hop):
        yield
        return
    namespace = NetworkNamespace.of(_neighbour(connection))
    account: dict[str, Any] = {"kind": hop.kind}
    evidence["hop"] = account
    with namespace.entered():
        account["address"] = _address(FAR_DEVICE)
        account["sysctls"] = kernel.read_sysctls(SYSCTLS)
    if not (hop.splits or hop.terminates or hop.tunnels):
        yield
        return
    FOLDER.mkdir()
    ended = ("tcp",) if hop.splits else ("tcp", "udp")
    with _counter(outward_device(), account["address"], ended) as beside, namespace.entered():
        with _at_work(hop, spec, serving, account):
            before = _opens(namespace)
            yield
            after = _opens(namespace)
        account |= {name: after[name] - before[name] for name in after}
        account["packets_beside"] = _count(beside)
    if account["packets_beside"]:
        raise EyelevelError(
            f"{account['packets_beside']} packets of {' or '.join(map(str.upper, ended))} went beside the hop"
        )
    # Not one by one: who gives up a connection at once may have it closed before the other is opened. What terminates
    # connections opens its own when it is asked for something.
    if hop.splits and account["accepted"] and not account["opened"]:
        raise EyelevelError(f"the hop took {account['accepted']} connections, but opened none to the servers")


@contextmanager
def _at_work(hop: Hop, spec: ReplaySpec, serving: Serving, account: dict[str, Any]) -> Iterator[None]:
    """The program of `hop`, in whose network namespace we are, while the block runs. Raises EyelevelError."""
    if hop.tunnels:
        with _tunnel(hop, spec, account):
            yield
        return
    near = _near_device()
    _lead_in(near, ("tcp",) if hop.splits else ("tcp", "udp"))
    with _split(near, hop, serving, account) if hop.splits else _edge(near, hop, spec, serving, account):
        yield


def _lead_in(near: str, transports: Sequence[str]) -> None:
    """Make all packets of `transports` that come by the device `near` this namespace's own. Raises EyelevelError."""
    commands = [f"route add local default dev lo table {TABLE}"]
    commands += [f"rule add iif {near} ipproto {transport} lookup {TABLE}" for transport in transports]
    run_program([tool("ip"), "-batch", "-"], "packets cannot be led into the hop", "\n".join(commands))


@contextmanager
def _split(near: str, hop: Hop, serving: Serving, account: dict[str, Any]) -> Iterator[None]:
    """HAProxy between the halves, once it listens. Raises EyelevelError."""
    account["routes"] = {
        side: kernel.tune_hop_routes(device, hop.congestion_control, hop.initial_window_packets)
        for side, device in (("near", near), ("far", FAR_DEVICE))
    }
    discipline = {device: kernel.set_discipline(device, paced=False) for device in (near, FAR_DEVICE)}
    account["queueing_discipline"] = discipline
    configuration = FOLDER / "haproxy.cfg"
    ports = sorted({port for _, port in serving.listening()})
    binds = "\n".join(f"  bind 0.0.0.0:{port}" for port in ports)
    configuration.write_text(CONFIGURATION.format(binds=binds))
    program = tool("haproxy")
    account["program"] = _version(program, "-v")
    open_ports()
    with _haproxy(program, configuration) as haproxy:
        make_transparent(haproxy.process.pid, [("0.0.0.0", port) for port in ports], socket.SOCK_STREAM)
        yield


@contextmanager
def _edge(near: str, hop: Hop, spec: ReplaySpec, serving: Serving, account: dict[str, Any]) -> Iterator[None]:
    """Caddy between the halves, once it listens, which is to the browser what the server of the protocol under test is
    without a hop. Raises EyelevelError."""
    protocol = spec.protocol
    open_ports()
    # Of the servers' addresses none is this namespace's, and Caddy listens at each.
    account["server_sysctls"] = kernel.apply_sysctls({**protocol.server_kernel, "net.ipv4.ip_nonlocal_bind": "1"})
    far = kernel.tune_hop_routes(FAR_DEVICE, hop.congestion_control, hop.initial_window_packets)
    account["routes"] = {"far": far}
    account["queueing_discipline"] = {FAR_DEVICE: kernel.set_discipline(FAR_DEVICE, paced=False)}
    if protocol.in_kernel:
        account["routes"]["near"] = kernel.tune_server_routes(near, protocol)
        account["queueing_discipline"][near] = kernel.set_discipline(near, paced=protocol.pacing)
        account["largest_buffer_bytes"] = kernel.limit_buffers(near, protocol)
    account["program"] = _version(tool("caddy"), "version")
    (FOLDER / BUFFERS).mkdir()
    with running_edge(replace(serving, protocol=protocol, folder=FOLDER, request_log=None, qlog=None)) as caddy:
        account["log_bytes_before"] = await_connections(caddy, serving)
        account["kept_connections"] = len(serving.listening())
        yield


@contextmanager
def _tunnel(hop: Hop, spec: ReplaySpec, account: dict[str, Any]) -> Iterator[None]:
    """masque_proxy between the halves, once it listens; `account` has at the end what it says that it did. Raises
    EyelevelError."""
    open_ports()
    run_program([tool("ip"), "address", "add", f"{PROXY_ADDRESS}/32", "dev", "lo"], "the hop cannot have its address")
    certificates = FOLDER / "certificates"
    certificates.mkdir()
    certificate = certify(machine_ca(), {PROXY_ADDRESS: (PROXY_HOST,)}, certificates)[PROXY_ADDRESS]
    program, report = tool("masque_proxy"), FOLDER / "account.json"
    account["program"] = _version(program, "--version")
    command: list[str | Path] = [program, "--address", f"{PROXY_ADDRESS}:{PROXY_PORT}", "--hosts", HOSTS]
    command += ["--certificate", certificate.chain, "--key", certificate.key, "--account", report]
    command += ["--congestion-control", hop.congestion_control]
    command += ["--initial-window", str(hop.initial_window_packets * SEGMENT_BYTES)]
    log, jail = FOLDER / "masque_proxy.log", Jail((HOSTS,), writable=(FOLDER,))
    with running("masque_proxy", jailed(jail, command), log, stdout=subprocess.PIPE) as proxy:
        proxy.first_line()
        yield
    if not (file := file_in(FOLDER, report.name)):
        raise proxy.failure()
    account |= json.loads(file.read_text())
    if account["congestion_control"] not in (None, hop.congestion_control):
        raise EyelevelError(f"the hop sent with {account['congestion_control']}, not with {hop.congestion_control}")


@contextmanager
def _haproxy(program: Path, configuration: Path) -> Iterator[Daemon]:
    """HAProxy, once it says that it is ready (sd_notify(3)). Raises EyelevelError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as readiness:
        readiness.bind(str(FOLDER / "ready"))
        environment = {**os.environ, NOTIFY_SOCKET: str(FOLDER / "ready")}
        # It is a script beside the program's own folder.
        jail = Jail((program.resolve().parent,), writable=(FOLDER,), variables=(NOTIFY_SOCKET,))
        command = jailed(jail, [program.resolve(), "-Ws", "-f", configuration])
        with running("HAProxy", command, FOLDER / "haproxy.log", environment=environment) as daemon:
            with pidfd(daemon.process) as ended:
                said = b""
                while not said.startswith(b"READY=1"):  # before that, it says that it loads its configuration
                    if first_readable(readiness.fileno(), ended, timeout_s=START_TIMEOUT_S) != readiness.fileno():
                        raise daemon.failure()
                    said = readiness.recv(1024)
            yield daemon


def _version(program: Path, option: str) -> str:
    completed = subprocess.run([program, option], capture_output=True, text=True, check=False)
    if completed.returncode:
        raise EyelevelError(f"{program} does not run: {last_line_of(completed.stderr)}")
    return completed.stdout.splitlines()[0]


def _neighbour(connection: socket.socket) -> int:
    """The first process above the client's that is in another network namespace: the shell of the near half, which is
    in the hop's. Raises EyelevelError."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process: int = struct.unpack("3i", peer)[0]
    inside = _namespace_of(process)
    while _namespace_of(process) == inside:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        if process <= 1:
            raise EyelevelError("the client is in no network namespace of its own, so the hop has none")
    if _namespace_of(process) == _namespace_of(os.getpid()):
        raise EyelevelError("there is no network namespace between the client's and the servers', so the hop has none")
    return process


def _namespace_of(process: int) -> str:
    return str(Path(f"/proc/{process}/ns/net").readlink())


def _near_device() -> str:
    """The device in this namespace that leads to the client."""
    names = [name for _, name in socket.if_nameindex() if name not in ("lo", FAR_DEVICE)]
    if len(names) != 1:
        raise EyelevelError(f"expected one device between hop and client, found {names or 'none'}")
    return names[0]


def _address(device: str) -> str:
    """The IPv4 address of `device` in this namespace. Raises EyelevelError."""
    command: list[str | Path] = [tool("ip"), "-json", "-4", "address", "show", "dev", device]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise EyelevelError(f"the hop has no device {device}: {completed.stderr.strip()}")
    return str(json.loads(completed.stdout)[0]["addr_info"][0]["local"])


def _opens(namespace: NetworkNamespace) -> Mapping[str, int]:
    """How many connections the namespace's TCP has accepted and opened so far."""
    with namespace.entered():
        lines = [line.split() for line in Path("/proc/thread-self/net/snmp").read_text().splitlines()]
    names, values = (line for line in lines if line[0] == "Tcp:")
    counters = dict(zip(names[1:], map(int, values[1:]), strict=True))
    return {"accepted": counters["PassiveOpens"], "opened": counters["ActiveOpens"]}


@contextmanager
def _counter(device: str, address: str, transports: Sequence[str]) -> Iterator[socket.socket]:
    """A socket for which the kernel counts the packets of `transports` at `device` that are neither from nor to
    `address`."""
    tcp, udp = (number if name in transports else NO_TRANSPORT for name, number in TRANSPORTS.items())
    number = struct.unpack("!I", socket.inet_aton(address))[0]
    # Code, jumps if true and if false, and constant of each line (linux/bpf_common.h): is it IPv4, is it TCP or UDP, is
    # it not from the address, and not to it? (Of SOCK_DGRAM, packets begin with their IP header.)
    program = (
        (0x30, 0, 0, 0),
        (0x54, 0, 0, 0xF0),
        (0x15, 0, 8, 0x40),
        (0x30, 0, 0, 9),
        (0x15, 1, 0, tcp),
        (0x15, 0, 5, udp),
        (0x20, 0, 0, 12),
        (0x15, 3, 0, number),
        (0x20, 0, 0, 16),
        (0x15, 1, 0, number),
        (0x06, 0, 0, 1),
        (0x06, 0, 0, 0),
    )
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as counter:
            filtering = struct.pack("HL", len(program), ctypes.addressof(text))
            counter.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filtering)
            counter.bind((device, ETH_P_ALL))
            yield counter
    except OSError as error:
        raise EyelevelError(f"packets cannot be counted at {device}: {error.strerror}") from None


def _count(counter: socket.socket) -> int:
    packets, _ = struct.unpack("II", counter.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return int(packets)
