"""How the two ends of a path communicate: over TCP, in lines of JSON, signed with a secret that both have.

First, each end proves that it has the secret (HMAC, RFC 2104, of fresh numbers from both ends) without revealing it.
All later lines are signed with a key of this conversation and direction, and counted, so that nobody else can forge,
repeat or omit a line. The lines are not encrypted: anybody on the path can read the measurements.
"""

import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from base.errors import EyelevelError
from base.files import write_private
from base.ownership import give_to_caller
from base.places import cache_dir
from base.structure import structured
from base.text import excerpt, printable

# Both ends must have the same version; raise it with each change of the messages.
VERSION = 1
PROGRAM = "eyelevel probe-network"
# The port for both TCP and UDP; it is not assigned in IANA's list.
PORT = 8617
SECRET_BYTES = 32
NUMBER_BYTES = 16
# The longest line from a sender that has not proved itself, and from the other end, which lists all arrivals of the
# largest flow.
GREETING_BYTES, LINE_BYTES = 1000, 1 << 26
# The longest silence of the other end: while connecting, and later, while it sends a flow and queues drain.
CONNECTING_S, SILENCE_S = 5.0, 45.0

FAULT_LETTERS = 500

Message = Mapping[str, Any]
T = TypeVar("T")


class WrongSecret(EyelevelError):
    """The other end has another secret."""


def secret_file() -> Path:
    """The file with this machine's secret for probes, unless another file is named."""
    return cache_dir() / "probe" / "secret"


def make_secret(file: Path) -> None:
    """Write a new secret into `file`, readable by the caller only."""
    folder_is_new = not file.parent.exists()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, secrets.token_hex(SECRET_BYTES).encode() + b"\n")
    give_to_caller(file, file.parent if folder_is_new else None)


def read_secret(file: Path) -> bytes:
    """The secret in `file`. Raises EyelevelError when it is missing or broken, or others may read it."""
    try:
        mode = file.stat().st_mode & 0o777
        secret = bytes.fromhex(file.read_text().strip())
    except FileNotFoundError:
        raise EyelevelError(
            f"there is no secret in {file}: 'eyelevel probe-network --serve ADDRESS' makes it on the other machine; "
            "copy it from there to the same place, or name it by --secret"
        ) from None
    except (OSError, ValueError):
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise EyelevelError(f"{file} holds no secret of {2 * SECRET_BYTES} hexadecimal digits; copy it again")
    if mode & 0o077:
        raise EyelevelError(f"{file} may be read by others (mode {mode:04o}); make it yours alone: chmod 600")
    return secret


def _signed(key: bytes, *parts: bytes) -> str:
    """The signature of `parts`; only a holder of `key` can make it."""
    # Each part is preceded by its length, so that different parts that join to the same bytes get different signatures.
    return hmac.new(key, b"".join(len(part).to_bytes(8) + part for part in parts), hashlib.sha256).hexdigest()


class Conversation:
    """One end of a connection whose two ends have the same secret."""

    def __init__(self, connection: socket.socket, secret: bytes, numbers: tuple[bytes, bytes], *, asks: bool) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        keys = [_signed(secret, direction, *numbers).encode() for direction in (b"asking", b"answering")]
        self._key, self._other_key = keys if asks else reversed(keys)
        self._sent = self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._connection.close()

    def say(self, message: Message) -> None:
        """Send `message`. Raises EyelevelError."""
        text = json.dumps(message).encode()
        signature = _signed(self._key, self._sent.to_bytes(8), text).encode()
        self._sent += 1
        try:
            self._connection.sendall(signature + b" " + text + b"\n")
        except OSError as error:
            raise EyelevelError(f"the connection to the other end was lost: {error.strerror or error}") from None

    def hear(self) -> Message:
        """The other end's next message. Raises EyelevelError when this message reports a fault, is missing, or has a
        wrong signature."""
        signature, _, text = _line(self._lines, LINE_BYTES).partition(b" ")
        if not _is_same(_signed(self._other_key, self._received.to_bytes(8), text), signature.decode("latin-1")):
            raise EyelevelError("a message of the other end was changed on the way; try again")
        self._received += 1
        message = _message(text)
        if "fault" in message:
            raise EyelevelError(f"the other end says: {printable(str(message['fault'])[:FAULT_LETTERS])}")
        return message

    def ask(self, message: Message) -> Message:
        """Send `message`, and return the answer. Raises EyelevelError."""
        self.say(message)
        return self.hear()


