"""The hop of a replay: it stands between the two halves of the network, in a network namespace of its own.

    servers ══ far half ══ the hop's namespace ══ near half ══ client
                             a program of its kind (`replay.hops`)

If the hop has no program, the kernel forwards packets there.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.network_namespaces import NetworkNamespace
from base.places import tool
from replay.hops.contract import Work
from replay.hops.namespace import FAR_DEVICE, FOLDER
from replay.hops.registry import hop_of
from replay.spec import ReplaySpec
from replay.world import outward_device
from servers.contract import Serving
from tuning import kernel
from tuning.protocols import Protocol

# The parameters of the hop's TCP that are not set; each run records them.
SYSCTLS = (
    *("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
    *("net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_ecn"),
    *("net.ipv4.tcp_fastopen", "net.ipv4.tcp_moderate_rcvbuf"),
)
TRANSPORTS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}
# A protocol number that no IP packet has (RFC 5237).
NO_TRANSPORT = 255
# From linux/if_packet.h, if_ether.h and socket.h; Python lacks them.
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER = 0x3, 263, 6, 26


def serving_protocol(spec: ReplaySpec) -> Protocol:
    """The protocol with which the servers of `spec` serve: that of the hop's origin if the protocol under test ends at
    a hop."""
    hop = spec.network.hop
    return (hop_of(spec.network).origin(hop) if hop else None) or spec.protocol


@contextmanager
def hopped(spec: ReplaySpec, connection: socket.socket, serving: Serving, evidence: dict[str, Any]) -> Iterator[None]:
    """Run the hop of the network of `spec`, if it has one, while the context lasts.

    The client waits at the other end of `connection`; `serving` describes the servers. The hop's kind and its counters
    are put into `evidence`. Raises EyelevelError when the hop cannot be set up, when it fails, and when packets of a
    transport that ends at the hop have bypassed it on their way to the servers.
    """
    if not (hop := spec.network.hop):
        yield
        return
    kind, namespace = hop_of(spec.network), NetworkNamespace.of(_neighbour(connection))
    account: dict[str, Any] = {"kind": hop.kind}
    evidence["hop"] = account
    with namespace.entered():
        account["address"] = _address(FAR_DEVICE)
        account["sysctls"] = kernel.read_sysctls(SYSCTLS)
    if not kind.ends:
        yield
        return
    FOLDER.mkdir()
    with _counter(outward_device(), account["address"], kind.ends) as beside, namespace.entered():
        with kind.at_work(Work(hop, spec, serving, account)):
            before = _opens(namespace)
            yield
            after = _opens(namespace)
        account |= {name: after[name] - before[name] for name in after}
        account["packets_beside"] = _count(beside)
    if account["packets_beside"]:
        transports = " or ".join(map(str.upper, kind.ends))
        raise EyelevelError(f"{account['packets_beside']} packets of {transports} bypassed the hop")
    if fault := kind.fault(account):
        raise EyelevelError(f"the hop {fault}")


def _neighbour(connection: socket.socket) -> int:
    """The nearest ancestor of the client's process that is in another network namespace: the shell of the near half,
    which is in the hop's. Raises EyelevelError."""
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
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except FileNotFoundError:
        raise EyelevelError("the client ended before the hop was set up") from None


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
    # A BPF program: the code, the jumps if true and if false, and the constant of each line (linux/bpf_common.h). It
    # passes packets that are IPv4, TCP or UDP, and neither from nor to the address. (Packets of SOCK_DGRAM begin with
    # their IP header.)
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
