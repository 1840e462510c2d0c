"""The questions, participants and words of a user study: `study.toml`, overridden by the experimenter's own file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.structure import structured

DEFAULTS = Path(__file__).with_name("study.toml")
PAIRS, RATINGS = "pairs", "ratings"
PARTS = (PAIRS, RATINGS)
# The ends of the scale of ITU-T P.851: ten for each of the seven words.
LOWEST, HIGHEST = 10, 70
WORDS_OF_SCALE = 7


@dataclass(frozen=True)
class Rules:
    """The limits beyond which data is left out. For a participant: failed controls, time away from the page during a
    film, and time for the whole session. For a vote: the time for which its film stood still."""

    failed_controls: int
    longest_away_s: float
    longest_session_min: float
    longest_still_ms: float


@dataclass(frozen=True)
class Words:
    """All texts that a participant reads."""

    language: str
    title: str
    introduction: str
    consent_title: str
    consent: str
    agree: str
    trial_only: str
    begin: str
    go_on: str
    practice: str
    progress: str
    loading: str
    cannot_load: str
    play: str
    playing: str
    replay: str
    next: str
    film: str
    ratings_title: str
    ratings: str
    rating_question: str
    scale: tuple[str, ...]
    pairs_title: str
    pairs_text: str
    pair_question: str
    left_side: str
    right_side: str
    upper_side: str
    lower_side: str
    same: str
    end_title: str
    thanks: str
    download: str
    return_answers: str
    unsent: str
    try_again: str


@dataclass(frozen=True)
class StudySettings:
    """The settings of a user study; `study.toml` explains each."""

    experimenter: str
    parts: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    sites: tuple[str, ...]
    networks: tuple[str, ...]
    pairs_per_participant: int
    ratings_per_participant: int
    delayed_controls: int
    identical_controls: int
    delayed_ratings: int
    control_delay_s: float
    rating_delay_s: float
    frames_per_s: int
    width: int
    height: int
    tail_s: float
    rules: Rules
    contexts: Mapping[str, str]
    words: Words


def load(file: Path | None = None) -> StudySettings:
    """The settings in `file`, over the default ones. Raises EyelevelError."""
    document = _read(DEFAULTS)
    if file is not None:
        for name, value in _read(file).items():
            is_table = isinstance(value, dict) and isinstance(document.get(name), dict)
            document[name] = {**document[name], **value} if is_table else value
    where = str(file or DEFAULTS)
    settings = structured(document, StudySettings, where)
    if fault := _fault(settings):
        raise EyelevelError(f"{where}: {fault}")
    return settings


def _fault(settings: StudySettings) -> str:
    """The fault of settings that have the right types; empty if there is none."""
    if not settings.parts or len({*settings.parts}) < len(settings.parts) or not {*settings.parts} <= {*PARTS}:
        return f"parts must be some of {', '.join(PARTS)}"
    if len(settings.words.scale) != WORDS_OF_SCALE:
        return f"words.scale must have {WORDS_OF_SCALE} words"
    counts = ("pairs_per_participant", "ratings_per_participant", "frames_per_s")
    for name in counts:
        if getattr(settings, name) < 1:
            return f"{name} must be at least 1"
    for name in ("delayed_controls", "identical_controls", "delayed_ratings", "tail_s"):
        if getattr(settings, name) < 0:
            return f"{name} must not be negative"
    for name in ("control_delay_s", "rating_delay_s"):
        if getattr(settings, name) <= 0:
            return f"{name} must be more than 0"
    # H.264 with colours at half the resolution needs even sizes.
    for name in ("width", "height"):
        if getattr(settings, name) < 16 or getattr(settings, name) % 2:
            return f"{name} must be even, and at least 16"
    return ""


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{file} cannot be read: {error}") from None