def ask_for_conversation(connection: socket.socket, secret: bytes, connecting_s: float = CONNECTING_S) -> Conversation:
    """The caller's side of a conversation over `connection`; the other end must answer within `connecting_s`. Raises
    EyelevelError, WrongSecret."""
    connection.settimeout(connecting_s)
    number = secrets.token_bytes(NUMBER_BYTES)
    _send(connection, {PROGRAM: VERSION, "number": number.hex()})
    with closing(connection.makefile("rb", buffering=0)) as lines:
        greeting = _message(_line(lines, GREETING_BYTES))
    numbers = (number, _number(greeting))
    _check_version(greeting)
    if not _is_same(_signed(secret, b"answer", *numbers), greeting.get("proof")):
        raise WrongSecret("the two ends have different secrets; copy the file with the secret again")
    _send(connection, {"proof": _signed(secret, b"ask", *numbers)})
    connection.settimeout(SILENCE_S)
    return Conversation(connection, secret, numbers, asks=True)


def answer(connection: socket.socket, secret: bytes) -> Conversation:
    """The answering side of a conversation over `connection`. Raises EyelevelError, WrongSecret."""
    connection.settimeout(CONNECTING_S)
    with closing(connection.makefile("rb", buffering=0)) as lines:
        greeting = _message(_line(lines, GREETING_BYTES))
        numbers = (_number(greeting), secrets.token_bytes(NUMBER_BYTES))
        proof = _signed(secret, b"answer", *numbers)
        _send(connection, {PROGRAM: VERSION, "number": numbers[1].hex(), "proof": proof})
        _check_version(greeting)
        answer_to_it = _message(_line(lines, GREETING_BYTES)).get("proof")
    if not _is_same(_signed(secret, b"ask", *numbers), answer_to_it):
        raise WrongSecret("it has another secret")
    connection.settimeout(SILENCE_S)
    return Conversation(connection, secret, numbers, asks=False)


def understood(message: Message, kind: type[T]) -> T:
    """The other end's `message` as an object of type `kind`. Raises EyelevelError with at most FAULT_LETTERS letters,
    whatever the message contains."""
    try:
        return structured(dict(message), kind, "what the other end says")
    except EyelevelError as error:
        raise EyelevelError(str(error)[:FAULT_LETTERS]) from None


def _is_same(signature: str, other: Any) -> bool:
    """Whether `other` is the right signature; the time of the comparison reveals nothing about it."""
    return isinstance(other, str) and hmac.compare_digest(signature.encode(), other.encode(errors="replace"))


def _check_version(greeting: Message) -> None:
    if (version := greeting[PROGRAM]) != VERSION:
        raise EyelevelError(
            f"the other end speaks version {excerpt(str(version))} of the probe, this one {VERSION}: use the same "
            "commit on both machines"
        )


def _number(greeting: Message) -> bytes:
    """The fresh number of the other end. Raises EyelevelError when `greeting` is not from this program."""
    try:
        if PROGRAM in greeting:
            return bytes.fromhex(greeting["number"])
    except (KeyError, TypeError, ValueError):
        pass
    raise EyelevelError(f"the program at the other end is not '{PROGRAM}'")


def _send(connection: socket.socket, message: Message) -> None:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError as error:
        raise EyelevelError(f"the connection to the other end was lost: {error.strerror or error}") from None


def _line(lines: Any, most_bytes: int) -> bytes:
    """The next of `lines`, without its line feed. Raises EyelevelError when there is none, or it is too long."""
    try:
        line: bytes = lines.readline(most_bytes)
    except TimeoutError:
        raise EyelevelError("the other end does not answer any more") from None
    except OSError as error:
        raise EyelevelError(f"the connection to the other end was lost: {error.strerror or error}") from None
    if not line:
        raise EyelevelError("the other end closed the connection")
    if not line.endswith(b"\n"):
        raise EyelevelError(f"the program at the other end is not '{PROGRAM}'")
    return line[:-1]


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise EyelevelError(f"the program at the other end is not '{PROGRAM}'")
    return message
