"""`python -m replay.cross_traffic_flows SPEC`: the background flows of a replay, with both ends of each.

    server's host ── veth ── servers' namespace ══ emulated network ══ client's namespace ── veth ── client's host

Each flow has a host at either end: a network namespace with its own address, set up as the flow's protocol says,
independently of the page's protocol. All flows share the emulated network with the page.

TCP is the kernel's: each host has a socket; this process writes to one and reads from the other. QUIC is served by the
protocol's server; our client in Rust downloads one file after another from it.

Prints a line when it is ready. On BEGIN at the socket CONTROL, the flows begin; STEADY is the answer when they have run
for as long as SPEC says. On SIGTERM, it leaves their ACCOUNT.
"""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from base.errors import EyelevelError, reports_errors
from base.files import write_json
from base.jail import hand_over
from base.network_namespaces import NetworkNamespace
from base.places import ca_certificate, tool
from base.portable import from_argument
from base.processes import run_program
from base.qlog import METRICS, read_qlogs
from record.cross_traffic import FILE_PATH, HOST, generate
from record.site import Site, write_site
from replay import world
from replay.cross_traffic import ACCOUNT, BEGIN, CONTROL, FOLDER, SAMPLES, STEADY, CrossTrafficSpec
from servers.certificates import certify, machine_ca
from servers.contract import Serving
from servers.kernel_sockets import KernelSockets, TcpInfo, decoded
from servers.registry import server_of
from tuning import kernel
from tuning.cross_traffic import Flow
from tuning.impairments.contract import DOWN
from tuning.impairments.on_off import OnOff

# Each flow has a block of four addresses at each end. They are from RFC 5737, so they differ from those of sites
# (198.18.0.0/15).
SERVERS, CLIENTS = "203.0.113", "198.51.100"
TCP_PORT, QUIC_PORT = 5001, 443
# The number of requests under way over QUIC: the next files are requested before the last one has come.
OUTSTANDING = 4
QUIC_CLIENT = "quinn_client"

# The option with which it prints its version.
CLIENT_PROGRAMS = {QUIC_CLIENT: "--version"}

# The most bytes written at once, and read at once; how often bytes are read, and counted. A link of 100 Mbit/s carries
# 125 kB between two reads.
WRITTEN, READ_BYTES, READ_S, SAMPLE_S = memoryview(bytes(1 << 18)), 1 << 20, 0.01, 0.05
# A connection must be established within this time.
CONNECT_S = 60.0


class Host:
    """An end of a flow: a network namespace connected to that of the servers, or of the client (`near`)."""

    def __init__(self, near: NetworkNamespace, network: str, number: int) -> None:
        """Raises EyelevelError."""
        gateway, self.address = (f"{network}.{4 * number + place}" for place in (1, 2))
        self.namespace = NetworkNamespace.fresh()
        device = f"{world.CROSS_TRAFFIC_DEVICE}{number}"
        with near.entered():
            kernel.apply_sysctls({"net.ipv4.ip_forward": "1"})
            commands = [
                f"link add {device} type veth peer name eth0 netns {self.namespace.path}",
                f"address add {gateway}/30 dev {device}",
                f"link set {device} up",
            ]
            _ip(commands)
        with self.namespace.entered():
            commands = ["link set lo up", f"address add {self.address}/30 dev eth0", "link set eth0 up"]
            _ip([*commands, f"route add default via {gateway} dev eth0"])
            world.open_ports()


