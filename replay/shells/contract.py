"""The interface of a kind of shells to a replay: it runs the client on an emulated network."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tuning.networks import Network

# The words of the evidence for shells that the kernel gives no more than any program.
ORDINARY_PRIORITY = "ordinary priority"


def far_timekeeping(timekeeping: Path) -> Path:
    """Where the far half of a network with a hop says with what it kept time, beside `timekeeping`, the near half's."""
    return timekeeping.with_name(f"far-{timekeeping.name}")


@dataclass(frozen=True)
class NestedShells:
    """Shells around each other, from the servers to the client.

    `command` is the beginning of a command line: it runs what follows it, as the same user with the same capabilities,
    behind the network, ends with its status, and hands SIGTERM on to it. `record` is what a run keeps of it: the name
    of the shells, and how they were told what the network is.
    """

    command: list[str | Path]
    record: Mapping[str, Any]


class Shells(ABC):
    """One kind of shells.

    `name` is what it is called by. `programs` are its programs, each with the option by which it prints its version.
    `seeded`: whether what is random is drawn from a seed. `timekeeping`: with what they keep time
    (`measure.host.timekeeping`), None where that depends on the user. `name_server_port` is where the client's name
    server has to listen. `delays_servers`: whether single servers can be farther away than the network says.
    `in_opportunities`: whether a constant rate is given out in whole packets at whole milliseconds, so that a single
    packet may wait for the next.
    """

    name: str
    programs: ClassVar[Mapping[str, str]]
    seeded: bool = True
    timekeeping: str | None = None
    name_server_port: int = 53
    delays_servers: bool = False
    in_opportunities: bool = False

    def refusal(self, network: Network) -> str | None:
        """Why they cannot emulate `network`, in one line that names it; None if they can."""
        return None

    def require(self) -> None:
        """Raises EyelevelError, which says how to get them, when they are not installed."""
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
        """The shells that emulate `network`, what is random drawn from `seed` (a new one if None), with servers that
        are farther away than it says, by `extra_rtts_ms` (`replay.spec`); none where servers cannot be delayed.

        Their means of timekeeping are in the file `timekeeping` at their end. The files that they need are in `folder`,
        which exists. Raises EyelevelError.

        For a network with a hop, these are the shells of both halves, whose far one has its file at `far_timekeeping`.
        """
