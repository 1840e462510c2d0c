"""The emulators to compare: each is a way to run a command in its own network."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from base.places import tool


@dataclass(frozen=True)
class System:
    """One way to emulate one network."""

    name: str
    # The words to put before a command to run it inside the network.
    prefix: tuple[str, ...]
    # The names of the emulator's processes, whose CPU time counts.
    processes: tuple[str, ...] = ()


def examples() -> Path:
    """The folder where `cargo build --release --examples` put the baselines and the probe.

    Raises EyelevelError if the probe is missing; the message names that command.
    """
    target = Path(os.environ.get("CARGO_TARGET_DIR", "shells/target"))
    folder = target / "release" / "examples"
    if not (folder / "icmp-probe").exists():
        raise EyelevelError(
            f"{folder} has no icmp-probe; run 'cargo build --release --examples' in shells/ and set CARGO_TARGET_DIR"
        )
    return folder.resolve()


def shell(words: str) -> System:
    """One of our shells, given by its command line."""
    split = words.split()
    programs = tuple(dict.fromkeys(word for word in split if word.startswith("mm-")))
    prefix = tuple(str(tool(word)) if word.startswith("mm-") else word for word in split)
    return System(words.removesuffix(" --"), prefix, programs)


def rattan_delay(one_way_ms: float) -> System | None:
    """Rattan with a delay each way, or None if it is not installed (`cargo install rattan`)."""
    program = shutil.which("rattan")
    if program is None:
        return None
    delay = f"{one_way_ms:g}ms"
    prefix = (program, "link", "--uplink-delay", delay, "--downlink-delay", delay, "--")
    return System(f"rattan {one_way_ms:g} ms", prefix, ("rattan",))


def tun_copy() -> System:
    """A copy loop between two TUN devices, which runs before ordinary processes, as the shells do."""
    program = str(examples() / "tun-copy")
    return System("bare TUN copy", ("chrt", "--reset-on-fork", "--fifo", "1", program), ("tun-copy",))


def veth(namespace: str) -> System:
    """A pair of Ethernet devices that leads to another namespace, without any emulator."""
    return System("plain veth", ("nsenter", f"--net={namespace}"))
