"""How much time and disk space a campaign will take: from its runs so far, otherwise from a model of its networks."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from base.errors import EyelevelError
from base.structure import structured
from base.words import in_bytes
from browsers.browsertime.configuration import QUIET_MS
from dataset.durations import mean_seconds, pace_seconds
from dataset.site_facts import parse_facts
from dataset.table import CampaignDocument, Cell, Row, Run
from films.policy import FilmPolicy
from tuning.networks import Network

# The time (s) that a run takes on two cores in addition to load and quiet time, with its share of canaries; and by
# which factor a page takes longer than `load_s`, with attempts that do not count. With both, and with ROUND_TRIPS and
# CONNECTIONS, the forecast of a run is 1.01 (dsl), 0.98 (lte), 1.03 (da2gc) and 1.06 (mss) of the mean in
# data/reference, without ebay on da2gc and mss, which was given up.
RUN_S = 2.2
LOAD_FACTOR = 1.5
# The time and the space of a run of a static page that is not filmed.
UNFILMED_RUN_S = 2.6
UNFILMED_BYTES = 150_000
# The least number of round trips that a page takes: for its handshake, and for requests that depend on each other.
ROUND_TRIPS = 5
# The number of TCP connections whose rate, where losses limit it, a page reaches, whatever the number of its servers:
# with one server it is faster than one connection that never ends, and with many, few are in use at once.
CONNECTIONS = 4
# A network's ratio of measured to predicted time is a median over its sites, with this many sites as predicted: the
# first sites say little about the others.
SITES_AS_PREDICTED = 2
# The size of a run's evidence without the film, and of a second of film by quality.
EVIDENCE_BYTES = 700_000
FILM_BYTES_PER_S = {"lossless": 300_000, "small": 20_000}
# The disk space of a setting's runs is read from this many of its newest folders.
LOOKED_AT = 3
# The space that must stay free in addition to the campaign's.
SPARE_BYTES = 200_000_000


@dataclass(frozen=True)
class Forecast:
    """The time and the space that runs will take."""

    seconds: float
    bytes: float

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(self.seconds + other.seconds, self.bytes + other.bytes)

    def slower(self, factor: float) -> "Forecast":
        """The forecast of these runs if they take `factor` times as long."""
        return replace(self, seconds=self.seconds * factor)


@dataclass(frozen=True)
class RunModel:
    """A model of the time and the space of a run, from its page and its network. `page_bytes`: site → bytes of its
    bodies. `films` says which films are kept. `seconds` is how long each load lasts, unless the page determines it
    (None)."""

    page_bytes: Mapping[str, int]
    networks: Mapping[str, Network]
    films: FilmPolicy
    filmed: bool = True
    seconds: float | None = None

    @classmethod
    def of(cls, document: CampaignDocument) -> "RunModel":
        """The model of the campaign with this `document`. Raises EyelevelError if the document is of another version,
        or lacks facts on a site."""
        settings, facts = document.settings, document.site_facts
        return cls(
            {name: parse_facts(facts.get(name), f"site_facts.{name}").bytes for name in settings.sites},
            {name: structured(values, Network, name) for name, values in settings.networks.items()},
            structured(document.films, FilmPolicy, "films"),
            settings.filmed,
            settings.seconds_of_run,
        )

    def knows(self, cell: Cell) -> bool:
        """Whether the site and the network of `cell` are known."""
        return cell[0] in self.page_bytes and cell[1] in self.networks

    def load_s(self, cell: Cell) -> float:
        """How long the page of `cell` takes to load: its size over the rate that TCP connections reach, plus some round
        trips."""
        if self.seconds is not None:
            return self.seconds
        network = self.networks[cell[1]]
        return (
            8 * self.page_bytes[cell[0]] / network.tcp_rate_bps(CONNECTIONS) + ROUND_TRIPS * network.path_rtt_ms / 1000
        )

    def keeps_film(self, run: int) -> bool:
        """Whether the film of a setting's run number `run` is kept if the run is valid."""
        return self.filmed and self.films.keeps(run, valid=True)

    def forecast(self, cell: Cell, keeps_film: bool | None = None) -> Forecast:
        """The time and space of a run of `cell`. Unless `keeps_film` says whether its film is kept, the policy for a
        setting's first run applies."""
        load_s, network = self.load_s(cell), self.networks[cell[1]]
        if not self.filmed:
            return Forecast(UNFILMED_RUN_S + load_s, UNFILMED_BYTES)
        quiet_s = (network.quiet_ms or QUIET_MS) / 1000
        is_kept = self.keeps_film(1) if keeps_film is None else keeps_film
        film_bytes = FILM_BYTES_PER_S[self.films.quality] * (load_s + quiet_s) if is_kept else 0
        seconds = RUN_S + load_s * (LOAD_FACTOR if self.seconds is None else 1) + quiet_s
        return Forecast(seconds, EVIDENCE_BYTES + film_bytes)


