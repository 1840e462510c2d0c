"""Our own shells: delay next to the servers, then link, then loss next to the browser.

All in one hop: `mm-net` does to each packet what the nested `mm-delay`, `mm-link` and `mm-loss` would
(`tests/shells/test_shells.py` compares them), for a fraction of their processor time.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from base.places import tool
from replay.shells.contract import NestedShells, Shells, far_timekeeping
from tuning.networks import IMPAIRMENTS, Network


class OurShells(Shells):
    """The shells of `shells/`."""

    name = "ours"
    programs: ClassVar = {"mm-net": "--version"}

    delays_servers = True

    def nested(
        self,
        network: Network,
        seed: int | None,
        timekeeping: Path,
        folder: Path,
        extra_rtts_ms: Mapping[str, float] | None = None,
    ) -> NestedShells:
        near, *far = network.halves
        delays = server_delays(extra_rtts_ms or {})
        if not far:
            return NestedShells([*shell(near, seed, timekeeping), *delays, "--"], {"name": self.name})
        # The outer shell is the far half, next to the servers: between the two is the hop's namespace. The random
        # choices of one half must say nothing of the other's.
        far_seed = None if seed is None else random.Random(seed).getrandbits(32)
        command = [*shell(far[0], far_seed, far_timekeeping(timekeeping)), *delays, "--"]
        return NestedShells(
            [*command, *shell(near, seed, timekeeping), "--"], {"name": self.name, "far_seed": far_seed}
        )


SHELLS = OurShells()


def server_delays(extra_rtts_ms: Mapping[str, float]) -> list[str | Path]:
    """The options by which servers are farther away, half of the longer round trip each way."""
    return [
        word
        for address, extra_ms in extra_rtts_ms.items()
        if extra_ms
        for word in ("--server-delay", f"{address}={extra_ms / 2:.6f}")
    ]


def shell(network: Network, seed: int | None = None, timekeeping: Path | None = None) -> list[str | Path]:
    """The command line that runs what follows it behind `network`, its random choices drawn from `seed`.

    The network's means of timekeeping are in the file `timekeeping` at the end.
    """
    command: list[str | Path] = [tool("mm-net"), *(word for one in IMPAIRMENTS for word in one.arguments(network))]
    command += ["--timekeeping", timekeeping] if timekeeping else []
    return [*command, *(["--seed", str(seed)] if seed is not None else [])]
