"""The contract of kinds of hops: programs that work between the two halves of a network."""

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
    """A hop in a replay: the network's settings of it, the replay's specification, the servers, and the account that is
    stored as `hop` in the evidence."""

    hop: Hop
    spec: ReplaySpec
    serving: Serving
    account: dict[str, Any]


class HopKind:
    """One kind of hop.

    `name` is the value of `kind` in networks.toml. `programs` are its programs, each with the option that prints its
    version. `ends` are the transports that end at the hop: all their packets that reach the servers must be the hop's
    own. If `ends` is empty, no program runs in the hop. `ends_tls`: whether TLS ends at the hop, too. `proxy` is the
    host and port of the hop if browsers use it as a proxy, else None. `congestion_controls` are those with which it can
    send; `initial_windows` are its least and its largest initial window in packets.

    `validation_protocol` is a protocol with which a validation can measure it. `counts` are the expected counters for
    each connection of a validation's client: description, key in the account, number.
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
        """Why this kind cannot implement `hop`, in one line; None if it can."""
        if not self.ends and (hop.congestion_control, hop.initial_window_packets) != (
            USUAL_CONGESTION_CONTROL,
            USUAL_WINDOW_PACKETS,
        ):
            return "hop.congestion_control and hop.initial_window_packets are only for a hop that sends its own packets"
        if hop.congestion_control not in self.congestion_controls:
            return f"hop.congestion_control of {self.name} must be {', '.join(self.congestion_controls)}"
        least, most = self.initial_windows
        if hop.initial_window_packets < least:
            return f"hop.initial_window_packets of {self.name} must be at least {least}"
        if most is not None and hop.initial_window_packets > most:
            return f"hop.initial_window_packets of {self.name} must be at most {most}"
        return None

    def protocol_refusal(self, protocol: Protocol) -> str | None:
        """Why pages cannot be loaded over `protocol` through the hop, in one line about the hop; None if they can."""
        return None

    def origin(self, hop: Hop) -> Protocol | None:
        """The protocol with which the servers serve the hop, if that is not the one under test."""
        return None

    def at_work(self, work: Work) -> AbstractContextManager[None]:
        """A context in which the hop works; enter it in the hop's network namespace. Raises EyelevelError."""
        return nullcontext()

    def fault(self, account: Mapping[str, Any]) -> str | None:
        """Why the hop did not work, according to `account`, which counts the connections that its TCP accepted and
        opened; None if it worked."""
        return None
