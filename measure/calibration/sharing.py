"""Finds out how many loads on a network can share the processors of a lane: the largest number of which no load is
slower.

Each round loads pages one at a time, and the number under test at once. The network loses no packets in these loads,
since losses scatter times by tens of percent. This module only measures times; it does not interpret them.
"""

import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from base.errors import EyelevelError
from base.structure import unstructured
from dataset.table import Row, Run
from films.policy import FilmPolicy
from measure.calibration.calibration import Calibration, LoadsDoNotCount, search
from measure.calibration.equivalence import BESIDE, WHOLE, Round
from measure.campaign.block import Beginning, Block
from measure.campaign.lane import Ending, LaneSetting, RunningLane, running_lane, stop_all
from measure.campaign.lanes import sharing_folders
from measure.campaign.method import PAGES, Method
from measure.campaign.store import FolderStore
from measure.host.lanes import MEMORY_OF_LOAD_BYTES, Lane, Lanes
from measure.run.setting import Loading, Setting
from record.site import Site
from tuning import protocols
from tuning.defaults import REPEATS
from tuning.networks import Network

PROTOCOLS = ("tcp+", "quic")
METRICS = ("plt", "si", "fcp", "lcp")
# The number of loads for each core of a lane that is tried first. With more loads, a load would mostly have to wait
# until others have finished their busy beginnings.
LOADS_OF_CORE = 3

Begin = Callable[[LaneSetting], AbstractContextManager[RunningLane]]


def calibrated_sharing(
    network: Network, sites: Sequence[Site], browser: str, lanes: Lanes, announce: Callable[[str], None]
) -> Calibration:
    """How many loads of `sites` on `network` in `browser` can share the processors of each of `lanes`. This takes
    minutes to hours. Raises EyelevelError when loads do not count even one at a time."""
    known = protocols.load()
    loading = Loading(browser=browser)
    pages = {
        site.name: {name: Setting(site, network.lossless, known[name], loading) for name in PROTOCOLS} for site in sites
    }

    def measure_round(count: int, number: int) -> Round:
        places = Lanes(lanes.count, lanes.lanes, at_once={network.name: count}).places()
        return one_round(places, count, pages, number)

    memory = psutil.virtual_memory().available // (MEMORY_OF_LOAD_BYTES * lanes.count)
    cores = min(len(lane.cores) for lane in lanes.places())
    return search(
        min(LOADS_OF_CORE * cores, memory), measure_round, announce, lambda count: f"{count} at once on {network.name}"
    )


Pages = Mapping[str, Mapping[str, Setting]]


def one_round(
    places: Sequence[Lane],
    at_once: int,
    pages: Pages,
    number: int,
    method: Method = PAGES,
    begin: Begin = running_lane,
) -> dict[str, dict[str, float]]:
    """Load `pages` (site → protocol → setting) one at a time, and in all `places` at once; each set of cores has
    `at_once` of the places. If the round's `number` is odd, the loads one at a time come first. `begin` starts a lane;
    all measure by `method`. Raises LoadsDoNotCount, EyelevelError."""
    conditions = {WHOLE: (places[:1], 1), BESIDE: (places, at_once)}
    order = list(conditions) if number % 2 else list(conditions)[::-1]
    times = {condition: times_of(session(*conditions[condition], pages, method, begin)) for condition in order}
    return {condition: times[condition] for condition in conditions}


