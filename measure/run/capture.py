"""Captures: all packets of a device, whole, written by dumpcap; given the browser's keys by editcap; read by tshark."""

import ctypes
import fcntl
import re
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eyelevel.errors import EyelevelError
from eyelevel.places import tool

# linux/sockios.h, linux/ethtool.h: whether a device takes data of TCP that is larger than its packets.
SIOCETHTOOL, ETHTOOL_STSO = 0x8946, 0x1F


@contextmanager
def capturing(device: str, file: Path) -> Iterator[None]:
    """Write every packet of `device` to `file` (pcapng) while the block runs.

    Raises EyelevelError when dumpcap fails, or has missed a packet.
    """
    command: list[str | Path] = [tool("dumpcap"), "-q", "-i", device, "-w", file]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as dumpcap:
        assert dumpcap.stderr
        try:
            said = ""
            while not said.startswith("File:"):  # the packets after this line are in it
                if not (line := dumpcap.stderr.readline()):
                    raise EyelevelError(f"dumpcap could not capture: {said.strip() or 'it said nothing'}")
                said = line
            yield
        finally:
            dumpcap.send_signal(signal.SIGINT)
            _, said = dumpcap.communicate()
    if not (counted := re.search(r"received/dropped on interface .*: \d+/(\d+)", said)) or int(counted[1]):
        raise EyelevelError(f"the capture is not whole: {' '.join(said.split()) or 'dumpcap ended early'}")


def segment_before_capture(device: str) -> None:
    """Let the kernel cut what TCP sends into packets before `device` gets it, so that captures have these.

    Unless told so, the emulated network does it, behind the capture. Raises EyelevelError.
    """
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STSO, 0), 8)
    request = struct.pack("16sP", device.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)
        except OSError as error:
            raise EyelevelError(f"the segmentation offload of {device} stays on: {error.strerror}") from None


def add_keys(capture: Path, keys: Path) -> None:
    """Put `keys` (NSS key log) into `capture`, which programs that read it can then decrypt. Raises EyelevelError."""
    opened = capture.with_name(f".{capture.name}")
    command: list[str | Path] = [tool("editcap"), "--inject-secrets", f"tls,{keys}", capture, opened]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        opened.unlink(missing_ok=True)
        raise EyelevelError(f"editcap cannot put {keys.name} into {capture}: {_last_line(done.stderr)}")
    opened.replace(capture)


@contextmanager
def told_by_tshark(capture: Path, keys: Path, *options: str) -> Iterator[IO[bytes]]:
    """What tshark says of `capture`, decrypted with `keys`, when asked with `options`. Raises EyelevelError."""
    command: list[str | Path] = [tool("tshark"), "-r", capture, "-o", f"tls.keylog_file:{keys}", *options]
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints) as tshark,
    ):
        assert tshark.stdout
        yield tshark.stdout
        if tshark.wait():
            complaints.seek(0)
            raise EyelevelError(f"tshark cannot read {capture}: {_last_line(complaints.read())}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
