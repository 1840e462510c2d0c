"""How long a campaign will take, and how much disk: from its own runs so far, else from a model of its networks."""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from base.errors import EyelevelError
from browsers.browsertime.configuration import QUIET_MS
from measure.run.films import FilmPolicy
from measure.table import Row, Run
from record.site import Site
from tuning.networks import Network

# A run beside the load itself, and a canary: seconds on two cores (benchmarks/campaign).
RUN_S = 6.0
CANARY_S = 1.5
# The same for a run that is not filmed, of a static page.
UNFILMED_RUN_S = 2.6
UNFILMED_BYTES = 150_000
# How many round trips a page takes at least: its own handshake, and those of what it asks for in turn.
ROUND_TRIPS = 10
# A run's evidence without the film, and the film of a second, lossless and small.
EVIDENCE_BYTES = 700_000
FILM_BYTES_PER_S = {"lossless": 300_000, "small": 20_000}
# Of how many of the newest runs of a setting the folders are looked at.
LOOKED_AT = 3
# What must stay free beside the campaign.
SPARE_BYTES = 200_000_000


@dataclass(frozen=True)
class Forecast:
    """What runs will take."""

    seconds: float
    bytes: float

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(self.seconds + other.seconds, self.bytes + other.bytes)


def forecast(
    runs: Iterable[Run],
    rows: Sequence[Row],
    folder: Path,
    sites: Mapping[str, Site],
    networks: Mapping[str, Network],
    films: FilmPolicy,
    *,
    filmed: bool = True,
) -> Forecast:
    """What `runs` will take, when `rows` were made so far in the campaign's `folder`.

    A run takes the mean of those of its site and network, or what the model says, scaled by how far the model was off
    for that network.
    """
    measured: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        measured[row.site, row.network].append(row)
    known = {
        key: Forecast(mean(row.seconds for row in of_cell), _bytes(of_cell, folder))
        for key, of_cell in measured.items()
    }
    scales: dict[str, list[float]] = defaultdict(list)
    for (site, network), usual in known.items():
        if site in sites and network in networks:
            scales[network].append(
                usual.seconds / modelled(sites[site], networks[network], 1, films, filmed=filmed).seconds
            )
    total = Forecast(0.0, 0.0)
    for run in runs:
        if (run.site, run.network) in known:
            total += known[run.site, run.network]
        else:
            model = modelled(sites[run.site], networks[run.network], run.number, films, filmed=filmed)
            scale = mean(scales[run.network]) if scales[run.network] else 1.0
            total += Forecast(model.seconds * scale, model.bytes)
    return total


def modelled(site: Site, network: Network, run: int, films: FilmPolicy, *, filmed: bool = True) -> Forecast:
    """What run number `run` of `site` behind `network` takes: the size over the rate that TCP connections reach, and
    some round trips."""
    rtt_s = network.min_rtt_ms / 1000
    # A page's servers each have a connection, and share the link.
    rate_bps = network.tcp_rate_bps(connections=len(site.servers))
    load_s = 8 * sum(exchange.bytes for exchange in site.exchanges) / rate_bps + ROUND_TRIPS * rtt_s
    if not filmed:
        return Forecast(UNFILMED_RUN_S + load_s, UNFILMED_BYTES)
    film_s = load_s + QUIET_MS / 1000
    film_bytes = FILM_BYTES_PER_S[films.quality] * film_s if films.keeps(run, valid=True) else 0
    return Forecast(RUN_S + film_s + CANARY_S / 2, EVIDENCE_BYTES + film_bytes)


def require_space(needed: float, folder: Path) -> None:
    """Raises EyelevelError when the disk of `folder` has not `needed` bytes, and some to spare."""
    free = shutil.disk_usage(folder).free
    if (lacking := needed + SPARE_BYTES - free) > 0:
        raise EyelevelError(
            f"the disk of {folder} has {in_bytes(free)} free, {in_bytes(lacking)} too little: the campaign needs "
            f"{in_bytes(needed)} and {in_bytes(SPARE_BYTES)} to spare; give it a larger one, or keep fewer films "
            "(FILMS=sample, FILMS=none, QUALITY=small)"
        )


def in_bytes(count: float) -> str:
    """A number of bytes as a person says it: `12 MB`, `3.4 GB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _bytes(rows: Sequence[Row], folder: Path) -> float:
    sizes = [
        sum(file.stat().st_size for file in (folder / row.folder).glob("*") if file.is_file())
        for row in rows[-LOOKED_AT:]
    ]
    return mean(sizes) if sizes else 0.0
