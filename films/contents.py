"""All that a run asks of its film, from one pass through it.

It needs a bounded part of memory, whatever the film shows (`STRIP_BYTES`, `LAST_BYTES` and 3 kB for each change), and
none of the disk. A film that has moved for long is decoded up to four times more, for single answers.
"""

from dataclasses import dataclass
from pathlib import Path

from films.decoding import FilmTimes, decode
from films.frames import FilmLooks
from films.strip import StripPictures
from films.visual_metrics import Thumbnails


@dataclass(frozen=True)
class FilmContents:
    """The contents of a film, and their times."""

    times: FilmTimes
    looks: FilmLooks
    thumbnails: Thumbnails
    strip: StripPictures


def film_contents(film: Path) -> FilmContents:
    """The contents of `film`. Raises EyelevelError when it cannot be decoded."""
    looks, thumbnails, strip = FilmLooks(), Thumbnails(film), StripPictures(film)
    receivers = {"thumbnails": thumbnails.add, "blocks": looks.add, "strip": strip.add}
    return FilmContents(decode(film, receivers), looks, thumbnails, strip)
