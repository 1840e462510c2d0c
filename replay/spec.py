"""The specification of a replay, and the places where its parts meet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuning.cross_traffic import Flow
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network
from tuning.protocols import Protocol

# Inside the replay /run is a file system of its own, in memory, which ends with the replay.
PRIVATE = Path("/run/eyelevel")
CONTROL = PRIVATE / "control"
# The emulated network's means of timekeeping (`replay.shells.contract`).
TIMEKEEPING = PRIVATE / "timekeeping"

# Where a hop that tunnels listens, and its name: no site has an address so far up, and no host this name (RFC 2606).
PROXY_ADDRESS, PROXY_HOST, PROXY_PORT = "198.19.255.254", "hop.eyelevel.invalid", 443

# In the environment of a monitor: the device of the servers' namespace that leads to the client.
MONITORED_DEVICE = "EYELEVEL_MONITORED_DEVICE"


@dataclass(frozen=True)
class ReplaySpec:
    """One replay: the site's folder, the network and protocol, and where to log the servers' requests.

    `qlog`: the folder to which servers that can log what the congestion control of each connection does.
    `repeatable`: whether pages are made to ask for the same on every load (`replay.repeatable`).
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    `extra_rtts_ms`: server address → how much longer than the network's its round-trip time is.
    `recorded_certificates`: whether certificate chains are as long as the recorded ones, and name as many hosts.
    `recorded_alpn`: whether servers of which only HTTP/1.1 was recorded speak that, too, where they serve over TCP.
    `seed`: what the network's random choices are drawn from; None draws a new one.
    `monitor`: a command that runs next to the servers for as long as the client does: it prints a line when it is
    ready, and ends in order on SIGTERM.
    `shells`: which emulate the network (`replay.shells.registry`).
    `flows`: background flows beside the page, without time to settle; those of the network unless given.
    `cross_traffic_awaits_turn`: whether background flows begin only when the client lets them (`replay.cross_traffic`).
    `cross_traffic_log`: where to put how much of them had come over time.
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
    """How a replay went: the command's exit status, and the settings as they were read back."""

    status: int
    evidence: Mapping[str, Any]
