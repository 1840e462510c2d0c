"""The other end of a probe: it serves those who have the secret, one at a time, and is silent to all others.

It sends only to the address of a connection whose other end has proved that it has the secret, and no more than its
owner allows. So nobody can make it send to a third party. Datagrams from strangers get no answer.
"""

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from base.errors import EyelevelError
from base.text import printable
from measure.probe.conversation import Conversation, answer, read_secret, understood
from measure.probe.datagrams import MOST_MBPS, TOKEN_BYTES, End, Numbers, Times
from measure.probe.flows import LARGE_BYTES, Flow

# A stranger who sends nothing is disconnected after GREETING_S, and at most MOST_STRANGERS may be connected, so that
# they cannot keep others away.
GREETING_S, MOST_STRANGERS = 10.0, 16
# The time limit of a probe.
LONGEST_PROBE_S = 600.0
# The longest wait for packets that are on their way to the other end; a longer one makes no sense.
LONGEST_QUIET_S = 10.0


@dataclass(frozen=True)
class Command:
    """If `sends`: send `flow`. Otherwise: report the arrivals of `flow` once none has come for `quiet_s`.

    The datagrams of `flow` are numbered from `first`.
    """

    flow: Flow
    first: int
    sends: bool
    quiet_s: float = 0.0


@dataclass(frozen=True)
class Agreement:
    """The token that datagrams must carry, and the most bytes that the far end sends."""

    token: str
    most_bytes: int

    def __post_init__(self) -> None:
        if len(bytes.fromhex(self.token)) != TOKEN_BYTES or not 0 < self.most_bytes < 1 << 62:
            raise ValueError("no agreement of a probe")


@dataclass(frozen=True)
class Sent:
    """The rate at which the far end sent a flow."""

    mbps: float

    def __post_init__(self) -> None:
        if not 0 < self.mbps <= MOST_MBPS:
            raise ValueError("no rate of a probe")


@dataclass(frozen=True)
class Arrived:
    """The packets of a flow that arrived at the far end: for each, its number, when it was sent (ns of the sender's
    clock) and when it arrived (ns of the receiver's)."""

    arrived: tuple[tuple[int, int, int], ...]

    def of(self, numbers: Numbers) -> Times:
        """Number → times, like `End.arrived`. Raises EyelevelError when a number or a time is impossible."""
        times = {number: (sent, at) for number, sent, at in self.arrived}
        numbers_fit = all(numbers.first <= number <= numbers.last for number in times)
        if not numbers_fit or not all(0 <= ns < 1 << 63 for both in times.values() for ns in both):
            raise EyelevelError("the other end says that something arrived which was not sent")
        return times


class Server:
    """A server of probes at one address; it disconnects a client that has not proved itself within `greeting_s`."""

    def __init__(
        self,
        address: str,
        port: int,
        secret: Path,
        most_bytes: int,
        tell: Callable[[str], None],
        greeting_s: float = GREETING_S,
    ) -> None:
        """Raises EyelevelError when the address is not this machine's, or the port is in use."""
        self._secret, self._most_bytes, self._tell = read_secret(secret), most_bytes, tell
        self._greeting_s = greeting_s
        self._busy = threading.Lock()
        self._strangers = threading.BoundedSemaphore(MOST_STRANGERS)
        try:
            family, _, _, _, where = socket.getaddrinfo(
                address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._listener = socket.socket(family, socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                self._listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._listener.bind(where)
            self._listener.listen()
            self._end = End(family, where, echo=True)
        except OSError as error:
            raise EyelevelError(
                f"{printable(address)}, port {port}, is not available: {error.strerror}; choose one of this "
                "machine's addresses, and a free port (--port)"
            ) from None

    def serve(self) -> NoReturn:
        """Serve probes until interrupted."""
        while True:
            connection, (address, *_) = self._listener.accept()
            if self._strangers.acquire(blocking=False):
                threading.Thread(target=self._greet, args=(connection, address), daemon=True).start()
            else:
                connection.close()

    def _greet(self, connection: socket.socket, address: str) -> None:
        """Check whether the other end has the secret, and if so serve its probe."""
        # The deadline holds however slowly the stranger sends.
        deadline = threading.Timer(self._greeting_s, _hang_up, [connection])
        deadline.daemon = True
        deadline.start()
        try:
            conversation = answer(connection, self._secret)
        except EyelevelError as error:
            self._tell(f"refused {address}: {error}")
            connection.close()
            return
        finally:
            deadline.cancel()
            self._strangers.release()
        with conversation:
            self._talk(conversation, connection, address)

    def _talk(self, conversation: Conversation, connection: socket.socket, address: str) -> None:
        if not self._busy.acquire(blocking=False):
            with suppress(EyelevelError):
                conversation.say({"fault": "it serves another probe; try again in some minutes"})
            return
        deadline = threading.Timer(LONGEST_PROBE_S, _hang_up, [connection])
        deadline.daemon = True
        deadline.start()
        self._tell(f"{address}: a probe begins")
        try:
            self._tell(f"{address}: {self._measured(conversation, address)}")
        except EyelevelError as error:
            self._tell(f"{address}: {error}")
            with suppress(EyelevelError):
                conversation.say({"fault": str(error)})
        finally:
            deadline.cancel()
            self._end.end()
            self._busy.release()

    def _measured(self, conversation: Conversation, address: str) -> str:
        """Carry out the other end's commands until it ends; returns a summary. Raises EyelevelError."""
        token = secrets.token_bytes(TOKEN_BYTES)
        self._end.begin(token, address)
        conversation.say({"token": token.hex(), "most_bytes": self._most_bytes})
        sent_bytes = 0
        while (message := conversation.hear()) != {"end": True}:
            command = understood(message, Command)
            flow, numbers = command.flow, Numbers(command.first, command.flow.packets)
            self._end.check(flow, numbers, self._most_bytes - sent_bytes, LARGE_BYTES)
            if command.sends:
                if not self._end.sender:
                    raise EyelevelError("none of your datagrams has arrived here, so nothing is sent to you")
                sent_bytes += flow.packets * flow.size_bytes
                conversation.say({"mbps": self._end.sent(flow, command.first, self._end.sender)})
            else:
                arrived = self._end.arrived(numbers, min(command.quiet_s, LONGEST_QUIET_S))
                conversation.say({"arrived": [(number, *times) for number, times in arrived.items()]})
        return f"a probe ends; {sent_bytes / 1e6:.1f} MB were sent there"


def _hang_up(connection: socket.socket) -> Any:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
