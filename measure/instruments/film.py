"""Reads how many states of the screen a film does not show (`films/recorder/README.md`)."""

from base.bounded import read_json_value
from base.errors import EyelevelError
from dataset.columns import Column
from dataset.run_files import VISUAL
from measure.instruments.contract import FinishedRun, Instrument, Readings

THINNED_OUT, DRAWN_OVER = "film_thinned_out", "film_drawn_over"


class Film(Instrument):
    """Reads the numbers that the recorder of films counted."""

    name = "film"
    columns = (
        Column(
            THINNED_OUT,
            "",
            "states of the screen that the film does not show, since the page changed more often than [a film "
            "may](contributors/films.md#bounds)",
            is_count=True,
        ),
        Column(
            DRAWN_OVER,
            "",
            "states of the screen that were drawn over before they could be stored; their times are kept",
            is_count=True,
        ),
    )

    def read(self, run: FinishedRun) -> Readings:
        """The counts; empty if the run has no film. Raises EyelevelError."""
        if not (file := run.folder / VISUAL).exists():
            return {}
        try:
            counts = read_json_value(file).get("recorder", {})
            return {THINNED_OUT: counts.get("thinned_out"), DRAWN_OVER: counts.get("drawn_over")}
        except (OSError, ValueError, AttributeError) as error:
            raise EyelevelError(f"{VISUAL} is broken: {error}") from None


INSTRUMENT = Film()
