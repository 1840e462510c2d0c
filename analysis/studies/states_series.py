"""From the qlogs of connections to series of their windows, spells of their states, and shares of time.

Functions of what `servers.qlog` reads; times in s from a moment that the caller names (s since 1970), sizes in bytes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from servers.qlog import METRICS, STATE, Qlog

# TCP's connections are looked at so often (`measure.run.socket_witness`): what is shorter is seen of QUIC alone.
LEAST_SPELL_S = 0.005

# Columns of a series, and what qlog calls them; RTTs are in ms, rates in bit/s, losses from the start.
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
    """A time that a connection has spent in a state."""

    state: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def series(qlog: Qlog, zero_s: float) -> pd.DataFrame:
    """A row for every time at which something was told: `time_s` from `zero_s` on, and `COLUMNS`, each as last told.

    What has not been told yet is not a number, but for what begins with nothing: deliveries and losses.
    """
    events = qlog.named(METRICS)
    rows = [[event.data.get(name, np.nan) for name in COLUMNS.values()] for event in events]
    table = pd.DataFrame(rows, columns=list(COLUMNS), dtype=float).ffill()
    table[["in_flight", "delivered", "lost"]] = table[["in_flight", "delivered", "lost"]].fillna(0)
    table.insert(0, "time_s", [qlog.began_s - zero_s + event.time_ms / 1e3 for event in events])
    return table


def spells(qlog: Qlog, zero_s: float, end_s: float, least_s: float = LEAST_SPELL_S) -> list[Spell]:
    """The spells of a connection between `zero_s` and `end_s` (s since 1970), in order.

    They end with the last of its data that was acknowledged before `end_s`: what is idle afterwards is not counted.
    Those shorter than `least_s` are part of the spell before.
    """
    over_s = min(end_s, _last_delivery_s(qlog, end_s)) - zero_s
    began_s = qlog.began_s - zero_s
    told = [(began_s + event.time_ms / 1e3, str(event.data["new"])) for event in qlog.named(STATE)]
    ends = [start for start, _ in told[1:]] + [over_s]
    clipped = [Spell(state, max(start, 0.0), min(end, over_s)) for (start, state), end in zip(told, ends, strict=True)]
    joined: list[Spell] = []
    for spell in clipped:
        if spell.seconds <= 0:
            continue
        if joined and (spell.seconds < least_s or spell.state == joined[-1].state):
            joined[-1] = Spell(joined[-1].state, joined[-1].start_s, spell.end_s)
        elif joined and len(joined) == 1 and joined[0].seconds < least_s:
            joined[0] = Spell(spell.state, joined[0].start_s, spell.end_s)
        else:
            joined.append(spell)
    return joined


def shares(connections: Iterable[Sequence[Spell]]) -> dict[str, float]:
    """State → its share of the time of all `connections` together, so that each counts by its time; largest first."""
    seconds: Counter[str] = Counter()
    for spells_of_one in connections:
        for spell in spells_of_one:
            seconds[spell.state] += spell.seconds  # type: ignore[assignment]
    total = sum(seconds.values())
    return {state: spent / total for state, spent in seconds.most_common()} if total else {}


def transitions(connections: Iterable[Sequence[Spell]]) -> Counter[tuple[str, str]]:
    """How often all `connections` together went from one state to another."""
    return Counter(
        (before.state, after.state) for spells_of_one in connections for before, after in pairwise(spells_of_one)
    )


def probabilities(counted: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    """The share of each transition among those that leave the same state."""
    leaving: Counter[str] = Counter()
    for (before, _), times in counted.items():
        leaving[before] += times
    return {(before, after): times / leaving[before] for (before, after), times in counted.items()}


def delivered_bytes(qlog: Qlog) -> float:
    """What a connection has carried to the client."""
    return max((event.data.get("bytes_delivered", 0.0) for event in qlog.named(METRICS)), default=0.0)


def _last_delivery_s(qlog: Qlog, end_s: float) -> float:
    """When the last data were acknowledged before `end_s`, in s since 1970; the connection's beginning if none were."""
    last_s, delivered = qlog.began_s, 0.0
    for event in qlog.named(METRICS):
        at_s = qlog.began_s + event.time_ms / 1e3
        if at_s > end_s:
            break
        if event.data.get("bytes_delivered", delivered) > delivered:
            last_s, delivered = at_s, event.data["bytes_delivered"]
    return last_s
