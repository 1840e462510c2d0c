"""What is replayed, and how a replay's parts tell each other."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuning.networks import Network
from tuning.protocols import Protocol

# Inside the replay /run is a file system of its own, in memory, which ends with the replay.
PRIVATE = Path("/run/eyelevel")
CONTROL = PRIVATE / "control"

# In the environment of a witness: the device of the servers' namespace that leads to the client.
WITNESSED_DEVICE = "EYELEVEL_WITNESSED_DEVICE"


@dataclass(frozen=True)
class ReplaySpec:
    """One replay: the site's folder, the network and protocol, and where to log what the servers are asked.

    `qlog`: the folder to which the servers of QUIC log what the congestion control of each connection does.
    `repeatable`: whether pages are made to ask for the same on every load (`replay.repeatable`).
    `think_time`: whether a response is sent as long after its request as when it was recorded.
    `seed`: what the network's random choices are drawn from; None draws a new one.
    `witness`: a command that runs next to the servers for as long as the client does: it prints a line when it is
    ready, and ends in order on SIGTERM.
    `server_cores`, `emulator_cores`: the processor cores on which the servers and the network run; any if empty.
    """

    site: Path
    network: Network
    protocol: Protocol
    request_log: Path | None = None
    repeatable: bool = False
    think_time: bool = False
    seed: int | None = None
    witness: tuple[str, ...] = ()
    qlog: Path | None = None
    server_cores: tuple[int, ...] = ()
    emulator_cores: tuple[int, ...] = ()

    def dumps(self) -> str:
        """As JSON, for the processes inside the namespaces."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def loads(cls, text: str) -> "ReplaySpec":
        """The inverse of `dumps`."""
        values = json.loads(text)
        protocol = values["protocol"]
        protocol["connection_options"] = tuple(protocol["connection_options"])
        return cls(
            site=Path(values["site"]),
            network=Network(**values["network"]),
            protocol=Protocol(**protocol),
            request_log=Path(values["request_log"]) if values["request_log"] else None,
            repeatable=values["repeatable"],
            think_time=values["think_time"],
            seed=values["seed"],
            witness=tuple(values["witness"]),
            qlog=Path(values["qlog"]) if values["qlog"] else None,
            server_cores=tuple(values["server_cores"]),
            emulator_cores=tuple(values["emulator_cores"]),
        )


@dataclass(frozen=True)
class ReplayOutcome:
    """How a replay went: the command's exit status, and the settings as they were read back."""

    status: int
    evidence: Mapping[str, Any]
