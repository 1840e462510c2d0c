"""The report's section on the ladder: contributions in sentences, as a waterfall and as tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.report.warnings import of_busy_processor
from analysis.runs import CampaignTable, load, rows_of
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import MOST_WIDENING
from analysis.text import (
    NOTHING,
    label,
    level,
    listing,
    ms_interval,
    p_value,
    pair_label,
    percent,
    percent_interval,
    plural,
    signed_ms,
    whole_number,
)
from dataset.table import RUNS, read_document
from studies.ladder import waterfall
from studies.ladder.contributions import (
    CHANGE,
    HIDDEN_LOSSES,
    METRICS,
    PART,
    RUNG,
    SLOW_BROWSER,
    SLOW_PAGE,
    UNKNOWN_SERVERS,
    VISIBLE_LOSSES,
    WHOLE,
    contributions,
    site_contributions,
)
from studies.ladder.measure import STUDY, Missing
from studies.ladder.rungs import ABOVE, BELOW, HIGHEST, RUNGS, SLOW, base_network, suffix_of

TOO_FEW = "too few blocks"
# A row of a figure has room for this many panels with their numbers.
PANELS = 2


def section(folder: Path) -> Section | None:
    """The section on the ladder in `folder`; None if it is another study's campaign, or if none of its runs count.
    Raises EyelevelError."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY or not (folder / RUNS).exists():
        return None
    campaign = load(folder)
    hypotheses = of_campaign(folder, document)
    table, sites = contributions(campaign, hypotheses), site_contributions(campaign)
    confidence = hypotheses.confidence
    metrics = [metric for metric in METRICS if (table["metric"] == metric).any()]
    if not metrics:
        return None
    networks, ends = list(dict.fromkeys(table["network"])), rows_of(table, kind=WHOLE).iloc[0]
    leads, details = [], []
    for network in networks:
        rows = [rows_of(table, network=network, metric=metric) for metric in metrics]
        leads += [lead(of_metric) for of_metric in rows]
        details.append(" ".join(detail(of_metric, campaign) for of_metric in rows))
    return Section(
        STUDY,
        f"The ladder from {label(ends['below'])} to {label(ends['above'])}",
        (
            " ".join(leads),
            *details,
            *missing_sentences(campaign, table),
            *waiting_sentences(campaign),
            *explanations(campaign, table, hypotheses),
        ),
        tuple(
            _figure(name, table, sites, networks, drawn, campaign, confidence)
            for name, drawn in ((STUDY, metrics[:PANELS]), (f"{STUDY}_paint", metrics[PANELS:]))
            if drawn
        ),
        tables=(contribution_table(table, metrics, confidence), site_table(sites, metrics)),
    )


def lead(rows: pd.DataFrame) -> str:
    """A sentence on the difference between the ends of the ladder and the rungs that cause it, from the `rows` of
    `contributions` for one network and metric."""
    rungs, (whole,) = rows_of(rows, kind=RUNG), rows_of(rows, kind=WHOLE).to_dict("records")
    text = (
        f"{_place(rows)}: {label(whole['above'])} against {label(whole['below'])} {_interval_text(whole)}, "
        f"{signed_ms(whole['ms'])} ms"
    )
    unclear = [row["name"] for row in _unclear(rungs)]
    if len(unclear) == len(rungs):
        return f"{text}; {TOO_FEW} to say which rungs contribute ({_remedy(rows)})."
    parts = [f"{row['name']} {percent(row['points'])} ({signed_ms(row['ms'])} ms)" for row in _shown(rungs)]
    result = f"shown to contribute: {listing(parts)}" if parts else "no rung is shown to contribute"
    rest = f"; {TOO_FEW} to judge {listing(unclear)} ({_remedy(rows)})" if unclear else ""
    return f"{text}; {result}{rest}."