def session(places: Sequence[Lane], at_once: int, pages: Pages, method: Method, begin: Begin) -> list[Row]:
    """Load each of `pages` in each of the `places`, while all others load pages, too. Returns the rows. Raises
    LoadsDoNotCount, EyelevelError."""
    with tempfile.TemporaryDirectory(prefix="calibration-") as temporary, ExitStack() as stack:
        folder_of = sharing_folders(Path(temporary), places)
        loaders = []
        for lane in places:
            store = FolderStore(Path(tempfile.mkdtemp(dir=temporary)))
            browser = next(one for of_site in pages.values() for one in of_site.values()).loading.browser
            setting = LaneSetting(lane, store.folder, browser=browser, sharing=folder_of[lane])
            loaders.append(Loader(stack.enter_context(begin(setting)), store, at_once, pages, method))
        stack.callback(stop_all, [loader.lane for loader in loaders])
        by_connection: dict[object, Loader] = {loader.lane.connection: loader for loader in loaders}
        for loader in loaders:
            loader.begin_next(counts=len(places) == 1)
        while not all(loader.is_done for loader in loaders):
            for connection in wait([loader.lane.connection for loader in loaders]):
                loader = by_connection[connection]
                if loader.hear():
                    loader.begin_next(counts=all(one.has_begun for one in loaders))
        rows = [row for loader in loaders for row in loader.rows]
    if fault := next((text for row in rows if (text := _fault(row))), None):
        if len(places) == 1:
            raise EyelevelError(f"a load that has the machine to itself is rejected: {fault}")
        raise LoadsDoNotCount(f"a load next to others is rejected: {fault}")
    return rows


class Loader:
    """A lane that loads one page after another over all protocols. Each page counts once: the first time that all
    other lanes are already loading pages when it begins."""

    def __init__(self, lane: RunningLane, store: FolderStore, at_once: int, pages: Pages, method: Method) -> None:
        self.lane = lane
        self.has_begun = False
        self._store, self._at_once, self._pages, self._method = store, at_once, pages, method
        # Lanes begin with different pages.
        names = list(pages)
        self._sites = names[lane.lane.number % len(names) :] + names[: lane.lane.number % len(names)]
        self._number = 0
        self._counts = False
        self._counting: list[int] = []

    @property
    def is_done(self) -> bool:
        """Whether each page has been loaded in a way that counts."""
        return len(self._counting) == len(self._sites)

    @property
    def rows(self) -> list[Row]:
        """The last row of each run that counts."""
        rows = {row.of: row for row in self._store.rows if row.block in self._counting}
        return list(rows.values())

    def begin_next(self, *, counts: bool) -> None:
        """Begin to load the next page; `counts`: all other lanes are loading pages."""
        self._number += 1
        self._counts = counts and not self.is_done
        site = self._sites[len(self._counting) % len(self._sites)]
        runs = {Run(site, "-", name, self._number): setting for name, setting in self._pages[site].items()}
        block = Block(self._number, runs, self._method, REPEATS, FilmPolicy("none"), at_once=self._at_once)
        self.lane.begin(block, self._store)

    def hear(self) -> bool:
        """Handle the lane's next message; returns whether its page has been loaded."""
        message = self.lane.hear(self._store)
        self.has_begun = self.has_begun or isinstance(message, Beginning)
        if not isinstance(message, Ending):
            return False
        if self._counts:
            self._counting.append(self._number)
        return True


def times_of(rows: Sequence[Row]) -> dict[str, float]:
    """Quantity → its geometric mean over all pages and lanes (ms)."""
    logs: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for metric in METRICS:
            logs[f"{metric.upper()} over {row.protocol}"].append(math.log(row.metrics[metric] or 0.0))
    return {quantity: math.exp(fmean(values)) for quantity, values in logs.items()}


def _fault(row: Row) -> str | None:
    """Why `row` cannot be used, or None."""
    absent = [metric for metric in METRICS if not row.metrics.get(metric)]
    return str(row.reason) if row.reason else f"it has no {absent[0]}" if absent else None


def record_of(calibration: Calibration, network: Network, sites: Sequence[Site], browser: str) -> dict[str, Any]:
    """`calibration` as `campaign.json` has it, with all that it depends on."""
    return {
        **asdict(calibration),
        "network": unstructured(network),
        "sites": [site.name for site in sites],
        "protocols": list(PROTOCOLS),
        "browser": browser,
    }
