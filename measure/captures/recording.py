"""Captures: dumpcap writes all packets of a device, in full; editcap adds the browser's keys."""

import ctypes
import fcntl
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from base.errors import EyelevelError
from base.places import tool
from base.processes import interruptible, last_line_of

# linux/if_packet.h: the socket option that returns how many packets a socket saw, and dropped, since the last query.
SOL_PACKET, PACKET_STATISTICS, ETH_P_ALL = 263, 6, 3
# linux/sockios.h, linux/ethtool.h: whether TCP segmentation offload is on, that is, whether a device takes TCP data
# larger than its packets.
SIOCETHTOOL, ETHTOOL_STSO = 0x8946, 0x1F


# dumpcap reads the kernel's buffer four times a second. Packets that it has not read when it is ended are lost.
READ_S = 0.25
# The size of the kernel's buffer for dumpcap: it holds a second or more at 100 Mbit/s while dumpcap waits for a
# processor. dumpcap's default of 2 MiB was too small on a busy machine, where captures of 12 MB lost some packets.
BUFFER_MIB = 32
# How long (s) dumpcap may take to read what the kernel has buffered; on a busy machine it has to wait.
CATCH_UP_S = 3.0
# Nobody reads dumpcap's output during a capture: some 160 bytes per second, which the pipe must hold.
PIPE_BYTES = 1 << 20
BEGUN = re.compile(r"^File: ", re.MULTILINE)
PROGRESS = re.compile(r"\rPackets: (\d+) ")
TOTALS = re.compile(r"received/dropped on interface .*: (\d+)/(\d+)")


@contextmanager
def capturing(device: str, file: Path) -> Iterator[Callable[[], None]]:
    """Write every packet of `device` to `file` (pcapng) while the context lasts.

    Yields a function that counts the packets so far. If the device may vanish before the context ends, call this
    function while the device exists; otherwise packets that dumpcap has not read may be missing from the end of the
    file.

    Raises EyelevelError when dumpcap fails, or when it missed a packet that was counted.
    """
    with (
        _Counter(device) as counter,
        subprocess.Popen(
            interruptible([tool("dumpcap"), "-i", device, "-B", str(BUFFER_MIB), "-w", file]),
            stderr=subprocess.PIPE,
            pipesize=PIPE_BYTES,
        ) as dumpcap,
    ):
        assert dumpcap.stderr
        output = _Output(dumpcap.stderr)
        passed = 0
        try:
            # From here on, all packets are in the file.
            if not output.until(lambda text: BEGUN.search(text) is not None):
                raise EyelevelError(f"dumpcap could not capture: {last_line_of(output.text)}")
            counter.more()

            def look() -> None:
                nonlocal passed
                passed += counter.more()

            yield look
            look()
            output.until(lambda text: int((PROGRESS.findall(text) or [0])[-1]) >= passed, CATCH_UP_S)
        finally:
            dumpcap.send_signal(signal.SIGINT)
            output.until(lambda _: False)
    totals = TOTALS.search(output.text)
    if not totals or int(totals[1]) < passed or int(totals[2]):
        raise EyelevelError(f"the capture is not whole: {passed} packets passed; {last_line_of(output.text)}")


class _Output:
    """The output that a program has written to a pipe so far."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.text = ""

    def until(self, enough: Callable[[str], bool], limit_s: float | None = None) -> bool:
        """Read until `enough` of the text is true; returns False if the program ends or `limit_s` passes first."""
        end_s = None if limit_s is None else time.monotonic() + limit_s
        while not enough(self.text):
            remaining_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            if not select.select([self._pipe], [], [], remaining_s)[0]:
                return False
            if not (more := os.read(self._pipe.fileno(), 1 << 16)):
                return False
            self.text += more.decode(errors="replace")
        return True


class _Counter:
    """Counts the packets of a device, in both directions, at the point where captures see them; keeps no packets.

    The kernel's own counter for the device counts a packet only when the emulated network has fetched it, which may be
    late. Raises EyelevelError.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            self._socket.bind((device, ETH_P_ALL))
        except OSError as error:
            raise EyelevelError(f"cannot count the packets of {device}: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def more(self) -> int:
        """The number of packets since the last call; 0 if the device is gone."""
        if self._device not in {name for _, name in socket.if_nameindex()}:
            return 0
        packets, _ = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return int(packets)


def segment_before_capture(device: str) -> None:
    """Make the kernel cut TCP data into packets before `device` gets it, so that captures show these packets.

    Otherwise the emulated network cuts the data, after the capture. Raises EyelevelError.
    """
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STSO, 0), 8)
    request = struct.pack("16sP", device.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)
        except OSError as error:
            raise EyelevelError(f"the segmentation offload of {device} stays on: {error.strerror}") from None


def add_keys(capture: Path, keys: Path) -> None:
    """Put `keys` (NSS key log) into `capture`, so that programs that read it can decrypt it. Raises EyelevelError."""
    with_keys = capture.with_name(f".{capture.name}")
    command: list[str | Path] = [tool("editcap"), "--inject-secrets", f"tls,{keys}", capture, with_keys]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        with_keys.unlink(missing_ok=True)
        raise EyelevelError(f"editcap cannot put {keys.name} into {capture}: {last_line_of(completed.stderr)}")
    with_keys.replace(capture)