def detail(rows: pd.DataFrame, campaign: CampaignTable) -> str:
    """All other results in these rows, in sentences."""
    rungs = rows_of(rows, kind=RUNG)
    (whole,) = rows_of(rows, kind=WHOLE).to_dict("records")
    rtt_ms = campaign.rtt_ms.get(whole["network"])
    parts = [f"{row['name']} {_interval_text(row)}, {_time(row['ms'], rtt_ms)}" for row in _shown(rungs)]
    judged = rungs[~rungs["is_shown"] & rungs["gain_low"].notna()]
    others = [f"{row['name']} {_interval_text(row)}, {signed_ms(row['ms'])} ms" for row in judged.to_dict("records")]
    unclear = [f"{row['name']} {percent(row['points'])}" for row in _unclear(rungs)]
    sentences = [f"shown to contribute: {'; '.join(parts)}."] if parts else []
    sentences += [f"{'N' if parts else 'n'}ot shown to: {'; '.join(others)}."] if others else []
    sentences += [f"{'N' if sentences else 'n'}ot judged, of {TOO_FEW}: {listing(unclear)}."] if unclear else []
    entries = rows.to_dict("records")
    sentences += [*_transport(entries), *_slowed(entries, campaign), *_unknown(entries)]
    counts = f"{plural('site', whole['sites'])}, {plural('block', whole['blocks'])}"
    return f"{_place(rows)} ({counts}): {' '.join(sentences)}"


