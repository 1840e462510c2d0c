"""The clips of a user study: the films of a campaign that they show, and the key that says which.

A clip is one film, or two side by side. Participants can see a clip's name, so the name does not reveal the content.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from analysis.figures.films import Shot, typical
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Pair
from analysis.user_study.settings import PAIRS, RATINGS, Rules, StudySettings
from base.errors import EyelevelError
from base.files import read_json
from base.structure import structured, to_json

KEY = "key.json"
# The kinds of clips: measured films; a film next to itself, delayed or identical; the film of a rating control, plain
# or delayed; and clips for practice, which do not count.
MEASURED, DELAYED, IDENTICAL, PLAIN, PRACTICE = "measured", "delayed", "identical", "plain", "practice"
NAME_DIGITS = 12


@dataclass(frozen=True)
class Side:
    """A film in a clip.

    `run`: the number of its run; `film`: its file in the campaign's folder; `delay_s`: how long its first frame is
    shown before it starts; `metrics`: those of the run. `median_si_ms`: the median SI of all runs of the setting; of
    the runs with a film, this run is the nearest to it.
    """

    protocol: str
    run: int
    film: str
    delay_s: float
    metrics: Mapping[str, float]
    median_si_ms: float


@dataclass(frozen=True)
class Clip:
    """A clip: the part of the study that shows it, its kind, its sides from left to right (unless swapped), and its
    length."""

    name: str
    part: str
    kind: str
    site: str
    network: str
    sides: tuple[Side, ...]
    length_s: float


@dataclass(frozen=True)
class Key:
    """The contents of a kit's clips, and the rules for leaving participants out; `study` identifies the kit."""

    study: str
    campaign: str
    parts: tuple[str, ...]
    rules: Rules
    clips: tuple[Clip, ...]

    def by_name(self) -> dict[str, Clip]:
        """The clips by their names."""
        return {clip.name: clip for clip in self.clips}


def read_key(folder: Path) -> Key:
    """The key of the kit in `folder`. Raises EyelevelError if it is missing or broken."""
    if not (folder / KEY).exists():
        raise EyelevelError(f"{folder} is not a user study: {KEY} is missing; 'make user-study CAMPAIGN=…' writes one")
    return structured(read_json(folder / KEY), Key, f"{folder / KEY} is broken")


def make_key(campaign: CampaignTable, pairs: Sequence[Pair], settings: StudySettings) -> Key:
    """The key of the study of `campaign` with these `settings`; `pairs` are its pairs of protocols unless the settings
    name others. Raises EyelevelError if the settings name something that the campaign does not have, or if there is no
    film."""
    chosen = [Pair(*pair) for pair in settings.pairs] or list(pairs)
    for group, names, known in (
        ("sites", settings.sites, tuple(campaign.settings.sites)),
        ("networks", [*settings.networks, *settings.contexts], _networks(campaign)),
        ("protocols", [name for pair in chosen for name in pair], campaign.protocols),
    ):
        if unknown := [name for name in names if name not in known]:
            raise EyelevelError(f"the campaign has no {group} {', '.join(unknown)}; it has {', '.join(known)}")
    if not chosen:
        raise EyelevelError("the campaign has one protocol, so there is nothing to compare")
    shots = _shots(campaign, chosen, settings)
    clips: list[Clip] = []
    if PAIRS in settings.parts:
        clips += _pairs(shots, chosen, settings)
    if RATINGS in settings.parts:
        clips += _ratings(shots, settings)
    study = _digest(campaign.name, campaign.document.begun_at, to_json(settings), to_json(clips))
    named = (replace(clip, name=_digest(study, str(place))) for place, clip in enumerate(clips))
    return Key(study, campaign.name, settings.parts, settings.rules, tuple(named))


