"""Which films a campaign's report shows: for each network one site, and a typical run of both protocols."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from analysis import films
from analysis.films import Shot, Strip
from analysis.findings import Findings
from base.errors import EyelevelError

# All films of a page together have at most this many bytes.
PAGE_BYTES = 16_000_000


@dataclass(frozen=True)
class FilmSelection:
    """A list for each network: the strips of its pair of runs, and these runs with their films as WebM. `missing` has a
    sentence for each network that lacks them."""

    strips: list[list[Strip]]
    films: list[list[tuple[Shot, bytes]]]
    missing: list[str]


def select_films(findings: Findings, site: str | None, *, playable: bool = True) -> FilmSelection:
    """For each network the first pair of the family that has films, on `site` or where SI and PLT disagree most.

    `playable`: whether films are made, too, and not strips alone. Raises EyelevelError when there is no such site.
    """
    if site and site not in findings.samples.sites:
        raise EyelevelError(f"the site {site} is not in the campaign; it has {', '.join(findings.samples.sites)}")
    selection = FilmSelection([], [], [])
    free_bytes = PAGE_BYTES
    for network in findings.samples.networks:
        shots = _shots(findings, network, site)
        if not shots:
            missing = f"There are no films of {site or 'any site'} behind {network} for any declared pair."
            selection.missing.append(missing)
            continue
        try:
            selection.strips.append(films.strips(shots))
            copies = [(shot, _small_copy(shot)) for shot in shots] if playable else []
        except EyelevelError as error:
            selection.missing.append(str(error))
            continue
        free_bytes -= sum(len(film) for _, film in copies)
        if free_bytes < 0:
            selection.missing.append(f"The films of {shots[0].site} behind {network} are too large for this page.")
        elif copies:
            selection.films.append(copies)
    return selection


def _small_copy(shot: Shot) -> bytes:
    with tempfile.TemporaryDirectory(prefix="eyelevel-film-") as folder:
        copy = Path(folder) / "film.webm"
        films.playable(shot, copy)
        return copy.read_bytes()


def _shots(findings: Findings, network: str, site: str | None) -> list[Shot]:
    campaign = findings.campaign
    for pair in findings.hypotheses.family:
        for name in [site] if site else films.disagreement(findings["gains"], network, pair):
            shots = []
            for protocol in pair:
                shot = films.typical(campaign.runs, campaign.folder, name, network, protocol)
                if not shot:
                    break
                shots.append(shot)
            else:
                return shots
    return []
