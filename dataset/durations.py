"""The durations of runs, from a campaign's rows."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean

from dataset.table import Cell, Row, Run
from record.names import original_of
from tuning.devices import PACE_CHECK_OF_DEVICE_S, PACE_CHECK_S, device_of


def mean_seconds(rows: Iterable[Row]) -> dict[Cell, float]:
    """The mean duration (s) of an attempt in each cell of `rows`."""
    seconds: dict[Cell, list[float]] = defaultdict(list)
    for row in rows:
        seconds[row.site, row.network].append(row.seconds)
    return {cell: mean(of_cell) for cell, of_cell in seconds.items()}


def pace_seconds(runs: Iterable[Run]) -> float:
    """The time that the pace checks of devices take (s). There is one check after each block of `runs`; it also serves
    the next block."""
    devices: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for run in runs:
        if device := device_of(run.browser):
            devices[original_of(run.site), run.network, run.number].add(device.name)
    return sum(PACE_CHECK_S + PACE_CHECK_OF_DEVICE_S * len(of_block) for of_block in devices.values())