def _shots(
    campaign: CampaignTable, pairs: Sequence[Pair], settings: StudySettings
) -> dict[tuple[str, str], dict[str, Side]]:
    """The side that shows each protocol, by site and network; only for pairs whose protocols both have a film."""
    wanted = dict.fromkeys(name for pair in pairs for name in pair)
    cells: dict[tuple[str, str], dict[str, Side]] = {}
    for network in settings.networks or _networks(campaign):
        for site in settings.sites or tuple(campaign.settings.sites):
            shots = {name: typical(campaign.runs, campaign.folder, site, network, name) for name in wanted}
            sides = {name: _side(campaign, shot) for name, shot in shots.items() if shot}
            complete = {name for pair in pairs if pair.is_of(tuple(sides)) for name in pair}
            if complete:
                cells[site, network] = {name: side for name, side in sides.items() if name in complete}
    if not cells:
        raise EyelevelError(
            f"no site of {campaign.folder} has films of both protocols of a pair "
            f"({', '.join(' and '.join(pair) for pair in pairs)}); a user study needs a campaign with FILMS=all"
        )
    return cells


def _networks(campaign: CampaignTable) -> tuple[str, ...]:
    """The networks of a campaign in its order. In further browsers they have names of their own."""
    present = tuple(dict.fromkeys(campaign.runs["network"]))
    return tuple(dict.fromkeys(name for name in (*campaign.networks, *present) if name in present))


def _side(campaign: CampaignTable, shot: Shot) -> Side:
    runs = campaign.valid
    of_setting = runs[
        (runs["site"] == shot.site) & (runs["network"] == shot.network) & (runs["protocol"] == shot.protocol)
    ]
    film = str(shot.film.relative_to(campaign.folder))
    metrics = {name: value for name, value in shot.metrics.items() if math.isfinite(value)}
    return Side(shot.protocol, shot.run, film, 0.0, metrics, float(of_setting["si"].median()))


def _pairs(
    cells: Mapping[tuple[str, str], Mapping[str, Side]], pairs: Sequence[Pair], settings: StudySettings
) -> Iterator[Clip]:
    for (site, network), sides in cells.items():
        for pair in pairs:
            if pair.is_of(tuple(sides)):
                yield _clip(settings, PAIRS, MEASURED, site, network, *(sides[name] for name in pair))
    shortest = _shortest(cells)
    count = settings.delayed_controls
    for place in range(count + settings.identical_controls):
        site, network, side = shortest[place % len(shortest)]
        other = replace(side, delay_s=settings.control_delay_s) if place < count else side
        kind = DELAYED if place < count else IDENTICAL
        yield _clip(settings, PAIRS, kind, site, network, side, other)
    site, network, side = shortest[0]
    late = replace(side, delay_s=settings.control_delay_s)
    yield _clip(settings, PAIRS, PRACTICE, site, network, late, side)


def _ratings(cells: Mapping[tuple[str, str], Mapping[str, Side]], settings: StudySettings) -> Iterator[Clip]:
    for (site, network), sides in cells.items():
        for side in sides.values():
            yield _clip(settings, RATINGS, MEASURED, site, network, side)
    shortest = _shortest(cells)
    for place in range(settings.delayed_ratings):
        site, network, side = shortest[place % len(shortest)]
        late = replace(side, delay_s=settings.rating_delay_s)
        yield _clip(settings, RATINGS, PLAIN, site, network, side)
        yield _clip(settings, RATINGS, DELAYED, site, network, late)
    site, network, side = shortest[0]
    yield _clip(settings, RATINGS, PRACTICE, site, network, side)


def _shortest(cells: Mapping[tuple[str, str], Mapping[str, Side]]) -> list[tuple[str, str, Side]]:
    """A side of each site and network. The page that finishes first comes first, since controls should take little
    time."""
    sides = [(*cell, next(iter(sides.values()))) for cell, sides in cells.items()]
    return sorted(sides, key=lambda entry: _end_s(entry[2]))


def _clip(settings: StudySettings, part: str, kind: str, site: str, network: str, *sides: Side) -> Clip:
    length_s = max(_end_s(side) + side.delay_s for side in sides) + settings.tail_s
    return Clip("", part, kind, site, network, sides, round(length_s, 3))


def _end_s(side: Side) -> float:
    """The time from the navigation until the page was done."""
    return max(side.metrics[name] for name in ("lvc", "plt") if name in side.metrics) / 1000


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:NAME_DIGITS]
