"""Counts the TCP SYNs that leave this network namespace, except those for `http:` URLs. If a browser should use only
QUIC but also tries TCP, SYNs reveal this, whatever the browser reports, and even if it gets no answer.

The kernel's own counter (`ActiveOpens`) would include the connections between Browsertime, driver and browser.
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

# From linux/if_packet.h, if_ether.h and socket.h; Python lacks them.
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER = 0x3, 263, 6, 26
# The port of `http:` URLs, which never use QUIC. If a page has such a URL, browsers request it over TCP, or connect for
# it in advance, whatever the protocol under test.
HTTP_PORT = 80
# A BPF program: the code, the jumps if true and if false, and the constant of each line (linux/bpf_common.h). It passes
# packets that are IPv4, TCP, not a later fragment, have SYN set but not ACK, and are not for HTTP_PORT. Packets that
# pass are counted. (Replays have no IPv6.)
IS_SYN = (
    (0x30, 0, 0, 0),  # the first byte: version, and length of the header
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 10, 0x40),
    (0x30, 0, 0, 9),  # the protocol
    (0x15, 0, 8, socket.IPPROTO_TCP),
    (0x28, 0, 0, 6),  # the fragment offset
    (0x45, 6, 0, 0x1FFF),
    (0xB1, 0, 0, 0),  # the length of the header
    (0x50, 0, 0, 13),  # the flags
    (0x54, 0, 0, 0x12),
    (0x15, 0, 2, 0x02),
    (0x48, 0, 0, 2),  # the destination port
    (0x15, 0, 1, HTTP_PORT),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 1),
)


class Syns(Instrument):
    """Counts SYNs while the browser runs, and leaves the number in SYNS."""

    name = "syns"

    @contextmanager
    def around_visit(self, folder: Path) -> Iterator[None]:
        """Count while the context lasts. Raises EyelevelError when counting is not possible."""
        with _counter() as counter:
            try:
                yield
            finally:
                sent, _ = struct.unpack("II", counter.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
                write_json(folder / SYNS, {"sent": sent})


INSTRUMENT = Syns()


def read_syns(folder: Path) -> int | None:
    """The number of SYNs in the load in `folder`; None if the load failed before they were counted."""
    return int(read_json(folder / SYNS)["sent"]) if (folder / SYNS).exists() else None


def _counter() -> socket.socket:
    """A socket that nobody reads: the kernel counts its packets, and drops those that do not fit into its buffer."""
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
