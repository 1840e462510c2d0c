"""Which films a campaign keeps, and how; `films.playable` carries it out."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT = ("all", "sample", "none")
QUALITIES = ("lossless", "small")
# The number of runs of each setting whose films are a sample; those of rejected runs are in it, too.
SAMPLE = 1


@dataclass(frozen=True)
class FilmPolicy:
    """Which films are kept once their metrics are (`KEPT`), and how (`QUALITIES`)."""

    kept: str = "all"
    quality: str = "lossless"

    def keeps(self, run: int, *, valid: bool) -> bool:
        """Whether the film of a setting's run number `run` is kept."""
        return self.kept == "all" or (self.kept == "sample" and (run <= SAMPLE or not valid))

    def apply(self, folder: Path, run: int, *, valid: bool) -> None:
        """Make a playable film of the log in a run's folder, if it is to be kept, and remove the log. Its metrics must
        be on the disk. A log that is broken remains. Raises OSError."""
        from base.errors import EyelevelError
        from dataset.run_files import FILM_LOG
        from films.playable import make_playable

        if not (folder / FILM_LOG).exists():
            return
        if not self.keeps(run, valid=valid):
            (folder / FILM_LOG).unlink()
            return
        with suppress(EyelevelError):
            make_playable(folder, small=self.quality == "small")


ALL_FILMS = FilmPolicy()
