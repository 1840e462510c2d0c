"""Which processor cores servers, emulator, browser and film get, so that none takes another's time."""

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass

# Below this, separate places would leave the browser with less than it needs.
CORES_FOR_PLACES = 6


@dataclass(frozen=True)
class Layout:
    """The cores of each part of a run, and those on which films are analysed while runs are measured."""

    servers: tuple[int, ...]
    emulator: tuple[int, ...]
    browser: tuple[int, ...]
    film: tuple[int, ...]
    analysis: tuple[int, ...]


def layout(cores: Collection[int] | None = None) -> Layout | None:
    """Places on `cores` (by default those this process may use); None when there are too few.

    The emulator's clock and the film have a core each, the servers two, the browser the rest but one, on which
    films are analysed. From 12 cores on two are for that.
    """
    free = sorted(os.sched_getaffinity(0) if cores is None else cores)
    if len(free) < CORES_FOR_PLACES:
        return None
    analysis = 2 if len(free) >= 2 * CORES_FOR_PLACES else 1
    servers = 2 if len(free) > CORES_FOR_PLACES else 1
    place = iter(free)
    groups = [tuple(next(place) for _ in range(count)) for count in (1, 1, servers, analysis)]
    emulator, film, of_servers, of_analysis = groups
    return Layout(servers=of_servers, emulator=emulator, browser=tuple(place), film=film, analysis=of_analysis)


def described(chosen: Layout | None) -> dict[str, list[int]] | str:
    """`chosen` as a campaign's document has it."""
    if chosen is None:
        return f"none: fewer than {CORES_FOR_PLACES} cores"
    return {part: list(cores) for part, cores in asdict(chosen).items()}
