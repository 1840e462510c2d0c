"""Grids by name, each a TOML file whose keys longlook.toml explains."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from base.errors import EyelevelError
from base.structure import structured
from studies.grid.defaults import PRESETS_FOLDER
from studies.grid.pages import Page, read_size
from tuning.devices import DESKTOP


@dataclass(frozen=True)
class Series:
    """Pages that belong together: all counts by all sizes (100B, 10KB) by all numbers of servers; pages with more
    servers than objects are left out."""

    counts: tuple[int, ...]
    sizes: tuple[str, ...]
    servers: tuple[int, ...] = (1,)

    def pages(self) -> list[Page]:
        """The series' pages, in order. Raises EyelevelError if a size is invalid."""
        values = product(self.counts, map(read_size, self.sizes), self.servers)
        return [Page(count, size, servers) for count, size, servers in values if servers <= count]

    def too_few(self) -> list[tuple[int, int]]:
        """The counts of objects and numbers of servers that have no page, since there are more servers than objects."""
        return [(count, servers) for count, servers in product(self.counts, self.servers) if servers > count]

    def narrowed(self, counts: Sequence[int], sizes: Sequence[str], servers: Sequence[int] = ()) -> "Series":
        """This series with other `counts` and `sizes`, each only if the series has several, and with other `servers`.
        An empty argument changes nothing."""
        series = replace(self, counts=tuple(counts)) if counts and len(self.counts) > 1 else self
        series = replace(series, sizes=tuple(sizes)) if sizes and len(self.sizes) > 1 else series
        return replace(series, servers=tuple(servers)) if servers else series


@dataclass(frozen=True)
class Preset:
    """A grid: its pages; the names of its networks, protocols and devices; the number of rounds, the time limit of a
    load (s), and its title."""

    series: tuple[Series, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]
    runs: int
    limit_s: float
    title: str
    devices: tuple[str, ...] = (DESKTOP,)

    def pages(self) -> list[Page]:
        """All pages, each once. Raises EyelevelError if a size is invalid."""
        return list(dict.fromkeys(page for series in self.series for page in series.pages()))

    def too_few(self) -> list[tuple[int, int]]:
        """The combinations that `Series.too_few` returns for any of the series, without duplicates."""
        return list(dict.fromkeys(one for series in self.series for one in series.too_few()))


def read_preset(name: str, folder: Path = PRESETS_FOLDER) -> Preset:
    """The preset `name`. Raises EyelevelError that names the file and the key."""
    file = folder / f"{name}.toml"
    try:
        return structured(tomllib.loads(file.read_text()), Preset, str(file))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EyelevelError(f"{file}: {error}") from None
