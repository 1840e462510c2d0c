"""The report's section on orders of service: changes in sentences, as a figure and a table, and the arrival of data."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.style import in_paper_order
from analysis.hypotheses import of_campaign
from analysis.report.largest_paints import paint_table, paints
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.runs import CampaignTable, load, records, rows_of
from analysis.text import label, level, listing, ms_interval, p_value, percent, percent_interval, plural, signed_ms
from base.bounded import read_json_value
from dataset.run_files import is_of_runs
from dataset.table import RUNS, read_document
from studies.order import figures
from studies.order.changes import METRICS, changes, typical_runs
from studies.order.measure import STREAMS, STUDY
from studies.order.orders import PAIRS, PROTOCOLS


def section(folder: Path) -> Section | None:
    """The section on the orders in `folder`; None if it is another study's campaign, or if no two orders have runs that
    count. Raises EyelevelError."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY or not (folder / RUNS).exists():
        return None
    campaign, hypotheses = load(folder), of_campaign(folder, document)
    table = changes(campaign, PAIRS, hypotheses)
    if table.empty:
        return None
    pairs = [pair for pair in PAIRS if len(rows_of(table, **pair._asdict()))]
    confidence = level(hypotheses.confidence)
    networks = in_paper_order(table["network"].unique())
    runs = campaign.runs
    caption = (
        "The change by each order of service, against quic_server's default order (urgency) with as many emulated "
        f"connections; below, by one connection instead of two. Lines: {confidence} intervals, all at once. "
        f"{plural('page', runs['site'].nunique())}, {plural('run', len(campaign.valid))}, "
        f"{plural('attempt', int((~runs['valid']).sum()))} excluded."
    )
    drawn = [ReportFigure(STUDY, caption, figures.draw_changes, (table, pairs))]
    drawn += arrivals(campaign, folder, networks)
    leads = [lead(table, network) for network in networks]
    how = (
        "An order changes when the data of a response arrive, not how many arrive. A change is the location of the log "
        f"ratios within blocks, averaged over pages. It is shown at p < {hypotheses.significant_p:g}, corrected by "
        "Bonferroni's method over all rows of the table. NGINX's order is drawn, and not compared: its loads differ in "
        "the transport, too."
    )
    of_paints = paint_table("order_paints", paints(campaign, ("network", "site", "protocol")))
    tables: tuple[ReportTable, ...] = (change_table(table, confidence), of_paints)
    tables = tuple(one for one in tables if len(one.data))
    title = "The order of service"
    return Section(STUDY, title, (" ".join(leads), how), tuple(drawn), tables=tables, unfolded_figures=2)


def lead(table: pd.DataFrame, network: str) -> str:
    """A sentence on the orders that are shown to change LCP on `network`, the largest change first."""
    rows = rows_of(table, network=network, metric=METRICS[0])
    largest = sorted(records(rows[rows["is_shown"]]), key=lambda row: -abs(row["gain"]))
    if not largest:
        return f"{label(METRICS[0])} on {label(network)}: no order is shown to change it."
    parts = [
        f"{label(row['compared'])} against {label(row['reference'])} {percent(row['gain'])} "
        f"({percent_interval(row['gain_low'], row['gain_high'])}, {signed_ms(row['ms'])} ms)"
        for row in largest
    ]
    return f"{label(METRICS[0])} on {label(network)}: {listing(parts)}."


def arrivals(campaign: CampaignTable, folder: Path, networks: list[str]) -> list[ReportFigure]:
    """A figure for each page and network: which response's data arrived when, in a load over each protocol."""
    drawn = []
    chosen = typical_runs(campaign, folder, STREAMS)
    for site in sorted(chosen["site"].unique()):
        for network in networks:
            rows = rows_of(chosen, site=site, network=network).set_index("protocol")
            loads = {}
            for protocol in [name for name in PROTOCOLS if name in rows.index]:
                file = folder / str(rows.loc[protocol, "folder"]) / STREAMS
                content = read_json_value(file) if is_of_runs(file, folder) else {}
                if content.get("largest"):
                    loads[protocol] = content
            if not loads:
                continue
            picture = next(iter(loads.values()))["largest"]["url"]
            largest = f"the picture {picture}" if picture else "text"
            caption = (
                f"{site} on {label(network)}: data that arrived at the browser, in the load with the median LCP over "
                f"each protocol. The largest paint is {largest}. Urgencies are those of the requests, compared with "
                "that of the picture's."
            )
            drawn.append(ReportFigure(f"{STUDY}-{site}-{network}", caption, figures.draw_arrivals, (loads,)))
    return drawn


def change_table(table: pd.DataFrame, confidence: str) -> ReportTable:
    """The table of `changes`."""
    columns: dict[Any, Any] = {
        "network": ("network", label), "metric": ("metric", label),
        ("reference", "compared"): ("between", lambda first, second: f"{label(first)} → {label(second)}"),
        "sites": "pages", "blocks": "blocks", "gain": ("change", percent),
        ("gain_low", "gain_high"): (f"{confidence} interval", percent_interval),
        "ms": ("ms", signed_ms), ("ms_low", "ms_high"): ("interval of ms", ms_interval),
        "p_corrected": ("corrected p", p_value),
    }  # fmt: skip
    note = "The change from the protocol before the arrow to the one after it. All intervals hold at once."
    return ReportTable("order_changes", "Changes by the order of service", table, text_table(table, columns), note)
