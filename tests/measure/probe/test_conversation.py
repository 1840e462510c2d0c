"""The conversation between the two ends of a probe: messages without the secret, or changed, repeated or missing ones,
are rejected."""

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.probe import conversation as talk
from measure.probe.conversation import PROGRAM, VERSION, Conversation, answer, ask_for_conversation

SECRET, OTHER = bytes(32), bytes([1]) * 32


def meeting(asks_with: bytes, answers_with: bytes) -> list[Conversation | EyelevelError]:
    """The results at both ends of a conversation; the end that asks comes first."""
    asking, answering = socket.socketpair()
    ends: dict[str, Conversation | EyelevelError] = {}

    def open_end(name: str, make: Callable[[socket.socket, bytes], Conversation], secret: bytes) -> None:
        end = {"asking": asking, "answering": answering}[name]
        try:
            ends[name] = make(end, secret)
        except EyelevelError as error:
            ends[name] = error
            end.close()

    thread = threading.Thread(target=open_end, args=("answering", answer, answers_with))
    thread.start()
    open_end("asking", ask_for_conversation, asks_with)
    thread.join()
    return [ends["asking"], ends["answering"]]


@pytest.fixture
def ends() -> tuple[Conversation, Conversation]:
    asking, answering = meeting(SECRET, SECRET)
    assert isinstance(asking, Conversation) and isinstance(answering, Conversation)
    return asking, answering


def test_both_ends_hear_each_other(ends: tuple[Conversation, Conversation]) -> None:
    with ends[0] as asking, ends[1] as answering:
        for number in range(2):
            asking.say({"number": number})
            assert answering.hear() == {"number": number}
            answering.say({"answer": number})
            assert asking.hear() == {"answer": number}
        answering.say({"fault": "it is\nnight"})
        with pytest.raises(EyelevelError, match="the other end says: it is"):
            asking.hear()
    with pytest.raises(EyelevelError, match="the other end"):
        ends[0].say({})


def test_who_has_another_secret_is_refused_by_both() -> None:
    asking, answering = meeting(SECRET, OTHER)
    assert isinstance(asking, EyelevelError) and "different secrets" in str(asking)
    assert isinstance(answering, EyelevelError)


@pytest.mark.parametrize("change", ["changed", "repeated", "left out", "sent back"])
def test_what_was_not_said_so_is_refused(change: str, ends: tuple[Conversation, Conversation]) -> None:
    with ends[0] as asking, ends[1] as answering:
        asking.say({"number": 1})
        asking.say({"number": 2})
        # Intercept the messages on their way.
        first, second = answering._connection.recv(1000).splitlines(keepends=True)
        if change == "sent back":
            answering._connection.sendall(first)
            with pytest.raises(EyelevelError, match="changed on the way"):
                # Send a message back to its sender.
                asking.hear()
            return
        bad = {"changed": first.replace(b"1}", b"3}"), "repeated": first + first, "left out": second}[change]
        asking._connection.sendall(bad)
        with pytest.raises(EyelevelError, match="changed on the way"):
            answering.hear()
            answering.hear()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "is not 'eyelevel probe-network'"),
        (b"[" * 900 + b"\n", "is not 'eyelevel probe-network'"),
        (b"x" * 5000, "is not 'eyelevel probe-network'"),
        (b"", "closed the connection"),
        (json.dumps({PROGRAM: VERSION, "number": 7}).encode() + b"\n", "is not 'eyelevel probe-network'"),
        (
            json.dumps({PROGRAM: VERSION + 1, "number": "00"}).encode() + b"\n",
            f"speaks version {VERSION + 1} of the probe, this one {VERSION}",
        ),
    ],
)
def test_what_is_something_else_is_refused_in_words(said: bytes, fault: str) -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(said)
        there.shutdown(socket.SHUT_WR)
        with pytest.raises(EyelevelError, match=fault):
            ask_for_conversation(here, SECRET)


def test_who_says_nothing_is_not_waited_for_for_ever() -> None:
    here, there = socket.socketpair()
    with here, there, pytest.raises(EyelevelError, match="does not answer any more"):
        ask_for_conversation(here, SECRET, connecting_s=0.05)


def test_a_secret_is_the_callers_alone(tmp_path: Path) -> None:
    file = tmp_path / "probe" / "secret"
    with pytest.raises(EyelevelError, match=r"there is no secret in .*: 'eyelevel probe-network --serve"):
        talk.read_secret(file)
    talk.make_secret(file)
    assert len(secret := talk.read_secret(file)) == talk.SECRET_BYTES
    assert file.stat().st_mode & 0o777 == 0o600
    talk.make_secret(file)
    assert talk.read_secret(file) != secret
    file.chmod(0o640)
    with pytest.raises(EyelevelError, match=r"may be read by others \(mode 0640\)"):
        talk.read_secret(file)
    file.write_text("no secret\n")
    with pytest.raises(EyelevelError, match="holds no secret of 64 hexadecimal digits"):
        talk.read_secret(file)
