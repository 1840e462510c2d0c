"""Which films a campaign keeps, and in which quality. `films.playable` makes these films."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT = ("all", "sample", "none")
QUALITIES = ("lossless", "small")
# A sample has the films of this many runs of each setting, and those of all rejected runs.
SAMPLE = 1


@dataclass(frozen=True)
class FilmPolicy:
    """Which films remain once their metrics are stored (one of `KEPT`), and in which quality (one of `QUALITIES`)."""

    kept: str = "all"
    quality: str = "lossless"

    def keeps(self, run: int, *, valid: bool) -> bool:
        """Whether the film of a setting's run number `run` is kept."""
        return self.kept == "all" or (self.kept == "sample" and (run <= SAMPLE or not valid))

    def apply(self, folder: Path, run: int, *, valid: bool) -> None:
        """Turn the film's log in a run's folder into a playable film, or remove the log if the film is not kept. The
        film's metrics must be on the disk already. A damaged log remains. Raises OSError."""
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
