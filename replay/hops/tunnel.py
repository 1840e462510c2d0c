"""A hop that is a CONNECT-UDP proxy (RFC 9298): masque_proxy.

A browser is configured with its address, and sends the packets of its QUIC connections as datagrams of one connection
to the proxy, which forwards them from its own address.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from base.errors import EyelevelError
from base.jail import Jail, file_in, jailed
from base.places import tool
from base.processes import run_program, running
from replay.hops.contract import HopKind, Work
from replay.hops.namespace import FOLDER, version
from replay.names import HOSTS
from replay.spec import PROXY_ADDRESS, PROXY_HOST, PROXY_PORT
from replay.world import open_ports
from servers.certificates import certify, machine_ca
from servers.own_quic import SEGMENT_BYTES
from tuning.protocols import Protocol

# Each connection of a validation opens this many tunnels, and uses the second.
TUNNELS = 2


class Tunnel(HopKind):
    """masque_proxy."""

    name = "masque"
    programs: ClassVar = {"masque_proxy": "--version"}
    ends = ("tcp", "udp")
    proxy = (PROXY_HOST, PROXY_PORT)
    congestion_controls = ("cubic", "reno")
    initial_windows = (2, 10_000)
    validation_protocol = "quic"
    counts = (("connections from the client", "connections", 1), ("tunnels", "tunnels", TUNNELS))

    def protocol_refusal(self, protocol: Protocol) -> str | None:
        if protocol.in_kernel or protocol.alternative_service:
            return "is a proxy of CONNECT-UDP, which is measured with QUIC alone"
        return None

    @contextmanager
    def at_work(self, work: Work) -> Iterator[None]:
        hop, account = work.hop, work.account
        open_ports()
        run_program(
            [tool("ip"), "address", "add", f"{PROXY_ADDRESS}/32", "dev", "lo"], "the hop cannot have its address"
        )
        certificates = FOLDER / "certificates"
        certificates.mkdir()
        certificate = certify(machine_ca(), {PROXY_ADDRESS: (PROXY_HOST,)}, certificates)[PROXY_ADDRESS]
        program, report = tool("masque_proxy"), FOLDER / "account.json"
        account["program"] = version(program, "--version")
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


HOP = Tunnel()
