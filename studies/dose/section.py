"""The report's section on the dose: the changes in sentences, as a figure and as a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.runs import CampaignTable, load, records, rows_of
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.text import label, level, listing, p_value, pair_label, percent, percent_interval, plural, share
from dataset.table import RUNS, read_document
from studies.dose import figure
from studies.dose.changes import ALL_PAGES, METRICS, SLOPE_STEP, changes
from studies.dose.measure import STUDY
from studies.dose.shares import SHARES

UNWAITED = "without waiting"


def section(folder: Path) -> Section | None:
    """The section on the dose in `folder`; None if it is another study's campaign, or if no block has two protocols
    that count. Raises EyelevelError."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY or not (folder / RUNS).exists():
        return None
    campaign = load(folder)
    hypotheses = of_campaign(folder, document).restricted_to(campaign.protocols, campaign.metrics)
    pairs = hypotheses.family
    table = changes(campaign, pairs, hypotheses)
    if table.empty:
        return None
    confidence = level(hypotheses.confidence)
    leads = [lead(rows) for _, rows in table.groupby(["reference", "compared", "network"], sort=False)]
    drawn = tuple(of_pair(table, pair, campaign, confidence) for pair in pairs if len(rows_of(table, **pair._asdict())))
    return Section(
        STUDY,
        "The dose: what the processor changes",
        (" ".join(leads), *refusals(table), explanation(hypotheses)),
        drawn,
        tables=(change_table(table, confidence),),
    )


def lead(rows: pd.DataFrame) -> str:
    """A sentence on the change of the first metric at each share of the processor and without waiting, from the `rows`
    of `changes` of one pair and network; and one on each metric whose change has another sign with less waiting."""
    first = rows.iloc[0]
    of_all = rows_of(rows, pages=ALL_PAGES)
    metric = next(name for name in METRICS if (of_all["metric"] == name).any())
    *of_shares, unwaited = records(rows_of(of_all, metric=metric))
    parts = [f"{_change(row)} with {level(row['share'])}" for row in of_shares]
    end = "not extrapolated to no waiting" if unwaited["refusal"] else f"{_change(unwaited)} extrapolated to no waiting"
    text = (
        f"{label(metric)} of {pair_label(first['compared'], first['reference'])} on {label(first['network'])}, by the "
        f"share of the processor for the browser and the servers: {listing(parts)}; {end}."
    )
    changed = rows[rows["changes_sign"]].drop_duplicates(["pages", "metric"])
    # All pages come first; a group is named only where it is alone.
    everywhere = {*rows_of(changed, pages=ALL_PAGES)["metric"]}
    changed = changed[(changed["pages"] == ALL_PAGES) | ~changed["metric"].isin(everywhere)]
    if len(changed):
        names = [_of_group(label(row["metric"]), row["pages"]) for row in records(changed)]
        text += f" Whether it is faster depends on the processor: {listing(names)}."
    return text


def _of_group(text: str, pages: str) -> str:
    return text if pages == ALL_PAGES else f"{text} (pages of {pages})"


def _change(row: dict[str, Any]) -> str:
    interval = percent_interval(row["gain_low"], row["gain_high"])
    return f"{percent(row['gain'])} ({interval if np.isfinite(row['gain_low']) else 'too few blocks'})"


def refusals(table: pd.DataFrame) -> list[str]:
    """Why some changes are not extrapolated: a sentence for each reason."""
    refused = table[table["refusal"] != ""]
    sentences = []
    for reason, rows in refused.groupby("refusal", sort=False):
        names = [_of_group(f"{label(row['metric'])} on {label(row['network'])}", row["pages"]) for row in records(rows)]
        sentences.append(f"Not extrapolated: {listing(list(dict.fromkeys(names)))}, since {reason}.")
    return [" ".join(sentences)] if sentences else []


def explanation(hypotheses: Hypotheses) -> str:
    """How to read the numbers."""
    shares = listing([level(one) for one in SHARES])
    return (
        f"Each block loads a page over all protocols with {shares} of the processor for the browser and the servers, "
        "in random order; the emulated network and the film have all of it. A share of waiting is the time that "
        "threads waited for a processor, as a share of the time in which they had work; it is the mean of both "
        "protocols. On each page, the log ratio is modelled as a straight line over this mean, whose slope comes from "
        "the assigned shares of the processor, so errors in the waits do not flatten it. The value of this line at no "
        "waiting is an extrapolation. It assumes that waiting for other processes costs as much as waiting for the "
        f"limit. Pages have equal weight. A change is shown at p < {hypotheses.significant_p:g}, corrected by "
        "Bonferroni's method over all rows of the table; intervals hold each by itself."
    )


def of_pair(table: pd.DataFrame, pair: Pair, campaign: CampaignTable, confidence: str) -> ReportFigure:
    """The figure of `pair`."""
    runs = campaign.runs
    caption = (
        f"{pair_label(pair.compared, pair.reference)}: the change against the share of waiting, at each share of the "
        "processor (filled; the larger, the larger the share), and extrapolated to no waiting (hollow; dashed: the "
        f"mean line of the pages). Bars: {confidence} intervals. "
        f"{plural('page', runs['site'].nunique())}, {plural('run', len(campaign.valid))}, "
        f"{plural('attempt', int((~runs['valid']).sum()))} excluded."
    )
    finding = " ".join(lead(rows) for _, rows in rows_of(table, **pair._asdict()).groupby("network", sort=False))
    return ReportFigure(f"{STUDY}-{pair.compared}-{pair.reference}", caption, figure.draw, (table, pair), finding)


def change_table(table: pd.DataFrame, confidence: str) -> ReportTable:
    """The table of `changes`."""
    columns: dict[Any, Any] = {
        "network": ("network", label), "pages": "pages", "metric": ("metric", label),
        ("reference", "compared"): ("between", lambda first, second: f"{label(first)} → {label(second)}"),
        "share": ("processor", lambda value: level(value) if value > 0 else UNWAITED),
        "waiting": ("share of waiting", share), "sites": "sites", "blocks": "blocks", "gain": ("change", percent),
        ("gain_low", "gain_high"): (f"{confidence} interval", percent_interval),
        "p_corrected": ("corrected p", p_value),
        "slope": ("slope", percent), ("slope_low", "slope_high"): ("interval of the slope", percent_interval),
        "changes_sign": ("sign", lambda value: "changes" if value else ""),
    }  # fmt: skip
    note = (
        "The change from the protocol before the arrow to the one after it. Slope: by how much the ratio of their "
        f"times changes for {100 * SLOPE_STEP:.0f} points more waiting. Sign: both a faster and a slower one are shown "
        "among the rows of a metric."
    )
    return ReportTable("dose_changes", "Changes with the processor", table, text_table(table, columns), note)
