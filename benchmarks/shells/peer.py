"""The sender of a benchmark's bulk transfer; runs as a script inside the measured network.

Standard library only, so that any Python can run it.
"""

import contextlib
import socket
import struct
import sys
import time
from pathlib import Path

ROOMY = "4096 131072 134217728"
CHUNK = bytes(1 << 20)
# In struct tcp_info (linux/tcp.h), the 26th 32-bit field, after 8 single bytes, counts retransmissions.
TCP_INFO_BYTES, RETRANSMISSIONS_OFFSET = 104, 100


def make_buffers_roomy() -> None:
    """Let socket buffers grow to 128 MB, so that they do not limit a flow."""
    for name in ("tcp_rmem", "tcp_wmem"):
        Path(f"/proc/sys/net/ipv4/{name}").write_text(ROOMY)


def send_tcp(server: tuple[str, int], congestion_control: str, seconds: float) -> None:
    """Send for some seconds; print how many segments were retransmitted."""
    make_buffers_roomy()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        connection.connect(server)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection.send(CHUNK)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        print(struct.unpack_from("I", info, RETRANSMISSIONS_OFFSET)[0], flush=True)
        connection.shutdown(socket.SHUT_WR)
        # The network must exist until the server has received everything.
        with contextlib.suppress(OSError):
            connection.recv(1)


def send_udp(server: tuple[str, int], seconds: float) -> None:
    """Send 1500-byte packets as fast as possible, for some seconds; print how many.

    Then wait until the server reports that no more arrive: the network ends with this process, and packets on their way
    would be lost.
    """
    payload = bytes(1472)
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(server)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(64):
                sender.send(payload)
            sent += 64
        print(sent, flush=True)
        sender.recv(1)


if __name__ == "__main__":
    kind, address, port, seconds, *rest = sys.argv[1:]
    if kind == "tcp":
        send_tcp((address, int(port)), rest[0], float(seconds))
    else:
        send_udp((address, int(port)), float(seconds))