@dataclass(frozen=True)
class Forecaster:
    """Forecasts the runs of a campaign, given the `rows` that were made so far in its `folder`. `runs_at_once`: how
    many runs on a network are measured at once; None: the times are those of the runs in one place, one after another.

    A run is expected to take the mean of the rows of its site and network. Without such rows, it is expected to take
    what `model` predicts, scaled by the network's ratio of measured to predicted time so far.
    """

    rows: Sequence[Row]
    folder: Path
    model: RunModel
    runs_at_once: Callable[[str], int] | None = None

    def forecast(self, runs: Iterable[Run]) -> Forecast:
        """The time and the space of `runs` in sum, with the pace checks of devices."""
        runs = list(runs)
        return sum(self.of_cells(runs).values(), Forecast(pace_seconds(runs), 0.0))

    def run_seconds(self, runs: Sequence[Run]) -> dict[Cell, float]:
        """Cell → the mean time of its `runs`, without the pace checks of devices."""
        numbers = Counter(run.cell for run in runs)
        return {cell: total.seconds / numbers[cell] for cell, total in self.of_cells(runs).items()}

    def of_cells(self, runs: Iterable[Run]) -> dict[Cell, Forecast]:
        """Cell → the time and the space of its `runs`, without the pace checks of devices."""
        means = self._means()
        ratios: dict[str, list[float]] = defaultdict(lambda: [1.0] * SITES_AS_PREDICTED)
        for cell in filter(self.model.knows, means):
            ratios[cell[1]].append(means[cell].seconds / self._predicted(cell).seconds)
        # Most of hundreds of thousands of runs have the same forecast.
        one: dict[tuple[Cell, bool], Forecast] = {}
        totals: dict[Cell, Forecast] = defaultdict(lambda: Forecast(0.0, 0.0))
        for run in runs:
            kind = run.cell, self.model.keeps_film(run.number)
            if kind not in one:
                one[kind] = means.get(run.cell) or self._predicted(*kind).slower(median(ratios[run.network]))
            totals[run.cell] += one[kind]
        return totals

    def _means(self) -> dict[Cell, Forecast]:
        """Cell → the mean of its rows."""
        rows_of: dict[Cell, list[Row]] = defaultdict(list)
        for row in self.rows:
            rows_of[row.site, row.network].append(row)
        run_s = mean_seconds(self.rows, shared=self.runs_at_once is not None)
        means = {}
        for cell, of_cell in rows_of.items():
            size = _bytes(of_cell, self.folder)
            if size is None:
                size = self.model.forecast(cell).bytes if self.model.knows(cell) else 0.0
            means[cell] = Forecast(run_s[cell], size)
        return means

    def _predicted(self, cell: Cell, keeps_film: bool | None = None) -> Forecast:
        """The model's forecast of a run of `cell`."""
        at_once = self.runs_at_once(cell[1]) if self.runs_at_once else 1
        return self.model.forecast(cell, keeps_film).slower(1 / at_once)


def require_space(needed: float, folder: Path) -> None:
    """Raises EyelevelError unless the disk of `folder` has `needed` bytes and some to spare."""
    free = shutil.disk_usage(folder).free
    if (lacking := needed + SPARE_BYTES - free) > 0:
        raise EyelevelError(
            f"the disk of {folder} has {in_bytes(free)} free, {in_bytes(lacking)} too little: the campaign needs "
            f"{in_bytes(needed)} and {in_bytes(SPARE_BYTES)} to spare; give it a larger one, or keep fewer films "
            "(FILMS=sample, FILMS=none, QUALITY=small)"
        )


def _bytes(rows: Sequence[Row], folder: Path) -> float | None:
    """The mean size of the newest of `rows` whose evidence is in `folder`; None if none is, as with rows that were
    measured on another machine."""
    attempts = [attempt for row in rows[-LOOKED_AT:] if (attempt := folder / row.folder).is_dir()]
    sizes = [sum(file.stat().st_size for file in attempt.glob("*") if file.is_file()) for attempt in attempts]
    return mean(sizes) if sizes else None
