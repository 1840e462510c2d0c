"""All that a run asks of its film, from one pass through it.

It needs a bounded part of memory, whatever the film shows (twice `PICTURES_BYTES`, and 3 kB for each change), and
none of the disk. A film that has moved for long is decoded up to four times more, for single answers.
"""

from dataclasses import dataclass
from pathlib import Path

from films.decoding import FilmTimes, decode
from films.frames import FilmLooks
from films.strip import StripPictures
from films.visual_metrics import Thumbnails

# The most that is kept of the pictures for the strip, and of thumbnails. For a desktop's page these are 340 pictures,
# after at least 11 s of movement, and the last 124 thumbnails, which show at least 4 s. Where that is not enough, the
# film is decoded once more.
PICTURES_BYTES = 32 << 20


@dataclass(frozen=True)
class FilmContents:
    """The contents of a film, and their times."""

    times: FilmTimes
    looks: FilmLooks
    thumbnails: Thumbnails
    strip: StripPictures


def film_contents(film: Path, pictures_bytes: int = PICTURES_BYTES) -> FilmContents:
    """The contents of `film`, with at most `pictures_bytes` of pictures of each kind. Raises EyelevelError when it
    cannot be decoded."""
    looks, thumbnails, strip = FilmLooks(), Thumbnails(film, pictures_bytes), StripPictures(film, pictures_bytes)
    receivers = {"thumbnails": thumbnails.add, "blocks": looks.add, "strip": strip.add}
    return FilmContents(decode(film, receivers), looks, thumbnails, strip)
