"""Packets: loads of a site captured at both ends, to be taken apart packet by packet.

    ping  →  load, captured at client and servers (`ends`)  →  judged (`attempt`)  →  kept, or made again (`study`)

A run's folder, `packets/<site>/<network>/<protocol>/<n>/` of a campaign, holds:

    client.pcapng      every packet of the browser's end of the emulated network, with the keys to decrypt it
    servers.pcapng     the same of the servers' end
    ssl-keys.log       the keys alone
    ping.json          round trips before the load; ping.txt is what ping said
    run.json           whether the run counts and why not, and with what it was made
    the rest           what a load leaves (`measure.run.visit`, `measure.run.load`)
"""

from pathlib import Path

FOLDER = "packets"
DOCUMENT = "packets.json"
RUN = "run.json"
CLIENT, SERVERS, KEYS = "client.pcapng", "servers.pcapng", "ssl-keys.log"
PING, PING_SAID = "ping.json", "ping.txt"
# Beside the runs of a protocol: attempts that do not count.
REJECTED = "rejected"


def setting_folder(campaign: Path, site: str, network: str, protocol: str) -> Path:
    """Where the runs of a setting lie in the folder of a campaign."""
    return campaign / FOLDER / site / network / protocol
