"""The hop of a replay: what runs between the two halves of its network, in a network namespace of its own.

    servers ══ far half ══ the hop's namespace ══ near half ══ client
                             HAProxy (split)

Without a program, the kernel hands packets on there. A hop that splits connections gets every packet of TCP that comes
from the client, whatever address it is for (AnyIP), answers as the server would, and connects to that server from its
own address. UDP is handed on.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.network_namespaces import NetworkNamespace
from base.places import tool
from base.processes import first_readable, last_line_of, pidfd, run_program, running
from replay.spec import PRIVATE, ReplaySpec
from replay.world import outward_device
from tuning import kernel
from tuning.hops import Hop
from tuning.networks import Network

# The program of a hop that splits connections, with the option by which it prints its version.
PROGRAMS = {"haproxy": "-v"}
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
START_TIMEOUT_S = 20.0
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
    """The programs of the hop of `network`, each with the option by which it prints its version."""
    return PROGRAMS if network.hop and network.hop.splits else {}


@contextmanager
def hopped(spec: ReplaySpec, connection: socket.socket, ports: list[int], evidence: dict[str, Any]) -> Iterator[None]:
    """Have the hop of the network of `spec`, if there is one, do its work while the block runs.

    `connection` is the client's, who waits at its other end; servers listen at `ports`. What the hop is, and what it
    did, is put into `evidence`. Raises EyelevelError when it cannot be set up, and when it failed: also when a packet
    of TCP was seen at the servers that is not the hop's, or it opened no connection though it accepted some.
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
    if not hop.splits:
        yield
        return
    FOLDER.mkdir()
    with _tcp_counter(outward_device(), account["address"]) as beside, _split(namespace, hop, ports, account):
        before = _opens(namespace)
        yield
        after = _opens(namespace)
        account |= {name: after[name] - before[name] for name in after}
        account["tcp_packets_beside"] = _count(beside)
    if account["tcp_packets_beside"]:
        raise EyelevelError(f"{account['tcp_packets_beside']} packets of TCP went beside the hop")
    # Not one by one: who gives up a connection at once may have it closed before the other is opened.
    if account["accepted"] and not account["opened"]:
        raise EyelevelError(f"the hop took {account['accepted']} connections, but opened none to the servers")


@contextmanager
def _split(namespace: NetworkNamespace, hop: Hop, ports: list[int], account: dict[str, Any]) -> Iterator[None]:
    """HAProxy between the halves, once it listens. Raises EyelevelError."""
    with namespace.entered():
        near = _near_device()
        account["routes"] = {
            side: kernel.tune_hop_routes(device, hop.congestion_control, hop.initial_window_packets)
            for side, device in (("near", near), ("far", FAR_DEVICE))
        }
        discipline = {device: kernel.set_discipline(device, paced=False) for device in (near, FAR_DEVICE)}
        account["queueing_discipline"] = discipline
        rules = [f"route add local default dev lo table {TABLE}", f"rule add iif {near} ipproto tcp lookup {TABLE}"]
        run_program([tool("ip"), "-batch", "-"], "TCP cannot be led into the hop", "\n".join(rules))
        configuration = FOLDER / "haproxy.cfg"
        binds = "\n".join(f"  bind 0.0.0.0:{port} transparent" for port in ports)
        configuration.write_text(CONFIGURATION.format(binds=binds))
        program = tool("haproxy")
        account["program"] = _version(program)
        with _haproxy(program, configuration):
            yield


@contextmanager
def _haproxy(program: Path, configuration: Path) -> Iterator[None]:
    """HAProxy, once it says that it is ready (sd_notify(3)). Raises EyelevelError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as readiness:
        readiness.bind(str(FOLDER / "ready"))
        environment = {**os.environ, "NOTIFY_SOCKET": str(FOLDER / "ready")}
        command: list[str | Path] = [program, "-Ws", "-f", configuration]
        with running("HAProxy", command, FOLDER / "haproxy.log", environment=environment) as daemon:
            with pidfd(daemon.process) as ended:
                said = b""
                while not said.startswith(b"READY=1"):  # before that, it says that it loads its configuration
                    if first_readable(readiness.fileno(), ended, timeout_s=START_TIMEOUT_S) != readiness.fileno():
                        raise daemon.failure()
                    said = readiness.recv(1024)
            yield


def _version(program: Path) -> str:
    completed = subprocess.run([program, "-v"], capture_output=True, text=True, check=False)
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
def _tcp_counter(device: str, address: str) -> Iterator[socket.socket]:
    """A socket for which the kernel counts the packets of TCP at `device` that are neither from nor to `address`."""
    number = struct.unpack("!I", socket.inet_aton(address))[0]
    # Code, jumps if true and if false, and constant of each line (linux/bpf_common.h): is it IPv4, is it TCP, is it not
    # from the address, and not to it? (Of SOCK_DGRAM, packets begin with their IP header.)
    program = (
        (0x30, 0, 0, 0),
        (0x54, 0, 0, 0xF0),
        (0x15, 0, 7, 0x40),
        (0x30, 0, 0, 9),
        (0x15, 0, 5, socket.IPPROTO_TCP),
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
        raise EyelevelError(f"packets of TCP cannot be counted at {device}: {error.strerror}") from None


def _count(counter: socket.socket) -> int:
    packets, _ = struct.unpack("II", counter.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return int(packets)
