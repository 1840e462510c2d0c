"""Assigns processor cores to servers, emulator, browser and film, so that none takes another's time.

A part always gets whole cores, since the two hardware threads of a core share its units.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from itertools import chain, islice

from measure.host.topology import whole_cores

# With fewer cores, separate places would leave too few for the browser.
CORES_FOR_PLACES = 6


@dataclass(frozen=True)
class Layout:
    """The processors of each part of a run, and those that analyse films while runs are measured."""

    servers: tuple[int, ...]
    emulator: tuple[int, ...]
    browser: tuple[int, ...]
    film: tuple[int, ...]
    analysis: tuple[int, ...]


def layout(processors: Collection[int] | None = None) -> Layout | None:
    """Places on `processors` (by default those this process may use); None if they have too few cores.

    The emulator's clock and the film get a core each, the servers two, and the browser the rest except one, which
    analyses films. With 12 cores or more, two analyse films.
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
    """`chosen` in the form of a campaign's document."""
    if chosen is None:
        return f"none: fewer than {CORES_FOR_PLACES} cores"
    return {part: list(cores) for part, cores in asdict(chosen).items()}
