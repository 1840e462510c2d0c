"""Our own shells: delay next to the servers, then link, then loss next to the browser.

One process does it all: `mm-net` treats each packet like nested `mm-delay`, `mm-link` and `mm-loss` would
(`tests/shells/test_shells.py` compares them), with a fraction of their processor time.
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
        # The outer shell is the far half, next to the servers; the hop's namespace is between the two shells. The
        # random choices of the two halves must be independent.
        far_seed = None if seed is None else random.Random(seed).getrandbits(32)
        command = [*shell(far[0], far_seed, far_timekeeping(timekeeping)), *delays, "--"]
        return NestedShells(
            [*command, *shell(near, seed, timekeeping), "--"], {"name": self.name, "far_seed": far_seed}
        )


SHELLS = OurShells()


def server_delays(extra_rtts_ms: Mapping[str, float]) -> list[str | Path]:
    """The options that put servers farther away, with half of the extra round-trip time each way."""
    return [
        word
        for address, extra_ms in extra_rtts_ms.items()
        if extra_ms
        for word in ("--server-delay", f"{address}={extra_ms / 2:.6f}")
    ]


def shell(network: Network, seed: int | None = None, timekeeping: Path | None = None) -> list[str | Path]:
    """The beginning of a command line that runs the rest on `network`, with random choices drawn from `seed`.

    At the end, the network's timekeeping is written into the file `timekeeping`.
    """
    command: list[str | Path] = [tool("mm-net"), *(word for one in IMPAIRMENTS for word in one.arguments(network))]
    command += ["--timekeeping", timekeeping] if timekeeping else []
    return [*command, *(["--seed", str(seed)] if seed is not None else [])]
