"""The cores of this machine as the kernel describes them: their processors (hardware threads), and which cores are near
each other."""

import os
from collections.abc import Collection
from pathlib import Path

# The kernel has a folder for each processor here.
PROCESSORS = Path("/sys/devices/system/cpu")
# The last-level cache, which several cores share.
LAST_CACHE = "cache/index3/id"


def whole_cores(processors: Collection[int] | None = None) -> list[tuple[int, ...]]:
    """The cores that have a processor which this process may use (or one of `processors`); each is listed with its
    usable processors. Cores that share a package and a cache are neighbours in the list. A processor that the kernel
    does not describe counts as a core of its own."""
    usable = set(os.sched_getaffinity(0) if processors is None else processors)
    cores: dict[tuple[int, int, int], list[int]] = {}
    for processor in sorted(usable):
        of_processor = PROCESSORS / f"cpu{processor}"
        siblings = processors_in(_text(of_processor / "topology/core_cpus_list") or str(processor))
        package = _text(of_processor / "topology/physical_package_id")
        cache = _text(of_processor / LAST_CACHE)
        cores.setdefault((int(package or 0), int(cache or 0), min(siblings)), []).append(processor)
    return [tuple(cores[key]) for key in sorted(cores)]


def processors_in(text: str) -> list[int]:
    """The processors in a list in the kernel's notation: `0-2,8` means 0, 1, 2 and 8."""
    ends = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return [processor for part in ends for processor in range(part[0], part[-1] + 1)]


def _text(path: Path) -> str:
    """The content of `path`; empty if the kernel has no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
