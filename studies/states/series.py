"""Series of windows, spells of states and shares of time, from the qlogs of connections.

The functions take the qlogs that `base.qlog` reads. Times are in s from a moment that the caller gives (in s since
1970), sizes in bytes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from base.qlog import METRICS, STATE, Qlog

# The interval at which the kernel is asked for the state of TCP's connections (`studies.states`). QUIC's servers log
# every change, so their logs are sampled at the same interval: a short state is then equally likely to be seen over
# QUIC and over TCP.
SAMPLE_S = 0.005
# An event that follows a sample within this time counts as simultaneous: the time is less than clocks resolve and more
# than rounding loses.
SIMULTANEOUS_S = 2e-6

# The columns of a series → their names in qlog. RTTs are in ms, rates in bit/s, losses are counted from the start.
COLUMNS = {
    "window": "congestion_window",
    "in_flight": "bytes_in_flight",
    "smoothed_rtt_ms": "smoothed_rtt",
    "min_rtt_ms": "min_rtt",
    "pacing_bps": "pacing_rate",
    "bandwidth_bps": "bandwidth_estimate",
    "delivered": "bytes_delivered",
    "lost": "packets_lost",
}


@dataclass(frozen=True)
class Spell:
    """A period that a connection spent in one state."""

    state: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def series(qlog: Qlog, zero_s: float) -> pd.DataFrame:
    """A row for each event with metrics: `time_s` from `zero_s` on, and `COLUMNS`, each with its last value so far.

    A column without a value so far is NaN, except counts, which begin at 0: bytes in flight, bytes delivered and
    losses.
    """
    events = qlog.named(METRICS)
    rows = [[event.data.get(name, np.nan) for name in COLUMNS.values()] for event in events]
    table = pd.DataFrame(rows, columns=list(COLUMNS), dtype=float).ffill()
    table[["in_flight", "delivered", "lost"]] = table[["in_flight", "delivered", "lost"]].fillna(0)
    table.insert(0, "time_s", [qlog.began_s - zero_s + event.time_ms / 1e3 for event in events])
    return table


def spells(qlog: Qlog, zero_s: float, end_s: float) -> list[Spell]:
    """The spells of a connection between `zero_s` and `end_s` (s since 1970), in order, sampled every `SAMPLE_S`: a
    spell begins and ends at a sample, and a spell that lies between two samples is left out.

    The last spell ends when the last data before `end_s` was acknowledged: idle time after that does not count.
    """
    over_s = min(end_s, _last_delivery_s(qlog, end_s)) - zero_s
    began_s = qlog.began_s - zero_s
    changes = [(began_s + event.time_ms / 1e3, str(event.data["new"])) for event in qlog.named(STATE)]
    ends = [start for start, _ in changes[1:]] + [over_s]
    result: list[Spell] = []
    for (start, state), end in zip(changes, ends, strict=False):
        first_s, last_s = _next_sample_s(max(start, 0.0)), _next_sample_s(min(end, over_s))
        if last_s <= first_s:
            continue
        if result and result[-1].state == state:
            result[-1] = Spell(state, result[-1].start_s, last_s)
        else:
            result.append(Spell(state, first_s, last_s))
    return result


def _next_sample_s(at_s: float) -> float:
    return math.ceil((at_s - SIMULTANEOUS_S) / SAMPLE_S) * SAMPLE_S


def shares(connections: Iterable[Sequence[Spell]]) -> dict[str, float]:
    """State → its share of the time of all `connections` together, weighted by their time; the largest first."""
    seconds: Counter[str] = Counter()
    for spells_of_one in connections:
        for spell in spells_of_one:
            seconds[spell.state] += spell.seconds  # type: ignore[assignment]
    total = sum(seconds.values())
    return {state: spent / total for state, spent in seconds.most_common()} if total else {}


def transitions(connections: Iterable[Sequence[Spell]]) -> Counter[tuple[str, str]]:
    """The number of transitions between each two states, in all `connections` together."""
    return Counter(
        (before.state, after.state) for spells_of_one in connections for before, after in pairwise(spells_of_one)
    )


def probabilities(counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    """The share of each transition among those that leave the same state."""
    leaving: Counter[str] = Counter()
    for (before, _), times in counts.items():
        leaving[before] += times
    return {(before, after): times / leaving[before] for (before, after), times in counts.items()}


def delivered_bytes(qlog: Qlog, zero_s: float = -math.inf, end_s: float = math.inf) -> float:
    """The bytes that a connection carried to the client between `zero_s` and `end_s` (s since 1970)."""
    before = total = 0.0
    for event in qlog.named(METRICS):
        at_s, delivered = qlog.began_s + event.time_ms / 1e3, float(event.data.get("bytes_delivered", 0.0))
        if at_s < zero_s:
            before = max(before, delivered)
        elif at_s <= end_s:
            total = max(total, delivered)
    return max(0.0, total - before)


def _last_delivery_s(qlog: Qlog, end_s: float) -> float:
    """When the last data before `end_s` was acknowledged, in s since 1970; the connection's beginning if none was."""
    last_s, delivered = qlog.began_s, 0.0
    for event in qlog.named(METRICS):
        at_s = qlog.began_s + event.time_ms / 1e3
        if at_s > end_s:
            break
        if event.data.get("bytes_delivered", delivered) > delivered:
            last_s, delivered = at_s, event.data["bytes_delivered"]
    return last_s
