"""The report's section on congestion states, from the qlogs of a campaign's loads (`studies.states.measure`).

Shares of time are those of all connections of all runs of a setting together, each by its time: from its beginning, or
the navigation's, to the last acknowledgement of data before the page had all it asked for.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, Section, text_table
from analysis.text import label, ms, plural, share
from base.errors import EyelevelError
from measure.table import Row, valid_rows
from servers.qlog import SUFFIX, read_qlog
from studies.states import graph as states_graph
from studies.states import windows_figure
from studies.states.measure import STUDY, read_loading
from studies.states.series import Spell, delivered_bytes, probabilities, series, shares, spells, transitions

IDLE, REPAIRING = "application_limited", ("recovery", "pto", "rto")


@dataclass(frozen=True)
class LoggedConnection:
    """A connection of a load: its log, the bytes that it carried during the load, and its spells."""

    path: Path
    delivered_bytes: float
    spells: tuple[Spell, ...]


@dataclass(frozen=True)
class Load:
    """A run that counts: when it was navigated (s since 1970), its page load time, and its connections."""

    number: int
    navigated_s: float
    plt_ms: float
    connections: tuple[LoggedConnection, ...]

    @property
    def busiest(self) -> LoggedConnection:
        """The connection that carried most."""
        return max(self.connections, key=lambda connection: connection.delivered_bytes)


@dataclass(frozen=True)
class SettingLoads:
    """All loads of a site, a network and a protocol."""

    site: str
    network: str
    protocol: str
    loads: tuple[Load, ...]

    @property
    def spells(self) -> list[tuple[Spell, ...]]:
        """The spells of every connection."""
        return [connection.spells for load in self.loads for connection in load.connections]

    @property
    def typical(self) -> Load:
        """The load with the median page load time; of two in the middle, the faster."""
        by_time = sorted(self.loads, key=lambda load: load.plt_ms)
        return by_time[(len(by_time) - 1) // 2]


def read_load(folder: Path, row: Row) -> Load:
    """The load of `row`, whose evidence is in `folder`. Raises EyelevelError when a part of it cannot be read."""
    loading, plt_ms = read_loading(folder), row.metrics["plt"]
    assert plt_ms is not None, "a load that counts has a load event"
    period = (loading.navigated_s, loading.finished_s)
    connections = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        log = read_qlog(path)
        connections.append(LoggedConnection(path, delivered_bytes(log, *period), tuple(spells(log, *period))))
    if not connections:
        raise EyelevelError(f"{folder} has no log of a connection")
    return Load(row.run, period[0], plt_ms, tuple(connections))


def read_settings(campaign: Path) -> list[SettingLoads]:
    """All settings that have runs in the folder of `campaign`, in the order of the study's document."""
    loads: dict[tuple[str, str, str], list[Load]] = defaultdict(list)
    for row in valid_rows(campaign, STUDY):
        loads[row.site, row.network, row.protocol].append(read_load(campaign / row.folder, row))
    return [SettingLoads(*setting, tuple(setting_loads)) for setting, setting_loads in loads.items()]


def section(campaign: Path) -> Section | None:
    """The section on the states in the folder of `campaign`; None when it has none. Raises EyelevelError."""
    settings = read_settings(campaign)
    if not settings:
        return None
    groups: dict[tuple[str, str], list[SettingLoads]] = defaultdict(list)
    for setting in settings:
        groups[setting.site, setting.network].append(setting)
    figures: list[ReportFigure] = []
    for place, group in groups.items():
        figures += [_windows(*place, group), _graph(*place, group)]
    return Section(
        STUDY,
        "Congestion states",
        (" ".join(_spent_time(*place, group) for place, group in groups.items()), *EXPLANATIONS),
        tuple(figures),
        tables=(share_table(settings), totals(settings)),
    )


EXPLANATIONS = (
    "What the servers' congestion control did while pages were loaded, after Kakhki et al., “Taking a Long Look at "
    "QUIC” (IMC 2017), Figure 3. QUIC's servers log each packet sent, acknowledged or lost. The state of TCP's "
    "connections is read from the kernel every 5 ms, so QUIC's logs are read at steps of 5 ms, too.",
    "Shares of time are those of all connections of all runs together, each by its time: from its beginning to the "
    "last acknowledgement before the page had all that it asked for. A connection is application limited "
    "when it has nothing to send although its window has room: it waits for requests, or for the last "
    "acknowledgements.",
)


def _spent_time(site: str, network: str, group: Sequence[SettingLoads]) -> str:
    """How connections spent their time, in a sentence."""
    texts = []
    for setting in group:
        state_shares = shares(setting.spells)
        idle, repairing = state_shares.get(IDLE, 0.0), sum(state_shares.get(state, 0.0) for state in REPAIRING)
        runs = plural("run", len(setting.loads))
        texts.append(f"{label(setting.protocol)} {share(idle)} and {share(repairing)} ({runs})")
    return (
        f"{site} behind {label(network)}: shares of time in which connections had nothing to send, and in which they "
        f"were in recovery or waited after a timeout: {', '.join(texts)}."
    )


