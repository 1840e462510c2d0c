"""The peer of the transfers in test_shells.py; run as a script inside the shells, it is the client."""

import socket
import sys
import time
from contextlib import suppress

PORT = 4000
SERVER = ("198.18.0.1", PORT)
SERVER_V6 = ("fd00:198:18::1", PORT)

# How long each bulk transfer lasts, and how much of its beginning is left out.
TRANSFER_S = 1.8
WARM_UP_S = 0.8

# Enough to measure a share of lost datagrams, and to compare which ones are lost.
DATAGRAMS, FEW = 20_000, 2_000
# A mark after the datagrams, which may be lost and is sent again after this time without an answer.
END, AGAIN_S = b"end", 0.1
BUFFER_BYTES = 64 << 20
SO_RCVBUFFORCE = 33


def transfer_rate(received: socket.socket) -> float:
    """The rate in bit/s received on a connection, from after the warm-up to its end."""
    begin = time.monotonic()
    counted_from = last = begin
    count = 0
    while data := received.recv(65536):
        last = time.monotonic()
        if last - begin < WARM_UP_S:
            counted_from = last
        else:
            count += len(data)
    return count * 8 / (last - counted_from)


def send_for(connection: socket.socket) -> None:
    """Send as much as possible until the time is over."""
    end = time.monotonic() + TRANSFER_S
    while time.monotonic() < end:
        connection.send(bytes(16384))
    connection.shutdown(socket.SHUT_WR)


def hold_everything(receiver: socket.socket) -> None:
    """Make the socket's buffer hold every datagram of the test, so that only the emulated network drops any."""
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:  # as much as net.core.rmem_max allows
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)


def family_of(address: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def tcp_client(server: tuple[str, int]) -> None:
    """Measure a download, print its rate in bit/s, then upload."""
    with socket.create_connection(server) as download:
        print(transfer_rate(download))
    with socket.create_connection(server) as upload:
        send_for(upload)
        # The server closes the connection once it has everything; leaving earlier would end the network before that.
        upload.recv(1)


def udp_client(server: tuple[str, int], datagrams: int) -> None:
    """Send this many numbered datagrams and print the numbers of those that return."""
    with socket.socket(family_of(server), socket.SOCK_DGRAM) as client:
        hold_everything(client)
        client.connect(server)
        for number in range(datagrams):
            client.send(str(number).encode())
        client.settimeout(AGAIN_S)
        while True:
            client.send(END)
            with suppress(TimeoutError):
                # No datagram overtakes another: nothing comes after the answer to the end mark.
                while (data := client.recv(100)) != END:
                    print(data.decode())
                return


if __name__ == "__main__":
    kind, host, port, *datagrams = sys.argv[1:]
    if kind == "udp":
        udp_client((host, int(port)), *map(int, datagrams))
    else:
        tcp_client((host, int(port)))
