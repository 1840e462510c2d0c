"""Print the memory of a replay's servers, by program, as JSON; runs as the client of the replay."""

import json
from collections import defaultdict

import psutil

from benchmarks.memory import pss_bytes

SERVERS = ("nginx", "uwsgi-core", "quic_server")


def main() -> None:
    """Print the memory of all processes in this PID namespace, the replay's."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["name"]):
        if process.info["name"] in SERVERS:
            sizes[process.info["name"]].append(pss_bytes(process))
    print(json.dumps({name: {"processes": len(each), "pss_mb": sum(each) / 1e6} for name, each in sizes.items()}))


if __name__ == "__main__":
    main()
