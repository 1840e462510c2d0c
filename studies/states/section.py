"""Congestion states: what the logs of a campaign's loads say (`studies.states.measure`), for its report.

Shares of time are those of all connections of all runs of a setting together, each by its time: from its beginning, or
the navigation's, to the last acknowledgement of data before the page had all it asked for.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.style import named
from analysis.report.plates import Plate
from analysis.report.section import Section
from analysis.report.views import View, counted, ms, share
from base.errors import EyelevelError
from measure.table import Row, valid_rows
from servers.qlog import SUFFIX, read_qlog
from studies.states import graph as states_graph
from studies.states import windows_figure
from studies.states.measure import STUDY, read_loading
from studies.states.series import (
    Spell,
    delivered_bytes,
    probabilities,
    series,
    shares,
    spells,
    transitions,
)

NAME = "states"
IDLE, REPAIRING = "application_limited", ("recovery", "pto", "rto")


@dataclass(frozen=True)
class Connection:
    """A connection of a load: its log, what it carried meanwhile (bytes), and its spells."""

    path: Path
    delivered: float
    spells: tuple[Spell, ...]


@dataclass(frozen=True)
class Load:
    """A run that counts: when it was navigated (s since 1970), its page load time, and its connections."""

    number: int
    navigated_s: float
    plt_ms: float
    connections: tuple[Connection, ...]

    @property
    def busiest(self) -> Connection:
        """The connection that carried most."""
        return max(self.connections, key=lambda connection: connection.delivered)


@dataclass(frozen=True)
class Setting:
    """All loads of a site, a network and a protocol."""

    site: str
    network: str
    protocol: str
    loads: tuple[Load, ...]

    @property
    def spells(self) -> list[tuple[Spell, ...]]:
        """Those of every connection."""
        return [connection.spells for load in self.loads for connection in load.connections]

    @property
    def typical(self) -> Load:
        """The load with the median page load time; of two in the middle, the faster."""
        ordered = sorted(self.loads, key=lambda load: load.plt_ms)
        return ordered[(len(ordered) - 1) // 2]


def read_load(folder: Path, row: Row) -> Load:
    """The load of `row`, whose evidence is in `folder`. Raises EyelevelError when a part of it cannot be read."""
    loading, plt_ms = read_loading(folder), row.metrics["plt"]
    assert plt_ms is not None, "a load that counts has a load event"
    within = (loading.navigated_s, loading.finished_s)
    connections = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        log = read_qlog(path)
        connections.append(Connection(path, delivered_bytes(log, *within), tuple(spells(log, *within))))
    if not connections:
        raise EyelevelError(f"{folder} has no log of a connection (any more)")
    return Load(row.run, within[0], plt_ms, tuple(connections))


def read_settings(campaign: Path) -> list[Setting]:
    """All settings that have runs in the folder of `campaign`, in the order of the study's document."""
    loads: dict[tuple[str, str, str], list[Load]] = defaultdict(list)
    for row in valid_rows(campaign, STUDY):
        loads[row.site, row.network, row.protocol].append(read_load(campaign / row.folder, row))
    return [Setting(*setting, tuple(of_setting)) for setting, of_setting in loads.items()]


def section(campaign: Path) -> Section | None:
    """The report's section on the states in the folder of `campaign`; None when there is nothing of it."""
    settings = read_settings(campaign)
    if not settings:
        return None
    groups: dict[tuple[str, str], list[Setting]] = defaultdict(list)
    for setting in settings:
        groups[setting.site, setting.network].append(setting)
    plates: list[Plate] = []
    for (site, network), group in groups.items():
        plates += [_windows(site, network, group), _graph(site, network, group)]
    return Section(
        NAME,
        "Congestion states",
        (found_words(groups), *WORDS),
        tuple(plates),
        views=(share_table(settings), totals(settings)),
    )


WORDS = (
    "What the servers' congestion control did while pages were loaded, after Kakhki et al., “Taking a Long Look at "
    "QUIC” (IMC 2017), Figure 3. QUIC's servers log each packet sent, acknowledged or lost; TCP's connections are "
    "looked at in the kernel every 5 ms, so QUIC's logs are read at steps of 5 ms, too.",
    "Shares of time are those of all connections of all runs together, each by its time: from its beginning to the "
    "last acknowledgement before the page had all that it asked for. Application limited is a connection that has "
    "nothing to send although its window has room: waiting for requests, or for the last acknowledgements.",
)


def found_words(groups: Mapping[tuple[str, str], Sequence[Setting]]) -> str:
    """How connections spent their time, in a sentence for each site and network."""
    return " ".join(_found(site, network, group) for (site, network), group in groups.items())


def _found(site: str, network: str, group: Sequence[Setting]) -> str:
    told = []
    for setting in group:
        spent = shares(setting.spells)
        idle, missing = spent.get(IDLE, 0.0), sum(spent.get(state, 0.0) for state in REPAIRING)
        runs = counted("run", len(setting.loads))
        told.append(f"{named(setting.protocol)} {share(idle)} and {share(missing)} ({runs})")
    return (
        f"{site} behind {named(network)}: of their time connections had nothing to send, and were in recovery or "
        f"waiting after a timeout: {', '.join(told)}."
    )


