"""Attempts to connect over TCP are counted as they leave."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.shells import stack

from measure.instruments.syns import read_syns

# In a namespace with one device besides `lo`, connects to ports at its other end, where nothing listens.
CONNECTS = """
import os, socket, sys
from pathlib import Path
from measure.instruments.syns import INSTRUMENT

with INSTRUMENT.around_visit(Path(sys.argv[1])):
    for port in map(int, sys.argv[2:]):
        with socket.socket() as tcp:
            assert tcp.connect_ex((os.environ["MAHIMAHI_BASE"], port)) != 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(bytes(100), (os.environ["MAHIMAHI_BASE"], 443))
"""


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(("ports", "sent"), [([], 0), ([80], 0), ([443], 1), ([80, 443, 8443, 80], 2)])
def test_what_asks_for_a_connection_is_counted_but_for_plain_http(ports: list[int], sent: int, tmp_path: Path) -> None:
    command = [*stack("mm-delay 1"), sys.executable, "-c", CONNECTS, str(tmp_path), *map(str, ports)]
    subprocess.run(command, check=True)
    assert read_syns(tmp_path) == sent
