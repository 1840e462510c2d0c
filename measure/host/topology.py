"""The cores of this machine as the kernel describes them: their processors (threads), and which cores are near."""

import os
from collections.abc import Collection
from pathlib import Path

# The kernel's description of its processors, a folder for each.
PROCESSORS = Path("/sys/devices/system/cpu")
# The last cache before the memory, which several cores share.
LAST_CACHE = "cache/index3/id"


def whole_cores(processors: Collection[int] | None = None) -> list[tuple[int, ...]]:
    """The cores with a processor that this process may use (or one of `processors`), each with all its processors.
    Cores that share a package and a cache are neighbours in the list. A processor that the kernel does not describe is
    a core of its own."""
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
    """The processors in a list of the kernel's: `0-2,8` has 0, 1, 2 and 8."""
    ends = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return [processor for part in ends for processor in range(part[0], part[-1] + 1)]


def _text(path: Path) -> str:
    """The text in `path`; empty when the kernel has no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
