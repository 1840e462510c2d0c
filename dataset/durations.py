"""The durations of runs, from a campaign's rows."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

from dataset.table import Cell, Row, Run
from record.names import original_of
from tuning.devices import PACE_CHECK_OF_DEVICE_S, PACE_CHECK_S, device_of

# If an attempt began more than this time (s) after the end of the attempt before it, the campaign was stopped in
# between.
STOP_S = 300.0


def mean_seconds(rows: Iterable[Row], *, shared: bool = False) -> dict[Cell, float]:
    """How long a run of each cell has taken (s), on average over all runs in `rows`. This includes attempts that did
    not count, and the time from each attempt to the next, for canaries, films and gates. `shared`: by how much a run
    has prolonged the campaign, where several were made at once."""
    seconds: dict[Cell, float] = defaultdict(float)
    runs: dict[Cell, set[Run]] = defaultdict(set)
    for row, elapsed_s in (shared_seconds if shared else elapsed_seconds)(rows):
        seconds[row.site, row.network] += elapsed_s
        runs[row.site, row.network].add(row.of)
    return {cell: seconds[cell] / len(runs[cell]) for cell in seconds}


def elapsed_seconds(rows: Iterable[Row]) -> list[tuple[Row, float]]:
    """Each of `rows` with the time (s) until the next attempt began in its place, or its own duration if there is none,
    or if the campaign was stopped in between."""
    places: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for row in rows:
        places[row.machine, row.lane].append(row)
    elapsed: list[tuple[Row, float]] = []
    for of_place in places.values():
        ordered = sorted(of_place, key=lambda row: row.started_at)
        for row, next_row in pairwise(ordered):
            gap_s = _seconds_between(row.started_at, next_row.started_at)
            # Starts are known to a second, so the computed gap may be up to one second too short.
            is_known = gap_s is not None and row.seconds - 1 < gap_s < row.seconds + STOP_S
            elapsed.append((row, gap_s if gap_s is not None and is_known else row.seconds))
        elapsed.append((ordered[-1], ordered[-1].seconds))
    return elapsed


def shared_seconds(rows: Iterable[Row]) -> list[tuple[Row, float]]:
    """Each of `rows` with its share of the campaign's time (s): attempts made at the same time share it equally, and
    time without any goes to the one before, unless the campaign was stopped."""
    rows = list(rows)
    shares = [0.0] * len(rows)
    moments: list[tuple[float, bool, int]] = []
    for place, row in enumerate(rows):
        began_s = _seconds_between(rows[0].started_at, row.started_at)
        if began_s is None:
            shares[place] = row.seconds
        else:
            moments += [(began_s, True, place), (began_s + row.seconds, False, place)]
    running, share_s, last_s, before = 0, 0.0, 0.0, -1
    for now_s, begins, place in sorted(moments):
        if running:
            share_s += (now_s - last_s) / running  # of each attempt that has run all the time
        elif before >= 0 and now_s - last_s < STOP_S:
            shares[before] += now_s - last_s
        shares[place] += -share_s if begins else share_s
        running += 1 if begins else -1
        last_s, before = now_s, place
    return list(zip(rows, shares, strict=True))


def _seconds_between(start: str, end: str) -> float | None:
    """The seconds from `start` to `end`; None if one of them is no time in ISO 8601."""
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None


def pace_seconds(runs: Iterable[Run]) -> float:
    """The time that the pace checks of devices take (s). There is one check after each block of `runs`; it also serves
    the next block."""
    devices: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for run in runs:
        if device := device_of(run.browser):
            devices[original_of(run.site), run.network, run.number].add(device.name)
    return sum(PACE_CHECK_S + PACE_CHECK_OF_DEVICE_S * len(of_block) for of_block in devices.values())
