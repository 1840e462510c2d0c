"""All that a run asks of its film, from one pass through it.

It needs a bounded part of memory, whatever the film shows (twice `PICTURES_BYTES`, and 3 kB for each change), and
none of the disk. A film that has moved for long is decoded up to four times more, for single answers.
"""

from dataclasses import dataclass
from pathlib import Path

from films.decoding import decode
from films.frames import FilmLooks
from films.log import FilmLog
from films.strip import StripPictures
from films.visual_metrics import Thumbnails

# The most that is kept of the pictures for the strip, and of thumbnails. For a desktop's page these are 340 pictures,
# after at least 11 s of movement, and the last 124 thumbnails, which show at least 4 s. Where that is not enough, the
# film is decoded once more.
PICTURES_BYTES = 32 << 20


@dataclass(frozen=True)
class FilmContents:
    """The contents of a film; `thumbnail_changes` are the numbers of the changes of which there are thumbnails."""

    looks: FilmLooks
    thumbnails: Thumbnails
    thumbnail_changes: tuple[int, ...]
    strip: StripPictures


def film_contents(film: Path, log: FilmLog, pictures_bytes: int = PICTURES_BYTES) -> FilmContents:
    """The contents of `film`, whose `log` has been read, with at most `pictures_bytes` of pictures of each kind. Raises
    EyelevelError when it cannot be decoded."""
    looks = FilmLooks()
    thumbnails, strip = Thumbnails(film, log, pictures_bytes), StripPictures(film, log, pictures_bytes)
    receivers = {"thumbnails": thumbnails.add, "blocks": looks.add, "strip": strip.add}
    return FilmContents(looks, thumbnails, decode(film, log, receivers), strip)
