"""`python -m measure.validate.network.echoes ADDRESS…`: measure the round trips to servers on an emulated network.

Prints, as JSON, address → the round-trip time of each ICMP echo (RFC 792) that was answered, in ms. The kernel sends
the answers, and timestamps their arrival.
"""

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence

ECHOES = 12
# Echoes are so far apart that packets seldom meet.
APART_S = 0.002
# Answers are awaited for this long after the last request, longer than the round trip to any server.
PATIENCE_S = 12.0
ECHO_REQUEST, ECHO_REPLY = 8, 0
HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, number
SENT = struct.Struct("!IQ")  # number of the server, time sent in ns
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")
BUFFER_BYTES = 1 << 20


def echo_request(identifier: int, number: int, server: int, sent_ns: int) -> bytes:
    """A request that contains the number of its server, and when it was sent."""
    content = SENT.pack(server, sent_ns)
    words = HEADER.pack(ECHO_REQUEST, 0, 0, identifier, number) + content
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return HEADER.pack(ECHO_REQUEST, 0, checksum, identifier, number) + content


class Answers(threading.Thread):
    """Collects answers: for each server, the round-trip times in ms."""

    def __init__(self, end: socket.socket, identifier: int, servers: int, expected: int) -> None:
        super().__init__(daemon=True)
        self.times_ms: list[list[float]] = [[] for _ in range(servers)]
        self.complete = threading.Event()
        self._end, self._identifier, self._expected = end, identifier, expected
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)

    def run(self) -> None:
        while self._expected:
            packet, ancillary, _, _ = self._end.recvmsg(512, 64)
            message = packet[(packet[0] & 0xF) * 4 :]
            kind, _, _, identifier, _ = HEADER.unpack_from(message)
            if kind != ECHO_REPLY or identifier != self._identifier:
                continue
            server, sent_ns = SENT.unpack_from(message, HEADER.size)
            seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2][: TIMESPEC.size])
            self.times_ms[server].append((seconds * 10**9 + nanoseconds - sent_ns) / 1e6)
            self._expected -= 1
        self.complete.set()


def main(addresses: Sequence[str]) -> None:
    """Send an echo to each server in turn, `ECHOES` times."""
    identifier = os.getpid() & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as end:
        answers = Answers(end, identifier, len(addresses), ECHOES * len(addresses))
        answers.start()
        due_s = time.monotonic()
        for number in range(ECHOES):
            for server, address in enumerate(addresses):
                end.sendto(echo_request(identifier, number, server, time.time_ns()), (address, 0))
                due_s += APART_S
                time.sleep(max(0.0, due_s - time.monotonic()))
        answers.complete.wait(PATIENCE_S)
        print(json.dumps(dict(zip(addresses, answers.times_ms, strict=True))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
