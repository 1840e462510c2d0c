"""The interface between a kind of shells and a replay: shells run the client on an emulated network."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tuning.networks import Network

# The timekeeping, in the evidence, of shells that the kernel treats like any program.
ORDINARY_PRIORITY = "ordinary priority"


def far_timekeeping(timekeeping: Path) -> Path:
    """The file with the timekeeping of the far half of a network with a hop; it is next to `timekeeping`, the file of
    the near half."""
    return timekeeping.with_name(f"far-{timekeeping.name}")


@dataclass(frozen=True)
class NestedShells:
    """Nested shells, from the servers to the client.

    `command` is the beginning of a command line: it runs the rest, as the same user with the same capabilities, on the
    network; it ends with the rest's status, and forwards SIGTERM to it. `record` is stored with each run: the shells'
    name, and how they were configured.
    """

    command: list[str | Path]
    record: Mapping[str, Any]


class Shells(ABC):
    """One kind of shells.

    `name` is the kind's name. `programs` are its programs, each with the option that prints its version. `seeded`:
    whether random choices are drawn from a seed. `timekeeping`: how the shells keep time (`measure.host.timekeeping`);
    None if that depends on the user. `name_server_port` is the port at which the client's name server must listen.
    `delays_servers`: whether single servers can be farther away than the network says. `in_opportunities`: whether a
    link of constant rate sends only at opportunities: whole packets at whole milliseconds. A single packet may then
    have to wait for the next opportunity.
    """

    name: str
    programs: ClassVar[Mapping[str, str]]
    seeded: bool = True
    timekeeping: str | None = None
    name_server_port: int = 53
    delays_servers: bool = False
    in_opportunities: bool = False

    def refusal(self, network: Network) -> str | None:
        """Why the shells cannot emulate `network`, in one line that names it; None if they can."""
        return None

    def require(self) -> None:
        """Raises EyelevelError, with instructions, when the shells are not installed."""
        return

    @abstractmethod
    def nested(
        self,
        network: Network,
        seed: int | None,
        timekeeping: Path,
        folder: Path,
        extra_rtts_ms: Mapping[str, float] | None = None,
    ) -> NestedShells:
        """The shells that emulate `network`, with random choices drawn from `seed` (None: a new one). `extra_rtts_ms`
        says which servers are farther away (`replay.spec`); leave it out if the shells cannot delay servers.

        At their end, the shells write how they kept time into the file `timekeeping`. `folder`, which exists, is for
        files that they need. Raises EyelevelError.

        For a network with a hop, the result contains the shells of both halves; the far half writes its timekeeping to
        `far_timekeeping`.
        """
