"""Which films a campaign keeps, and how; `films.compression` carries it out."""

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
        """Keep, shrink or drop the film in a run's folder. Its metrics must be on the disk."""
        from dataset.run_files import FILM
        from films.compression import shrink

        film = folder / FILM
        if not film.exists():
            return
        if not self.keeps(run, valid=valid):
            film.unlink()
        elif self.quality == "small":
            shrink(film)


ALL_FILMS = FilmPolicy()