def share_table(settings: Sequence[SettingLoads]) -> ReportTable:
    """The share of time in each state, by setting."""
    with_shares = [(setting, shares(setting.spells)) for setting in settings]
    states = [state for state in states_graph.STATES if any(state in share_of for _, share_of in with_shares)]
    rows = [
        _key(setting) | {state: share_of.get(state, math.nan) for state in states} for setting, share_of in with_shares
    ]
    data = pd.DataFrame(rows)
    headings = {state: (states_graph.state_label(state), share) for state in states}
    texts = text_table(data, {**SITE_SETTING, "runs": "runs", **headings})
    return ReportTable("states_shares", "Share of time in each state", data.fillna(0.0), texts)


def totals(settings: Sequence[SettingLoads]) -> ReportTable:
    """The time that the shares rest on, and the busiest connections in numbers."""
    rows = []
    for setting in settings:
        busiest = [load.busiest for load in setting.loads]
        tables = [_loading(connection, load) for connection, load in zip(busiest, setting.loads, strict=True)]
        row = {
            "connections": sum(bool(spells_of_one) for spells_of_one in setting.spells),
            "seconds": sum(spell.seconds for spells_of_one in setting.spells for spell in spells_of_one),
            "transitions": sum(transitions(setting.spells).values()),
            "plt_ms": _mean(load.plt_ms for load in setting.loads),
            "busiest_mb": _mean(connection.delivered_bytes / 1e6 for connection in busiest),
            "largest_window_kb": _mean(table["window"].max() / 1e3 for table in tables),
            "lost_packets": _mean(table["lost"].max() for table in tables),
            "min_rtt_ms": _mean(table["min_rtt_ms"].min() for table in tables),
            "largest_srtt_ms": _mean(table["smoothed_rtt_ms"].max() for table in tables),
        }
        rows.append(_key(setting) | row)
    columns = {
        **SITE_SETTING, "runs": "runs", "connections": "connections",
        "seconds": ("their time [s]", "{:.1f}".format), "plt_ms": ("PLT [ms]", ms),
        "busiest_mb": ("busiest: MB", "{:.2f}".format), "largest_window_kb": ("largest window [KB]", "{:.0f}".format),
        "lost_packets": ("packets lost", "{:.1f}".format), "largest_srtt_ms": ("largest RTT [ms]", ms),
    }  # fmt: skip
    data = pd.DataFrame(rows)
    note = "From PLT on, means over runs; from MB on, of the connection that carried most. TCP's losses are its "
    note += "retransmissions."
    title = "The basis of the shares, and the busiest connections"
    return ReportTable("states_totals", title, data, text_table(data, columns), note)


def _key(setting: SettingLoads) -> dict[str, Any]:
    """What a row of a table has of `setting` itself."""
    return {"site": setting.site, "network": setting.network, "protocol": setting.protocol, "runs": len(setting.loads)}


def _loading(connection: LoggedConnection, load: Load) -> pd.DataFrame:
    """The series of `connection` while the page was loaded."""
    table = series(read_qlog(connection.path), load.navigated_s)
    end_s = connection.spells[-1].end_s if connection.spells else 0.0
    return table[(table["time_s"] >= 0) & (table["time_s"] <= end_s)]


def _windows(site: str, network: str, group: Sequence[SettingLoads]) -> ReportFigure:
    loads = [(setting.protocol, setting.typical) for setting in group]
    connections = [
        windows_figure.ConnectionSeries(protocol, _loading(load.busiest, load), load.busiest.spells)
        for protocol, load in loads
    ]
    runs = ", ".join(f"{label(protocol)} run {load.number}" for protocol, load in loads)
    caption = (
        f"{site} behind {label(network)}: the connection that carried most, in the run with the median page load time "
        f"({runs}). Lines: congestion window; areas: bytes in flight; ticks: losses; below: the states."
    )
    return ReportFigure(f"states_windows_{site}_{network}", caption, windows_figure.draw, (connections,))


def _graph(site: str, network: str, group: Sequence[SettingLoads]) -> ReportFigure:
    graphs = []
    for setting in group:
        counts = transitions(setting.spells)
        title = f"{label(setting.protocol)}, {plural('run', len(setting.loads))}"
        graphs.append(states_graph.Graph(title, shares(setting.spells), probabilities(counts), counts))
    caption = (
        f"{site} behind {label(network)}: share of time in each state, and the probability of each transition, over "
        "all connections and runs."
    )
    return ReportFigure(f"states_graph_{site}_{network}", caption, states_graph.draw, (graphs,))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return float(sum(numbers)) / len(numbers)
