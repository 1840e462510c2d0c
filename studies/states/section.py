"""The report's section on congestion states, from the qlogs of a campaign's loads (`studies.states.measure`).

Shares of time are means over the runs of a setting (`studies.states.estimates`). Within a run they are shares of the
time of all its connections together. A connection's time begins with the connection, or with the navigation if that is
later. It ends with the last acknowledgement of data before the page had received everything that it requested.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, Section, text_table
from analysis.statistics.intervals import Estimate, over_runs
from analysis.text import NOTHING, label, level, listing, ms, plural, share
from base.errors import EyelevelError
from base.qlog import QLOG_ENDING, read_qlog
from dataset.table import Row, require_document, valid_rows
from studies.states import graph as states_graph
from studies.states import windows_figure
from studies.states.estimates import Connections, probability_estimates, share_estimates, transition_counts
from studies.states.measure import STUDY, read_loading
from studies.states.series import Spell, delivered_bytes, series, shares, spells, transitions

IDLE, REPAIRING = "application_limited", ("recovery", "pto", "rto")
TRANSITION = ["from_state", "to_state"]


@dataclass(frozen=True)
class LoggedConnection:
    """A connection of a load: its log, the bytes that it carried during the load, and its spells."""

    path: Path
    delivered_bytes: float
    spells: tuple[Spell, ...]


@dataclass(frozen=True)
class Load:
    """A run that counts: when its navigation began (s since 1970), its page load time, and its connections."""

    number: int
    navigated_s: float
    plt_ms: float
    connections: tuple[LoggedConnection, ...]

    @property
    def busiest(self) -> LoggedConnection:
        """The connection that carried the most bytes."""
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
    def runs(self) -> list[Connections]:
        """The spells of every connection of each load."""
        return [[connection.spells for connection in load.connections] for load in self.loads]

    @property
    def typical(self) -> Load:
        """The load with the median page load time; with two in the middle, the faster one."""
        by_time = sorted(self.loads, key=lambda load: load.plt_ms)
        return by_time[(len(by_time) - 1) // 2]


def read_load(folder: Path, row: Row) -> Load:
    """The load of `row`, whose evidence is in `folder`. Raises EyelevelError if a part of the evidence cannot be
    read."""
    loading, plt_ms = read_loading(folder), row.metrics["plt"]
    assert plt_ms is not None, "a load that counts has a load event"
    period = (loading.navigated_s, loading.finished_s)
    connections = []
    for path in sorted(folder.glob(f"*{QLOG_ENDING}")):
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
    """The section on the states in the folder of `campaign`; None if there are none. Raises EyelevelError."""
    settings = read_settings(campaign)
    if not settings:
        return None
    confidence = of_campaign(campaign, require_document(campaign)).confidence
    groups: dict[tuple[str, str], list[SettingLoads]] = defaultdict(list)
    for setting in settings:
        groups[setting.site, setting.network].append(setting)
    figures: list[ReportFigure] = []
    for place, group in groups.items():
        figures += [_windows(*place, group), _graph(*place, group, confidence)]
    return Section(
        STUDY,
        "Congestion states",
        (" ".join(_spent_time(*place, group, confidence) for place, group in groups.items()), *EXPLANATIONS),
        tuple(figures),
        tables=(share_table(settings, confidence), transition_table(settings, confidence), totals(settings)),
    )


EXPLANATIONS = (
    "These are the states of the servers' congestion control while pages were loaded, after Kakhki et al., “Taking a "
    "Long Look at QUIC” (IMC 2017), Figure 3. QUIC's servers log each packet sent, acknowledged or lost. The state of "
    "TCP's connections is read from the kernel every 5 ms, so QUIC's logs are read at steps of 5 ms, too.",
    "Shares of time are means over runs, with Student's intervals; within a run they are those of all its connections, "
    "each by its time: from its beginning to the last acknowledgement before the page had all that it asked for. "
    "Where there is one run, or all have the same value, there is no interval. A connection is application limited "
    "when it has nothing to send although its window has room: it waits for requests, or for the last "
    "acknowledgements.",
)


def _spent_time(site: str, network: str, group: Sequence[SettingLoads], confidence: float) -> str:
    """A sentence on how connections spent their time."""
    texts = []
    for setting in group:
        of_runs = [shares(run) for run in setting.runs]
        parts = [_share_text(_of_states(of_runs, states, confidence)) for states in ((IDLE,), REPAIRING)]
        texts.append(f"{label(setting.protocol)} {listing(parts)} ({plural('run', len(setting.loads))})")
    return (
        f"{site} on {label(network)}: shares of time in which connections had nothing to send, and in which they "
        f"were in recovery or waited after a timeout, with {level(confidence)} intervals over runs: "
        f"{', '.join(texts)}."
    )


def _of_states(of_runs: Sequence[Mapping[str, float]], states: Sequence[str], confidence: float) -> Estimate:
    """The share of time in any of `states`, over the runs with any time in a state."""
    sums = (sum(of_run.get(state, 0.0) for state in states) for of_run in of_runs if of_run)
    return over_runs(sums, confidence, (0, 1))


def _share_text(estimate: Estimate) -> str:
    interval = f" ({_interval(estimate.low, estimate.high)})" if estimate.has_interval else ""
    return f"{share(estimate.mean)}{interval}"


def _interval(low: float, high: float) -> str:
    return f"{share(low)} to {share(high)}" if math.isfinite(low) else NOTHING


def share_table(settings: Sequence[SettingLoads], confidence: float) -> ReportTable:
    """The table of the share of time in each state; the protocols of a site and network follow each other."""
    rows = []
    for setting in settings:
        for state, estimate in share_estimates(setting.runs, confidence).items():
            numbers = {"share": estimate.mean, "share_low": estimate.low, "share_high": estimate.high}
            rows.append(_place(setting) | {"state": state, "runs": estimate.runs} | numbers)
    data = _in_order_of_states(rows, ["state"])
    columns = {
        "site": "site", "network": ("network", label), "state": ("state", states_graph.state_label),
        "protocol": ("protocol", label), "runs": "runs", "share": ("share of time", share),
        ("share_low", "share_high"): (f"{level(confidence)} interval", _interval),
    }  # fmt: skip
    note = "Means over runs, each of which counts once. A state without a row was not seen in any run."
    texts = text_table(data, columns) if len(data) else pd.DataFrame()
    return ReportTable("states_shares", "Share of time in each state", data, texts, note)


def transition_table(settings: Sequence[SettingLoads], confidence: float) -> ReportTable:
    """The table of the probability of each transition; the protocols of a site and network follow each other."""
    rows = []
    for setting in settings:
        counts = transition_counts(setting.runs)
        for transition, estimate in probability_estimates(setting.runs, confidence).items():
            states = dict(zip(TRANSITION, transition, strict=True))
            numbers = {"probability": estimate.mean, "probability_low": estimate.low, "probability_high": estimate.high}
            rows.append(_place(setting) | states | {"runs": estimate.runs, "transitions": counts[transition]} | numbers)
    data = _in_order_of_states(rows, TRANSITION)
    columns = {
        "site": "site", "network": ("network", label), "from_state": ("from", states_graph.state_label),
        "to_state": ("to", states_graph.state_label), "protocol": ("protocol", label), "runs": "runs",
        "transitions": "transitions", "probability": ("probability", "{:.2f}".format),
        ("probability_low", "probability_high"): (f"{level(confidence)} interval", _probability_interval),
    }  # fmt: skip
    note = "Means over the runs in which the state was left, each of which counts once; transitions are of all runs."
    texts = text_table(data, columns) if len(data) else pd.DataFrame()
    return ReportTable("states_transitions", "Transitions between states", data, texts, note)


def _probability_interval(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}" if math.isfinite(low) else NOTHING


def _in_order_of_states(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """`rows` sorted by site and network, which keep their order, and then by the states in `columns`, in the order of
    STATES."""
    places = list(dict.fromkeys((row["site"], row["network"]) for row in rows))
    states = [
        *states_graph.STATES,
        *sorted({row[column] for row in rows for column in columns}.difference(states_graph.STATES)),
    ]
    return pd.DataFrame(
        sorted(
            rows,
            key=lambda row: (
                places.index((row["site"], row["network"])),
                *(states.index(row[column]) for column in columns),
            ),
        )
    )


def totals(settings: Sequence[SettingLoads]) -> ReportTable:
    """The table of the time that the shares rest on, and of the busiest connections in numbers."""
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
        rows.append(_place(setting) | {"runs": len(setting.loads)} | row)
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


def _place(setting: SettingLoads) -> dict[str, Any]:
    """The columns of a table that name the `setting` of a row."""
    return {"site": setting.site, "network": setting.network, "protocol": setting.protocol}


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
        f"{site} on {label(network)}: the connection that carried most, in the run with the median page load time "
        f"({runs}). Lines: congestion window; areas: bytes in flight; ticks: losses; below: the states."
    )
    logs = {f"{label(name)} run {load.number}: {load.busiest.path.name}": load.busiest.path for name, load in loads}
    return ReportFigure(
        f"states_windows_{site}_{network}", caption, windows_figure.draw, (connections,), run_files=logs
    )


def _graph(site: str, network: str, group: Sequence[SettingLoads], confidence: float) -> ReportFigure:
    graphs = []
    for setting in group:
        title = f"{label(setting.protocol)}, {plural('run', len(setting.loads))}"
        estimates = share_estimates(setting.runs, confidence), probability_estimates(setting.runs, confidence)
        graphs.append(states_graph.Graph(title, *estimates, transition_counts(setting.runs)))
    caption = (
        f"{site} on {label(network)}: share of time in each state, and the probability of each transition; means "
        f"over runs. Below a state's name: the {level(confidence)} interval of its share; dashed: transitions whose "
        "interval reaches 0."
    )
    return ReportFigure(f"states_graph_{site}_{network}", caption, states_graph.draw, (graphs,))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return float(sum(numbers)) / len(numbers)
