"""Everything that is computed from a run's film, in one pass through the film.

Whatever the film shows, this takes a limited amount of memory (twice `PICTURES_BYTES`, and 3 kB for each change), and
no space on the disk. If the page moved for long, that memory does not hold all pictures, and the film is decoded up to
four times more.
"""

from dataclasses import dataclass
from pathlib import Path

from films.decoding import decode
from films.frames import FilmLooks
from films.log import FilmLog
from films.strip import StripPictures
from films.visual_metrics import Thumbnails

# At most this many bytes of pictures for the strip are kept in memory, and as many bytes of thumbnails. For a page on a
# desktop, 340 pictures fit, which are those of a page that moves for at least 11 s, and the last 124 thumbnails, which
# show at least 4 s. If more are needed, the film is decoded once more.
PICTURES_BYTES = 32 << 20


@dataclass(frozen=True)
class FilmContents:
    """The contents of a film; `thumbnail_changes` are the numbers of the changes that have thumbnails."""

    looks: FilmLooks
    thumbnails: Thumbnails
    thumbnail_changes: tuple[int, ...]
    strip: StripPictures


def film_contents(film: Path, log: FilmLog, pictures_bytes: int = PICTURES_BYTES) -> FilmContents:
    """The contents of `film`, whose log is `log`. At most `pictures_bytes` of pictures of each kind are kept in memory.
    Raises EyelevelError when the film cannot be decoded."""
    looks = FilmLooks()
    thumbnails, strip = Thumbnails(film, log, pictures_bytes), StripPictures(film, log, pictures_bytes)
    receivers = {"thumbnails": thumbnails.add, "blocks": looks.add, "strip": strip.add}
    return FilmContents(looks, thumbnails, decode(film, log, receivers), strip)
