"""Reading a stored message in parts gives the same as reading it whole."""

import os
from pathlib import Path

import pytest

from base.bounded import TooLong, read_regular
from record.http1 import BLANK_LINE, MalformedMessage, divided
from record.messages import USUAL_HEAD_BYTES, read_head, read_message

LIMIT_BYTES = 1 << 20
LONG = b"x" * (USUAL_HEAD_BYTES - len(BLANK_LINE))


@pytest.mark.parametrize(
    "content",
    [
        b"HTTP/1.1 200 OK\r\na: b\r\n\r\nbody",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"a\r\n\r\nb\r\n\r\nc",
        b"\r\n\r\nno head",
        *(LONG + b"x" * more + BLANK_LINE + b"body" for more in range(-1, len(BLANK_LINE) + 1)),
        b"a\r\n\r\n" + b"x" * (LIMIT_BYTES - 5),
    ],
    ids=lambda content: str(len(content)),
)
def test_head_and_body_are_those_of_the_whole_message(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(content)
    whole = divided(read_regular(file, LIMIT_BYTES))
    assert read_message(file, LIMIT_BYTES) == whole
    assert read_head(file, LIMIT_BYTES) == whole[0]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", MalformedMessage),
        (b"no blank line\r\n", MalformedMessage),
        (b"a\r\n\r\n".ljust(LIMIT_BYTES + 1), TooLong),
    ],
)
def test_what_is_no_message_or_too_long_is_refused(content: bytes, error: type[Exception], tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(content)
    for read in (read_message, read_head):
        with pytest.raises(error):
            read(file, LIMIT_BYTES)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(__file__)
    for read in (read_message, read_head):
        for name in ("pipe", "link"):
            with pytest.raises(OSError):
                read(tmp_path / name, LIMIT_BYTES)


def test_a_file_whose_file_system_tells_no_size_is_read(tmp_path: Path) -> None:
    # A file of the kernel's, which has lines but no blank one.
    with pytest.raises(MalformedMessage, match="no blank line"):
        read_message(Path("/proc/self/status"), LIMIT_BYTES)
