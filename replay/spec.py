"""The specification of a replay, and the places where its parts meet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuning.cross_traffic import Flow
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network
from tuning.protocols import Protocol

# Inside a replay, /run is a separate file system in memory, which ends with the replay.
PRIVATE = Path("/run/eyelevel")
CONTROL = PRIVATE / "control"
# The folder that the servers can write, and no other program in a jail.
SERVERS = PRIVATE / "servers"
# The file with the emulated network's timekeeping (`replay.shells.contract`).
TIMEKEEPING = PRIVATE / "timekeeping"

# The address at which a hop that tunnels listens, and its name. No site uses such a high address, and no host has this
# name (RFC 2606).
PROXY_ADDRESS, PROXY_HOST, PROXY_PORT = "198.19.255.254", "hop.eyelevel.invalid", 443


@dataclass(frozen=True)
class ReplaySpec:
    """One replay: the site's folder, the network and protocol, and the file for the servers' request log.

    `qlog`: the folder to which servers log the congestion control of each connection, if they can.
    `repeatable`: whether pages are changed to make the same requests on every load (`replay.repeatable`).
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    `extra_rtts_ms`: server address → by how much its round-trip time exceeds the network's.
    `recorded_certificates`: whether certificate chains are as long as the recorded ones, and name as many hosts.
    `recorded_alpn`: whether servers that spoke only HTTP/1.1 when recorded also do so in the replay, over TCP.
    `seed`: the seed of the network's random choices; None draws a new one.
    `monitor`: a command that runs next to the servers for as long as the client does. It prints a line when it is
    ready, and ends in an orderly way on SIGTERM.
    `shells`: the name of the shells that emulate the network (`replay.shells.registry`).
    `flows`: background flows, without time to settle; the network's own unless given.
    `cross_traffic_awaits_turn`: whether background flows begin only on request of the client (`replay.cross_traffic`).
    `cross_traffic_log`: the file for the bytes of background flows over time.
    `server_cores`, `emulator_cores`: the processor cores on which the servers and the network run; any if empty.
    """

    site: Path
    network: Network
    protocol: Protocol
    request_log: Path | None = None
    repeatable: bool = False
    think_time: bool = False
    extra_rtts_ms: Mapping[str, float] = field(default_factory=dict)
    recorded_certificates: bool = False
    recorded_alpn: bool = False
    seed: int | None = None
    monitor: tuple[str, ...] = ()
    qlog: Path | None = None
    shells: str = DEFAULT_SHELLS
    flows: tuple[Flow, ...] = ()
    cross_traffic_awaits_turn: bool = False
    cross_traffic_log: Path | None = None
    server_cores: tuple[int, ...] = ()
    emulator_cores: tuple[int, ...] = ()


@dataclass(frozen=True)
class ReplayOutcome:
    """The outcome of a replay: the command's exit status, and the settings as read back."""

    status: int
    evidence: Mapping[str, Any]
