"""A campaign that is declared in a file (`data/reference.toml`): its recordings, networks and protocols, the number of
runs, its hypotheses, and why these sites were chosen. The sites need not exist yet."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tomllib import TOMLDecodeError, loads

from base.errors import EyelevelError
from base.structure import structured
from dataset.table import Cell
from films.policy import KEPT, QUALITIES, FilmPolicy
from record.names import require_site_name


@dataclass(frozen=True)
class DeclaredSite:
    """A site: its `name` in `sites/`, the `reason` why it was chosen, and its `recording` in a corpus. Without a
    recording, it is a site that exists, or a demo site. `without`: network → why the site is no longer measured on that
    network."""

    name: str
    reason: str
    recording: str = ""
    without: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeclaredCampaign:
    """The declared campaign. `hypotheses` is the name of a file next to the declaration; `films` and `quality` are the
    fields of `films.policy.FilmPolicy`."""

    sites: tuple[DeclaredSite, ...]
    networks: tuple[str, ...]
    protocols: tuple[str, ...]
    hypotheses: str
    runs: int
    seed: int
    films: str
    quality: str

    @property
    def film_policy(self) -> FilmPolicy:
        """Which films are kept, and in which quality."""
        return FilmPolicy(self.films, self.quality)

    @property
    def withdrawn(self) -> Mapping[Cell, str]:
        """(site, network) → why that site is no longer measured on that network."""
        return {(site.name, network): why for site in self.sites for network, why in site.without.items()}


def read_declared(path: Path) -> DeclaredCampaign:
    """The campaign that the file `path` declares. Raises EyelevelError."""
    try:
        values = loads(path.read_text())
    except (OSError, UnicodeDecodeError, TOMLDecodeError) as error:
        raise EyelevelError(f"{path} cannot be read: {error}") from None
    declared = structured(values, DeclaredCampaign, str(path))
    if faults := list(_faults(declared)):
        raise EyelevelError(f"{path}: {'; '.join(faults)}")
    return declared


def _faults(declared: DeclaredCampaign) -> Iterator[str]:
    for name, count in Counter(site.name for site in declared.sites).items():
        require_site_name(name, "a declared site")
        if count > 1:
            yield f"the site {name} is listed {count} times"
    for what, names in (("sites", declared.sites), ("networks", declared.networks), ("protocols", declared.protocols)):
        if not names:
            yield f"{what} is empty"
    for site in declared.sites:
        if not site.reason.strip():
            yield f"the site {site.name} has no reason"
        for network, why in site.without.items():
            if network not in declared.networks:
                yield f"the site {site.name} is without {network}, which is not one of the networks"
            if not why.strip():
                yield f"the site {site.name} is without {network} for no reason"
        if len(site.without) == len(declared.networks):
            yield f"the site {site.name} is without all networks: leave it out"
    if declared.runs < 1:
        yield f"runs must be 1 or more, not {declared.runs}"
    for key, value, known in (("films", declared.films, KEPT), ("quality", declared.quality, QUALITIES)):
        if value not in known:
            yield f"{key} must be one of {', '.join(known)}, not {value!r}"