class Connection(ABC):
    """A flow that is set up. `bytes` is the number of bytes that its receiver has received."""

    bytes = 0

    def __init__(self, flow: Flow, server: Host, client: Host, draws: random.Random) -> None:
        self.flow = flow
        self.server, self.client = server, client
        self._turns = _turns(flow.on_off, draws) if flow.on_off else None
        self._next_turn_s: float | None = None

    def begin(self, now_s: float) -> None:
        """Begin to send; a flow that is on and off in turns is on first."""
        self.switch(on=True)
        if self._turns:
            self._next_turn_s = now_s + next(self._turns)

    def look(self, now_s: float) -> None:
        """Count the received bytes; switch on or off if it is time. Raises EyelevelError when the flow has ended."""
        self.receive()
        while self._turns and self._next_turn_s is not None and now_s >= self._next_turn_s:
            self._is_on = not self._is_on
            self.switch(on=self._is_on)
            self._next_turn_s += next(self._turns)

    _is_on = True

    @abstractmethod
    def switch(self, *, on: bool) -> None:
        """Start sending, or stop."""

    @abstractmethod
    def receive(self) -> None:
        """Count the received bytes. Raises EyelevelError when the flow has ended."""

    @abstractmethod
    def account(self) -> dict[str, Any]:
        """The sender's account of the flow."""

    def account_of_server(self) -> dict[str, Any]:
        """The account of the flow in the server's log; call this after the flow has ended."""
        return {}

    def ended(self, why: object) -> EyelevelError:
        """The error that the flow has ended, with the reason."""
        return EyelevelError(f"the background flow {self.flow.name} {self.flow.direction} ended: {why}")


class TcpConnection(Connection):
    """A flow over the kernel's TCP."""

    def __init__(self, flow: Flow, server: Host, client: Host, draws: random.Random, poll: select.epoll) -> None:
        """Begin to connect; call `connected` afterwards. Raises EyelevelError."""
        super().__init__(flow, server, client, draws)
        self._poll, self._buffer = poll, bytearray(READ_BYTES)
        sender, receiver = (server, client) if flow.direction == DOWN else (client, server)
        protocol = flow.protocol
        with receiver.namespace.entered():
            kernel.apply_sysctls(protocol.client_kernel)
            kernel.tune_client_routes("eth0", protocol)
        with sender.namespace.entered():
            kernel.apply_sysctls(protocol.server_kernel)
            kernel.tune_server_routes("eth0", protocol)
            kernel.set_discipline("eth0", paced=protocol.pacing)
            kernel.limit_buffers("eth0", protocol)
            self._kernel = KernelSockets()
        with server.namespace.entered():
            self._listener = socket.create_server((server.address, TCP_PORT))
            self._listener.settimeout(CONNECT_S)
        with client.namespace.entered():
            self._near_client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._near_client.setblocking(False)
        self._near_client.connect_ex((server.address, TCP_PORT))

    def connected(self) -> None:
        """Wait until the flow is connected. Raises EyelevelError when that fails."""
        try:
            near_server, _ = self._listener.accept()
        except OSError as error:
            raise self.ended(f"it could not connect: {error}") from None
        near_server.setblocking(False)
        down = self.flow.direction == DOWN
        self._sender, self._receiver = (near_server, self._near_client) if down else (self._near_client, near_server)
        control = self.flow.protocol.congestion_control
        self._sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        self._poll.register(self._sender, 0)

    @property
    def descriptor(self) -> int:
        return self._sender.fileno()

    def switch(self, *, on: bool) -> None:
        self._poll.modify(self._sender, select.EPOLLOUT if on else 0)

    def send(self) -> None:
        """Write as much as the kernel accepts. Raises EyelevelError when the flow has ended."""
        try:
            while self._sender.send(WRITTEN) == len(WRITTEN):
                pass
        except BlockingIOError:
            pass
        except OSError as error:
            raise self.ended(error.strerror) from None

    def receive(self) -> None:
        try:
            while read_bytes := self._receiver.recv_into(self._buffer, 0, socket.MSG_TRUNC):
                self.bytes += read_bytes
        except BlockingIOError:
            return
        except OSError as error:
            raise self.ended(error.strerror) from None
        raise self.ended("its sender closed the connection")

    def account(self) -> dict[str, Any]:
        info = self._info()
        taken = self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        more = {} if info is None else {"min_rtt_ms": info.min_rtt_ms, "retransmitted": info.retransmitted}
        return {"congestion_control": taken, **more}

    def _info(self) -> TcpInfo | None:
        port = self._sender.getsockname()[1]
        infos = [decoded(message) for message in self._kernel.ask()]
        return next((info for info in infos if info and info.server[1] == port), None)


