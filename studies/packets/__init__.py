"""Packets: loads of a site captured at both ends, to be taken apart packet by packet.

    ping  →  load, captured at client and servers (`ends`)  →  judged (`attempt`)  →  kept, or made again (`..runs`)

The folder of a run (`studies.runs`) holds beside its `run.json`:

    client.pcapng      every packet of the browser's end of the emulated network, with the keys to decrypt it
    servers.pcapng     the same of the servers' end
    ssl-keys.log       the keys alone
    ping.json          round trips before the load; ping.txt is what ping said
    the rest           what a load leaves (`measure.run.visit`, `measure.run.load`)

What is there is taken apart again by

    capture (tshark's packets)  →  bytes, layers (what each byte is for)  →  connections, sequence  →  runs  →  section
"""

from studies.packets import section

__all__ = ["section"]
