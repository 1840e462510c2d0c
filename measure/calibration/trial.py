"""The rounds of a calibration. Each loads a demo page over TCP and over QUIC under three conditions: with the machine
to itself, in a lane alone, and in a lane while every other lane loads the same page repeatedly.

Pages are loaded and filmed as in a campaign; each turn has fresh processes. This module only measures times; it does
not interpret them.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

from base.errors import EyelevelError
from dataset.table import Row, Run
from films.policy import FilmPolicy
from measure.calibration.calibration import LoadsDoNotCount, calibrate
from measure.calibration.equivalence import ALONE, BESIDE, CONDITIONS, WHOLE, Round
from measure.campaign.block import Beginning, Block
from measure.campaign.lane import Ending, LaneSetting, RunningLane, running_lane, stop_all
from measure.campaign.method import PAGES, Method
from measure.campaign.store import FolderStore
from measure.host.lanes import Lane, Lanes, cores_beside, lanes_of, working_on
from measure.host.topology import whole_cores
from measure.run.setting import Loading, Setting
from record import collection
from tuning import networks, protocols
from tuning.defaults import REPEATS

# The page needs much computing, and the network is fast: on a slow one, waiting for packets would hide slow computing.
SITE, NETWORK, PROTOCOLS = "demo-news", "dsl", ("tcp", "quic")
METRICS = ("plt", "si")
CANARY = "the canary's task"
SEED = 1
# Measures in a lane while the other lanes given are busy; returns protocol → row.
Turn = Callable[[Lane, Sequence[Lane]], Mapping[str, Row]]


def calibrated_lanes(browser: str, announce: Callable[[str], None]) -> Lanes:
    """The lanes that this machine takes, measured with `browser`. This takes minutes on a small machine and hours on a
    large one. Raises EyelevelError when loads do not count even with the machine to themselves."""
    cores = whole_cores()
    known = protocols.load()
    site, network = collection.load_site(SITE), networks.load()[NETWORK]
    loading = Loading(browser=browser)
    settings = {name: Setting(site, network, known[name], loading) for name in PROTOCOLS}
    material: dict[str, Any] = {"site": SITE, "network": NETWORK, "protocols": list(PROTOCOLS), "browser": browser}

    def measure_round(count: int, number: int) -> Round:
        lanes = lanes_of(count, cores)
        with working_on(cores_beside(lanes)):
            return one_round(lanes, cores, number, lambda one, others: one_turn(one, others, settings))

    return calibrate(cores, measure_round, announce, material)


def one_round(lanes: Sequence[Lane], cores: Sequence[Sequence[int]], number: int, turn: Turn) -> Round:
    """Time a `turn` under each condition, in an order drawn for the round, on a machine with these `cores`.

    Each round times a different lane. Raises LoadsDoNotCount, EyelevelError.
    """
    one = lanes[number % len(lanes)]
    others = [lane for lane in lanes if lane != one]
    whole = Lane(one.number, tuple(sorted(processor for core in cores for processor in core)))
    turns: dict[str, tuple[Lane, Sequence[Lane]]] = {WHOLE: (whole, ()), ALONE: (one, ()), BESIDE: (one, others)}
    times = {}
    for condition in Random(f"{SEED}/{number}").sample(CONDITIONS, len(CONDITIONS)):
        rows = turn(*turns[condition])
        if fault := next((text for row in rows.values() if (text := _fault(row))), None):
            if condition == WHOLE:
                raise EyelevelError(f"a load that has the machine to itself is rejected: {fault}")
            raise LoadsDoNotCount(f"a load in a lane {_PLACE[condition]} is rejected: {fault}")
        times[condition] = times_of(rows)
    return times


def one_turn(
    one: Lane,
    others: Sequence[Lane],
    settings: Mapping[str, Setting],
    method: Method = PAGES,
    begin: Callable[[LaneSetting], AbstractContextManager[RunningLane]] = running_lane,
) -> dict[str, Row]:
    """Measure `settings` (protocol name → setting) in lane `one` while the `others` measure the same settings
    repeatedly.

    Returns protocol → row of lane `one`. `begin` starts a lane; all lanes measure by `method`.
    """

    def block(number: int) -> Block:
        runs = {Run(SITE, NETWORK, name, number): setting for name, setting in settings.items()}
        return Block(number, runs, method, REPEATS, FilmPolicy("none"))

    with tempfile.TemporaryDirectory(prefix="calibration-") as temporary, ExitStack() as stack:
        browser = next(iter(settings.values())).loading.browser
        stores = {lane: FolderStore(Path(tempfile.mkdtemp(dir=temporary))) for lane in (one, *others)}
        running = {
            lane: stack.enter_context(begin(LaneSetting(lane, store.folder, browser=browser)))
            for lane, store in stores.items()
        }
        stack.callback(stop_all, running.values())
        neighbours: dict[object, Neighbour] = {
            running[lane].connection: Neighbour(running[lane], stores[lane], block) for lane in others
        }
        for neighbour in neighbours.values():
            neighbour.begin()
        running[one].begin(block(1), stores[one])
        while True:
            for connection in wait([lane.connection for lane in running.values()]):
                if connection in neighbours:
                    neighbours[connection].hear()
                elif isinstance(running[one].hear(stores[one]), Ending):
                    return {row.protocol: row for row in stores[one].rows}


class Neighbour:
    """A lane that stays busy while another lane is timed: it measures one block after another. `block` makes the block
    of a given number."""

    def __init__(self, lane: RunningLane, store: FolderStore, block: Callable[[int], Block]) -> None:
        self._lane, self._store, self._block = lane, store, block
        self._number = 0

    def begin(self) -> None:
        """Begin the first block, and return when its first load has begun."""
        self._begin_next()
        while not isinstance(self._lane.message(), Beginning):
            pass

    def hear(self) -> None:
        """Handle the lane's next message; if its block has ended, begin the next one."""
        if isinstance(self._lane.hear(self._store), Ending):
            self._begin_next()

    def _begin_next(self) -> None:
        self._number += 1
        self._lane.begin(self._block(self._number), self._store)


def times_of(rows: Mapping[str, Row]) -> dict[str, float]:
    """Quantity → its time (ms), from `rows` (protocol → row)."""
    times = {
        f"{metric.upper()} over {name}": value
        for name, row in rows.items()
        for metric in METRICS
        if (value := row.metrics[metric]) is not None
    }
    canary_ms = next(row.canary_cpu_ms for row in rows.values())
    return times | ({} if canary_ms is None else {CANARY: canary_ms})


def _fault(row: Row) -> str | None:
    """Why `row` cannot be used, or None."""
    absent = [metric for metric in METRICS if row.metrics.get(metric) is None]
    return str(row.reason) if row.reason else f"it has no {absent[0]}" if absent else None


_PLACE = {ALONE: "without neighbours", BESIDE: "beside others"}