class QuicConnection(Connection):
    """A flow over QUIC: downloads from a protocol's server, over one connection."""

    def __init__(
        self,
        flow: Flow,
        server: Host,
        client: Host,
        draws: random.Random,
        site: Site,
        folder: Path,
        ends: ExitStack,
        *,
        logged: bool,
    ) -> None:
        """If `logged`, the server logs its congestion control. Raises EyelevelError."""
        super().__init__(flow, server, client, draws)
        program = server_of(flow.protocol)
        # Send the files one after another: if they took turns, all would end at once, and the next would come a round
        # trip later.
        protocol = replace(flow.protocol, scheduler="first-come") if "scheduler" in program.choices else flow.protocol
        folder.mkdir()
        self._qlog = folder / "qlog" if logged else None
        exchanges = tuple(replace(exchange, server=server.address) for exchange in site.exchanges)
        placed = replace(site, recorded_ips={server.address: server.address}, exchanges=exchanges)
        serving = Serving(
            site=placed,
            content=site.folder,
            protocol=protocol,
            folder=folder,
            certify=lambda: _certificates(server.address, folder / "certificates"),
            request_log=None,
            qlog=self._qlog,
        )
        if self._qlog:
            self._qlog.mkdir()
        with server.namespace.entered():
            ends.enter_context(program.serve(serving))
        command: list[str | Path] = [
            tool(QUIC_CLIENT),
            "--address",
            f"{server.address}:{QUIC_PORT}",
            "--ca",
            ca_certificate(),
        ]
        command += ["--url", f"https://{HOST}{FILE_PATH}", "--outstanding", str(OUTSTANDING)]
        self._log = (folder / "client.log").open("w+b")
        with client.namespace.entered():
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        assert self._process.stdin and self._process.stdout
        self._commands, self._counts = self._process.stdin, self._process.stdout
        os.set_blocking(self._counts.fileno(), False)
        self._rest = b""
        ends.callback(self._process.wait)
        ends.callback(self._process.terminate)

    def connected(self) -> None:
        """Wait until the flow is connected. Raises EyelevelError when that fails."""
        if not select.select([self._counts], [], [], CONNECT_S)[0]:
            raise self.ended(f"it could not connect within {CONNECT_S:.0f} s")
        self.receive()

    def switch(self, *, on: bool) -> None:
        self._commands.write(b"on\n" if on else b"off\n")
        self._commands.flush()

    def receive(self) -> None:
        # The client's output is None while there is nothing to read, and empty once the client has ended, which it does
        # by itself only in case of an error.
        while text := self._counts.read(1 << 16):
            *lines, self._rest = (self._rest + text).split(b"\n")
            if lines:
                self.bytes = int(lines[-1])
        if text == b"":
            self._log.seek(0)
            raise self.ended((self._log.read().decode(errors="replace").strip().splitlines() or ["no word"])[-1])

    def account(self) -> dict[str, Any]:
        return {"congestion_control": self.flow.protocol.congestion_control}

    def account_of_server(self) -> dict[str, Any]:
        if not self._qlog:  # the settings determine what it does; a validation reads its log
            return {}
        logs = read_qlogs(self._qlog)
        rtts_ms = [event.data["min_rtt"] for log in logs for event in log.named(METRICS) if "min_rtt" in event.data]
        controls = {str(log.parameters.get("congestion_control")) for log in logs}
        connections = {log.parameters.get("emulated_connections") for log in logs}
        return {
            "congestion_control": " and ".join(sorted(controls)) or "none",
            "emulated_connections": next(iter(connections)) if len(connections) == 1 else None,
            "min_rtt_ms": min((rtt_ms for rtt_ms in rtts_ms if rtt_ms), default=None),
        }


