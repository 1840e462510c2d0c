"""How many TCP segments leave this network namespace that ask for a connection, but for `http:` URLs: a browser that is
to load over QUIC alone, and tries TCP beside it, is seen by them, whatever it says and whether it is answered or not.

The kernel's own counters (`ActiveOpens`) also have the connections between Browsertime, driver and browser.
"""

import ctypes
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import EyelevelError
from base.files import read_json, write_json
from dataset.run_files import SYNS
from measure.instruments.contract import Instrument
from replay.world import outward_device

# From linux/if_packet.h, if_ether.h and socket.h, which Python does not have.
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER = 0x3, 263, 6, 26
# The port of `http:` URLs, which are never QUIC's: a page that names one has it asked for, or connected to in advance,
# over TCP on every stack alike.
HTTP_PORT = 80
# Code, jumps if true and if false, and constant of each line (linux/bpf_common.h): is it IPv4, is it TCP, is it no
# later fragment, is of SYN and ACK only SYN set, and is it for another port than HTTP_PORT? Packets that pass are
# counted. (Replays have no other IP.)
IS_SYN = (
    (0x30, 0, 0, 0),  # the byte at 0: version, and length of the header
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 10, 0x40),
    (0x30, 0, 0, 9),  # the protocol
    (0x15, 0, 8, socket.IPPROTO_TCP),
    (0x28, 0, 0, 6),  # the place of a fragment
    (0x45, 6, 0, 0x1FFF),
    (0xB1, 0, 0, 0),  # the length of the header
    (0x50, 0, 0, 13),  # the flags
    (0x54, 0, 0, 0x12),
    (0x15, 0, 2, 0x02),
    (0x48, 0, 0, 2),  # the port that it is for
    (0x15, 0, 1, HTTP_PORT),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 1),
)


class Syns(Instrument):
    """Counts while the browser runs, and leaves the number in SYNS."""

    name = "syns"

    @contextmanager
    def around_visit(self, folder: Path) -> Iterator[None]:
        """Count while the block runs. Raises EyelevelError when it cannot."""
        with _counter() as counter:
            try:
                yield
            finally:
                sent, _ = struct.unpack("II", counter.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
                write_json(folder / SYNS, {"sent": sent})


INSTRUMENT = Syns()


def read_syns(folder: Path) -> int | None:
    """How many there were in the load in `folder`; None when the load failed before they were counted."""
    return int(read_json(folder / SYNS)["sent"]) if (folder / SYNS).exists() else None


def _counter() -> socket.socket:
    """A socket from which nobody reads: the kernel counts what it has for it, and drops what finds no room."""
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in IS_SYN))
    try:
        counter = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        counter.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(IS_SYN), ctypes.addressof(program))
        )
        counter.bind((outward_device(), ETH_P_ALL))
    except OSError as error:
        raise EyelevelError(f"attempts to connect over TCP cannot be counted: {error.strerror}") from None
    return counter