def _place(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return f"{label(first['metric'])} on {label(first['network'])}"


def _shown(rungs: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rungs that are shown to contribute, the largest first."""
    return sorted(rungs[rungs["is_shown"]].to_dict("records"), key=lambda row: -abs(row["points"]))


def _unclear(rungs: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rungs that have too few blocks for an interval."""
    return list(rungs[rungs["gain_low"].isna()].to_dict("records"))


def _remedy(rows: pd.DataFrame) -> str:
    """The number of runs that would give intervals to those of `rows` that have none."""
    needed = int(rows["blocks_needed"].max())
    return f"each site needs {needed} that count, so at least RUNS={needed}"


def _transport(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on the transport's own contribution: its parts, and the rest, which no rung explains."""
    transport = [row for row in entries if (row["kind"], row["below"], row["above"]) == (RUNG, BELOW, ABOVE)]
    parts = {row["name"]: row for row in entries if row["kind"] == PART}
    if not transport:
        return []
    if HIDDEN_LOSSES in parts and VISIBLE_LOSSES in parts:
        visible, hidden = parts[VISIBLE_LOSSES], parts[HIDDEN_LOSSES]
        return [
            f"Head-of-line blocking and recovery after visible losses, in the transport itself, are "
            f"{_interval_text(visible)}; when the link hides its losses, {_interval_text(hidden)} remains, which no "
            "rung explains."
        ]
    if not transport[0]["is_shown"]:
        return []
    return [f"No rung explains the {percent(transport[0]['points'])} of the transport itself."]


def _slowed(entries: Sequence[Mapping[str, Any]], campaign: CampaignTable) -> list[str]:
    """The effect of a slower browser."""
    changes = {row["name"]: row for row in entries if row["kind"] == CHANGE}
    if SLOW_BROWSER not in changes or SLOW_PAGE not in changes:
        return []
    processors = campaign.settings.method.get("processor_share", 0)
    return [
        f"With {processors:g} of one processor for the browser, {label(BELOW)}'s time changes by "
        f"{percent(changes[SLOW_PAGE]['gain'], 0)}, and the transport's contribution by "
        f"{_interval_text(changes[SLOW_BROWSER])}."
    ]


def _unknown(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cost for QUIC if the browser does not know the servers."""
    return [
        f"In a browser that knows nothing of the servers, as where QUIC is only forced, {label(HIGHEST)} changes by "
        f"{_interval_text(row)}."
        for row in entries
        if row["name"] == UNKNOWN_SERVERS
    ]


def _interval_text(row: Mapping[str, Any]) -> str:
    """A contribution with its interval, or the reason why it has none."""
    return f"{percent(row['points'])} ({_or_reason(percent_interval(row['points_low'], row['points_high']))})"


def _time(ms: float, rtt_ms: float | None) -> str:
    """A step in ms and, on a network with a known round trip, in round trips."""
    return f"{signed_ms(ms)} ms" + (f" ({ms / rtt_ms:+.1f} round trips)" if rtt_ms else "")


def _or_reason(interval: str) -> str:
    """The text of an interval, or the reason why there is none."""
    return TOO_FEW if interval == NOTHING else interval


def missing_sentences(campaign: CampaignTable, table: pd.DataFrame) -> list[str]:
    """The rungs and conditions that were not measured, with the reasons; the rungs that were not requested; and the
    rungs without a run that counts on a network of the `table` of `contributions`."""
    missing = campaign.document.study.get("missing", ())
    sentences = [f"Not measured: {Missing(**entry)}." for entry in missing]
    names = {entry["name"] for entry in missing}
    absent = [rung for rung in RUNGS if rung.protocol not in campaign.protocols and rung.protocol not in names]
    if absent:
        sentences.append(f"Left out when the ladder was begun: {listing([rung.protocol for rung in absent])}.")
    for network, rows in rows_of(table, kind=RUNG).groupby("network", sort=False):
        measured = {*rows["below"], *rows["above"]}
        without = [one.protocol for one in RUNGS if one.protocol in {*campaign.protocols} - measured]
        if without:
            sentences.append(f"Without a run that counts on {label(str(network))}: {listing(without)}.")
    joined = "Where a rung is missing, its change is in the contribution of the next one, which then names both."
    return [" ".join([*sentences, joined])] if sentences else []


def waiting_sentences(campaign: CampaignTable) -> list[str]:
    """Whether the machine was too small or too busy for the loads, not counting those that were slowed on purpose."""
    runs = campaign.runs
    usual = runs[runs["valid"] & (runs["network"].map(suffix_of) != SLOW)]
    return of_busy_processor(usual, campaign.document.cores_of_a_run)


def explanations(campaign: CampaignTable, table: pd.DataFrame, hypotheses: Hypotheses) -> list[str]:
    """How to read the numbers in the `table` of `contributions`."""
    tests = len(table[(table["kind"] != WHOLE) & table["metric"].isin(METRICS)])
    metrics = listing([label(metric) for metric in METRICS if (table["metric"] == metric).any()])
    texts = [
        "Neighbouring rungs differ in one thing, and all rungs of a site are measured in the same blocks. A "
        "contribution is the location of the log ratios of a rung and the one below it within blocks, averaged over "
        "sites, as a step in percent of the lowest rung's time. ms are the "
        "locations of the differences within blocks, averaged over sites. A contribution is that of a change at its "
        "place in this order; in another order it may differ. The interval of a step leaves out how far the place may "
        "be off where it begins.",
        f"A rung is shown to contribute at p < {hypotheses.significant_p:g}, corrected by Bonferroni's method over all "
        f"{tests} rungs, parts and changes of this report, on all networks and in {metrics}. Their "
        f"{level(hypotheses.confidence)} intervals hold at once; that of a direct comparison holds by itself. They "
        "all come from blocks and are about these sites.",
        "The transport itself is what differs between TCP and QUIC with the same initial window, pacing, round trips "
        f"of the handshake, back-off and nearly the same order of bytes ({BELOW} and {ABOVE}): head-of-line blocking, "
        "loss recovery, packet and header sizes, the programs, and the processor time that they take. One round trip "
        "less per connection includes what 0-RTT saves on further connections to the same server, which a "
        "HelloRetryRequest forbids. Below the rung without backup connections, Chromium begins a second, unused "
        "TCP connection besides most that it waits for, where round trips take over 250 ms.",
    ]
    if any(suffix_of(name) == SLOW for name in campaign.networks):
        texts[-1] += (
            " With a slower browser, what the processor works takes longer: if QUIC costs the browser more work than "
            "TCP, the transport's contribution grows."
        )
    return texts


def _note_on_few(table: pd.DataFrame) -> str:
    """The note of a figure or a table on contributions without intervals; empty if there are none."""
    without = table[table[["gain_low", "ms_low"]].isna().any(axis=1)]
    if without.empty:
        return ""
    return (
        f" Where it says {TOO_FEW}, or a bar is an outline, an interval would be more than {MOST_WIDENING:g} times as "
        f"long as if it were known how much runs scatter ({_remedy(without)})."
    )


def _figure(
    name: str,
    table: pd.DataFrame,
    sites: pd.DataFrame,
    networks: Sequence[str],
    metrics: Sequence[str],
    campaign: CampaignTable,
    confidence: float,
) -> ReportFigure:
    runs, whole = campaign.runs, rows_of(table, kind=WHOLE)
    lowest, highest = whole.iloc[0][["below", "above"]]
    counts = []
    for network in networks:
        here = runs[runs["network"].map(base_network) == network]
        valid = here[here["valid"]]
        blocks = len(valid[["site", "block"]].drop_duplicates()) if "block" in valid else 0
        excluded = len(here) - len(valid)
        counts.append(
            f"{label(network)}: {plural('site', valid['site'].nunique())}, {plural('block', blocks)}, "
            f"{plural('run', len(valid))}, {plural('attempt', excluded)} excluded"
        )
    caption = (
        f"From {label(lowest)} to {label(highest)} ({'; '.join(counts)}). Each bar begins where the one above it ends. "
        f"Lines: {level(confidence)} intervals, those of all rungs, parts and changes at once, with an arrow where "
        "they extend farther; points: single sites; dotted: the end of the rungs. Below it: what else was changed in "
        "the same blocks, outside of the ladder."
    )
    if table["name"].str.contains(" + ", regex=False).any():
        caption += " Where rungs are missing, a bar has several changes, which the table lists."
    caption += _note_on_few(table[table["metric"].isin(metrics)])
    finding = "; ".join(
        f"{label(row['metric'])} on {label(row['network'])} {_interval_text(row)}"
        for row in whole[whole["metric"].isin(metrics)].to_dict("records")
    )
    alt = f"{pair_label(highest, lowest)}: {finding}"
    return ReportFigure(name, caption, waterfall.draw, (table, sites, networks, metrics), alt)


def contribution_table(table: pd.DataFrame, metrics: Sequence[str], confidence: float) -> ReportTable:
    """The table of `contributions`; the report shows only its rows on `metrics`."""
    columns = {
        "network": ("network", label), "metric": ("metric", label), "name": "contribution",
        ("below", "above"): ("between", lambda below, above: f"{below} → {above}"),
        "sites": ("sites", whole_number), "blocks": ("blocks", whole_number),
        "points": ("step", percent),
        ("points_low", "points_high"): (
            f"{level(confidence)} interval", lambda low, high: _or_reason(percent_interval(low, high))
        ),
        "p_corrected": ("corrected p", p_value), "gain": ("change", percent), "ms": ("ms", signed_ms),
        ("ms_low", "ms_high"): ("interval of ms", lambda low, high: _or_reason(ms_interval(low, high))),
    }  # fmt: skip
    note = (
        "Gain: against the setting before the arrow; step: the same in percent of the lowest rung's time. p is "
        "corrected over all rows but the direct comparisons, and the intervals of these rows hold at once. The CSV has "
        "all metrics; those that are not shown here are not judged."
    )
    note += _note_on_few(table)
    texts = text_table(table[table["metric"].isin(metrics)], columns)
    return ReportTable("ladder_contributions", "Contributions of the rungs", table, texts, note)


def site_table(sites: pd.DataFrame, metrics: Sequence[str]) -> ReportTable:
    """The table of `site_contributions`; the report shows only its rows on `metrics`."""
    columns = {
        "network": ("network", label), "site": "site", "metric": ("metric", label), "name": "contribution",
        "blocks": ("blocks", whole_number), "points": ("step", percent), "gain": ("change", percent),
        "ms": ("ms", signed_ms),
    }  # fmt: skip
    texts = text_table(sites[sites["metric"].isin(metrics)], columns)
    return ReportTable("ladder_sites", "Contributions on each site", sites, texts, "The CSV has all metrics.")
