"""Grids by name: a TOML file each, whose keys longlook.toml explains."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from record.grid import Page, read_size

FOLDER = Path(__file__).parent
PRESETS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@dataclass(frozen=True)
class Series:
    """Pages that belong together: all counts by all sizes (bytes) by all numbers of servers."""

    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    servers: tuple[int, ...] = (1,)

    def pages(self) -> list[Page]:
        """Its pages, in order."""
        return [Page(*values) for values in product(self.counts, self.sizes, self.servers)]

    def narrowed(self, counts: Sequence[int], sizes: Sequence[int]) -> "Series":
        """The same with other counts or sizes, if any are given, where it varies these."""
        series = replace(self, counts=tuple(counts)) if counts and len(self.counts) > 1 else self
        return replace(series, sizes=tuple(sizes)) if sizes and len(self.sizes) > 1 else series


@dataclass(frozen=True)
class Preset:
    """A grid: its pages, its networks and protocols by name, how many rounds, and how long (s) a load may take."""

    name: str
    series: tuple[Series, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]
    runs: int
    limit_s: float

    def pages(self) -> list[Page]:
        """All pages, each once."""
        return list(dict.fromkeys(page for series in self.series for page in series.pages()))


def read_preset(name: str, folder: Path = FOLDER) -> Preset:
    """The preset `name`. Raises EyelevelError that names the file and the key."""
    file = folder / f"{name}.toml"
    try:
        document: dict[str, Any] = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EyelevelError(f"{file}: {error}") from None
    wanted = {field.name for field in fields(Preset)} - {"name", "series"} | {"pages"}
    if odd := sorted(document.keys() ^ wanted):
        raise EyelevelError(f"{file} must have the keys {', '.join(sorted(wanted))}, and no others; see {odd[0]}")
    try:
        series = tuple(_series(table) for table in document["pages"])
        networks, protocols = tuple(document["networks"]), tuple(document["protocols"])
        return Preset(name, series, networks, protocols, int(document["runs"]), float(document["limit_s"]))
    except (TypeError, ValueError, KeyError) as error:
        raise EyelevelError(f"{file}: {error!r}") from None


def _series(table: dict[str, Any]) -> Series:
    sizes = tuple(read_size(size) for size in table["sizes"])
    return Series(tuple(map(int, table["counts"])), sizes, tuple(map(int, table.get("servers", (1,)))))
