"""Packets: loads of a site, captured at both ends and dissected packet by packet.

    ping  →  load, captured at client and servers (`ends`)  →  checks (`measure`)

Besides the evidence of a load, a run's folder holds:

    client.pcapng      every packet at the browser's end of the emulated network, with the keys for decryption
    servers.pcapng     the same for the servers' end
    ssl-keys.log       the keys alone
    ping.json          round trips before the load; ping.txt is the output of ping

The report reads them in these steps:

    dissection (tshark's packets)  →  bytes, layers (kinds of bytes), extents (their places)
    →  connections, sequence, head_of_line  →  runs  →  section, head_of_line_report
"""

from base.late import late
from base.options import Option
from studies.study import Study

DELAYS_MS = "0,10,20,50"

STUDY = Study(
    name="packets",
    command="packets",
    title="capture the packets of page loads at both ends of the network",
    help="""Capture the packets of page loads at the browser and at the servers.

    Each load follows a ping, and counts only if the ping matches the network's settings. An existing campaign is
    resumed.

    Example: eyelevel packets --sites demo-light --net dsl --proto tcp+,quic --runs 3 --delays 0,50
    """,
    campaign=late("studies.packets.measure:campaign"),
    section=late("studies.packets.section:section"),
    options=(Option("--delays", "Delays added to the round-trip time of --net (ms).", default=DELAYS_MS),),
)
