"""Run as the client of a replay: print the memory of its servers, by program, as JSON."""

import json
from collections import defaultdict

import psutil

from benchmarks.memory import pss_bytes

SERVERS = ("nginx", "uwsgi-core", "quic_server")


def main() -> None:
    """Print the memory of all processes in this PID namespace, which is that of the replay."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["name"]):
        if process.info["name"] in SERVERS:
            sizes[process.info["name"]].append(pss_bytes(process))
    print(json.dumps({name: {"processes": len(each), "pss_mb": sum(each) / 1e6} for name, each in sizes.items()}))


if __name__ == "__main__":
    main()
