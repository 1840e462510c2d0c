"""Run as the client of a replay: print the memory of its servers, by program, as JSON.

The proportional set size counts what processes share once (proc(5)), so that the sum is what they take.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

SERVERS = ("nginx", "uwsgi-core", "quic_server")


def main() -> None:
    """Print the memory of all processes in this PID namespace, which is that of the replay."""
    memory_kib: dict[str, list[int]] = defaultdict(list)
    for process in Path("/proc").glob("[0-9]*"):
        name = (process / "comm").read_text().strip()
        if name in SERVERS:
            pss_kib = re.search(r"^Pss:\s+(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
            memory_kib[name].append(int(pss_kib[1]) if pss_kib else 0)
    print(json.dumps({name: {"processes": len(kib), "pss_mib": sum(kib) / 1024} for name, kib in memory_kib.items()}))


if __name__ == "__main__":
    main()