def share_table(settings: Sequence[Setting]) -> View:
    """The share of time in each state, by setting."""
    told = [(setting, shares(setting.spells)) for setting in settings]
    states = [state for state in states_graph.ORDER if any(state in share_of for _, share_of in told)]
    rows, texts = [], []
    for setting, share_of in told:
        key = {"site": setting.site, "network": setting.network, "protocol": setting.protocol}
        values = {state: share_of.get(state, 0.0) for state in states}
        rows.append(key | {"runs": len(setting.loads)} | values)
        shown = {"site": setting.site, "network": named(setting.network), "protocol": named(setting.protocol)}
        texts.append(
            shown
            | {"runs": str(len(setting.loads))}
            | {states_graph.label(state): share(value) if state in share_of else "-" for state, value in values.items()}
        )
    return View("states_shares", "Share of time in each state", pd.DataFrame(rows), pd.DataFrame(texts))


def totals(settings: Sequence[Setting]) -> View:
    """How much time the shares rest on, and the busiest connections in numbers."""
    rows, texts = [], []
    for setting in settings:
        busiest = [load.busiest for load in setting.loads]
        tables = [_loading(connection, load) for connection, load in zip(busiest, setting.loads, strict=True)]
        row: dict[str, Any] = {
            "site": setting.site,
            "network": setting.network,
            "protocol": setting.protocol,
            "runs": len(setting.loads),
            "connections": sum(bool(told) for told in setting.spells),
            "seconds": sum(spell.seconds for told in setting.spells for spell in told),
            "transitions": sum(transitions(setting.spells).values()),
            "plt_ms": _mean(load.plt_ms for load in setting.loads),
            "busiest_mb": _mean(connection.delivered / 1e6 for connection in busiest),
            "largest_window_kb": _mean(table["window"].max() / 1e3 for table in tables),
            "lost_packets": _mean(table["lost"].max() for table in tables),
            "min_rtt_ms": _mean(table["min_rtt_ms"].min() for table in tables),
            "largest_srtt_ms": _mean(table["smoothed_rtt_ms"].max() for table in tables),
        }
        rows.append(row)
        texts.append(
            {
                "site": setting.site,
                "network": named(setting.network),
                "protocol": named(setting.protocol),
                "runs": str(row["runs"]),
                "connections": str(row["connections"]),
                "their time [s]": f"{row['seconds']:.1f}",
                "PLT [ms]": ms(row["plt_ms"]),
                "busiest: MB": f"{row['busiest_mb']:.2f}",
                "largest window [KB]": f"{row['largest_window_kb']:.0f}",
                "packets lost": f"{row['lost_packets']:.1f}",
                "largest RTT [ms]": ms(row["largest_srtt_ms"]),
            }
        )
    note = "From PLT on, means over runs; from MB on, of the connection that carried most. TCP's losses are its "
    note += "retransmissions."
    title = "What the shares rest on, and the busiest connections"
    return View("states_totals", title, pd.DataFrame(rows), pd.DataFrame(texts), note)


def _loading(connection: Connection, load: Load) -> pd.DataFrame:
    """The series of `connection` while the page was loaded."""
    table = series(read_qlog(connection.path), load.navigated_s)
    end_s = connection.spells[-1].end_s if connection.spells else 0.0
    return table[(table["time_s"] >= 0) & (table["time_s"] <= end_s)]


def _windows(site: str, network: str, group: Sequence[Setting]) -> Plate:
    shown = [(setting.protocol, setting.typical) for setting in group]
    drawn = [
        windows_figure.Drawn(protocol, _loading(load.busiest, load), load.busiest.spells) for protocol, load in shown
    ]
    which = ", ".join(f"{named(protocol)} run {load.number}" for protocol, load in shown)
    caption = (
        f"{site} behind {named(network)}: the connection that carried most, in the run with the median page load time "
        f"({which}). Lines: congestion window; areas: bytes in flight; ticks: losses; below: the states."
    )
    return Plate(f"states_windows_{site}_{network}", NAME, caption, windows_figure.draw, (drawn,))


def _graph(site: str, network: str, group: Sequence[Setting]) -> Plate:
    drawn = []
    for setting in group:
        counts = transitions(setting.spells)
        title = f"{named(setting.protocol)}, {counted('run', len(setting.loads))}"
        drawn.append(states_graph.Graph(title, shares(setting.spells), probabilities(counts), counts))
    caption = (
        f"{site} behind {named(network)}: share of time in each state, and how likely each is to be followed by "
        "which, over all connections and runs."
    )
    return Plate(f"states_graph_{site}_{network}", NAME, caption, states_graph.draw, (drawn,))


def _mean(values: Iterable[float]) -> float:
    told = list(values)
    return float(sum(told)) / len(told)
