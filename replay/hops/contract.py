"""The contract of kinds of hop: programs at work between the two halves of a network."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from replay.spec import ReplaySpec
from servers.contract import Serving
from tuning.hops import USUAL_CONGESTION_CONTROL, USUAL_WINDOW_PACKETS, Hop
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Work:
    """A hop in a replay: what the network says of it, what is replayed, how the servers serve, and what is to be kept
    of it (`hop` in the evidence)."""

    hop: Hop
    spec: ReplaySpec
    serving: Serving
    account: dict[str, Any]


class HopKind:
    """One kind of hop.

    `name` is what `kind` of a hop in networks.toml says. `programs` are its programs, each with the option by which it
    prints its version. `ends` are the transports whose packets end at it: the servers must see none of them that is not
    the hop's; where a kind has none, nothing is at work. `ends_tls`: whether TLS ends at it, too. `proxy` is the host
    and port at which a browser knows it, None if it does not. `congestion_controls` are those with which it can send,
    and `initial_windows` the least and the most packets with which it can begin.

    `validation_protocol` is a protocol that can be measured with it. `counts` is what its account has of every
    connection of a client in a validation: what that is, the account's key, and the number.
    """

    name: str
    programs: ClassVar[Mapping[str, str]] = {}
    ends: tuple[str, ...] = ()
    ends_tls: bool = False
    proxy: tuple[str, int] | None = None
    congestion_controls: tuple[str, ...] = ("cubic", "bbr", "reno")
    initial_windows: tuple[int, int | None] = (1, None)
    validation_protocol: str = "tcp"
    counts: tuple[tuple[str, str, int], ...] = ()

    def refusal(self, hop: Hop) -> str | None:
        """Why there can be no such hop of this kind, in one line; None if there can."""
        if not self.ends and (hop.congestion_control, hop.initial_window_packets) != (
            USUAL_CONGESTION_CONTROL,
            USUAL_WINDOW_PACKETS,
        ):
            return "hop.congestion_control and hop.initial_window_packets are of a hop that sends by itself"
        if hop.congestion_control not in self.congestion_controls:
            return f"hop.congestion_control of {self.name} must be {', '.join(self.congestion_controls)}"
        least, most = self.initial_windows
        if hop.initial_window_packets < least:
            return f"hop.initial_window_packets of {self.name} must be at least {least}"
        if most is not None and hop.initial_window_packets > most:
            return f"hop.initial_window_packets of {self.name} must be at most {most}"
        return None

    def protocol_refusal(self, protocol: Protocol) -> str | None:
        """Why pages cannot be loaded over `protocol` through it, in one line about the hop; None if they can."""
        return None

    def origin(self, hop: Hop) -> Protocol | None:
        """The protocol by which the servers serve the hop, if that is not the one under test."""
        return None

    def at_work(self, work: Work) -> AbstractContextManager[None]:
        """A block inside which the hop works, entered in its network namespace. Raises EyelevelError."""
        return nullcontext()

    def fault(self, account: Mapping[str, Any]) -> str | None:
        """The fault of its work, by `account`: how many connections its TCP accepted and opened."""
        return None
