"""Which processor cores servers, emulator, browser and film get, so that none takes another's time.

A place has whole cores: the two threads of one core share its units, whatever their numbers are.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from itertools import chain, islice

from measure.host.topology import whole_cores

# With fewer, separate places would leave the browser with less than it needs.
CORES_FOR_PLACES = 6


@dataclass(frozen=True)
class Layout:
    """The processors of each part of a run, and those on which films are analysed while runs are measured."""

    servers: tuple[int, ...]
    emulator: tuple[int, ...]
    browser: tuple[int, ...]
    film: tuple[int, ...]
    analysis: tuple[int, ...]


def layout(processors: Collection[int] | None = None) -> Layout | None:
    """Places on `processors` (by default those this process may use); None when they are of too few cores.

    The emulator's clock and the film have a core each, the servers two, the browser the rest but one, on which
    films are analysed. From 12 cores on two are for that.
    """
    cores = whole_cores(processors)
    if len(cores) < CORES_FOR_PLACES:
        return None
    analysis = 2 if len(cores) >= 2 * CORES_FOR_PLACES else 1
    servers = 2 if len(cores) > CORES_FOR_PLACES else 1
    free = iter(cores)

    def place(count: int | None = None) -> tuple[int, ...]:
        return tuple(sorted(chain.from_iterable(islice(free, count))))

    return Layout(emulator=place(1), film=place(1), servers=place(servers), analysis=place(analysis), browser=place())


def described(chosen: Layout | None) -> dict[str, list[int]] | str:
    """`chosen` as a campaign's document has it."""
    if chosen is None:
        return f"none: fewer than {CORES_FOR_PLACES} cores"
    return {part: list(cores) for part, cores in asdict(chosen).items()}