class CrossTraffic:
    """All flows of a replay."""

    def __init__(self, spec: CrossTrafficSpec, ends: ExitStack) -> None:
        """Set the flows up. Raises EyelevelError."""
        self._spec = spec
        self._poll = ends.enter_context(select.epoll())
        draws = random.Random(spec.seed)
        near_servers, near_client = NetworkNamespace.this(), NetworkNamespace.of(spec.client)
        _ip([f"route add {CLIENTS}.0/24 dev {world.outward_device()}"])
        site = None
        self.flows: list[TcpConnection | QuicConnection] = []
        for number, flow in enumerate(spec.flows):
            hosts = Host(near_servers, SERVERS, number), Host(near_client, CLIENTS, number)
            one_draws = random.Random(draws.getrandbits(32))
            if flow.protocol.in_kernel:
                self.flows.append(TcpConnection(flow, *hosts, one_draws, self._poll))
            else:
                site = site or write_site(generate(), FOLDER / "site")
                self.flows.append(
                    QuicConnection(flow, *hosts, one_draws, site, FOLDER / f"flow{number}", ends, logged=spec.logged)
                )
        for one in self.flows:
            one.connected()
        self._senders = {one.descriptor: one for one in self.flows if isinstance(one, TcpConnection)}

    def attend(self, control: socket.socket, samples: TextIO) -> dict[str, Any]:
        """Run the flows from BEGIN until SIGTERM; returns their account. Raises EyelevelError when one ends."""
        over = False

        def end(*_: object) -> None:
            nonlocal over
            over = True

        signal.signal(signal.SIGTERM, end)
        print("ready", flush=True)
        samples.write("at_s\tflow\tbytes\n")
        self._poll.register(control, select.EPOLLIN)
        asker: socket.socket | None = None
        begun_s = steady_s = None
        next_read_s = next_sample_s = time.monotonic()
        while not over:
            ready = self._poll.poll(max(0.0, next_read_s - time.monotonic()))
            now_s = time.monotonic()
            for descriptor, _ in ready:
                if descriptor in self._senders:
                    self._senders[descriptor].send()
                elif begun_s is None:
                    asker, _ = control.accept()
                    asker.recv(len(BEGIN))
                    for one in self.flows:
                        one.begin(now_s)
                    begun_s = now_s
            if now_s < next_read_s:
                continue
            next_read_s = now_s + READ_S
            for one in self.flows:
                one.look(now_s)
            if begun_s is not None and now_s >= next_sample_s:
                next_sample_s = now_s + SAMPLE_S
                at_s = time.time()
                samples.writelines(f"{at_s:.3f}\t{number}\t{one.bytes}\n" for number, one in enumerate(self.flows))
            if asker and begun_s is not None and now_s >= begun_s + self._spec.steady_s:
                steady_s = now_s - begun_s
                samples.flush()
                asker.sendall(f"{STEADY} {steady_s:.3f}\n".encode())
                asker.close()
                asker = None
        return {"steady_s": steady_s and round(steady_s, 3), "flows": [self._account(one) for one in self.flows]}

    def _account(self, one: TcpConnection | QuicConnection) -> dict[str, Any]:
        addresses = {"server": one.server.address, "client": one.client.address}
        return {
            "name": one.flow.name,
            "direction": one.flow.direction,
            **addresses,
            "bytes": one.bytes,
            **one.account(),
        }


def _turns(times: OnOff, draws: random.Random) -> Any:
    """The seconds for which a flow is on, then off, then on again, and so on without end."""
    while True:
        for mean_s in (times.on_s, times.off_s):
            yield mean_s if times.periodic else draws.expovariate(1 / mean_s)


def _certificates(address: str, folder: Path) -> Any:
    folder.mkdir()
    certificates = certify(machine_ca(), {address: (HOST,)}, folder)
    hand_over(folder)
    return certificates


def _ip(commands: list[str]) -> None:
    run_program([tool("ip"), "-batch", "-"], "the network of background flows could not be set", "\n".join(commands))


@reports_errors
def main(spec: CrossTrafficSpec) -> None:
    """Run the flows of `spec` until SIGTERM."""
    with ExitStack() as ends:
        cross_traffic = CrossTraffic(spec, ends)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control, (FOLDER / SAMPLES).open("w") as samples:
            control.bind(str(CONTROL))
            control.listen(1)
            account = cross_traffic.attend(control, samples)
    for said, one in zip(account["flows"], cross_traffic.flows, strict=True):
        said.update(one.account_of_server())
    write_json(FOLDER / ACCOUNT, account)


if __name__ == "__main__":
    main(from_argument(sys.argv[1]))
