"""The report's section on fairness: rates over time, shares by queue, and tables of both."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.text import label, level, plural, share
from base.structure import structured
from dataset.table import DOCUMENT, require_document
from studies.fairness import figures
from studies.fairness.defaults import AGAINST, UNSETTLED_S
from studies.fairness.measure import STUDY
from studies.fairness.shares import RunRates, link_mbps, queue_of, read_runs, summary, table
from tuning.networks import Network


def section(folder: Path) -> Section | None:
    """The section on the fairness in `folder`; None if there is none. Raises EyelevelError."""
    runs = read_runs(folder, STUDY)
    if not runs:
        return None
    document = require_document(folder)
    against = str(document.settings.method.get("against", AGAINST))
    confidence = of_campaign(folder, document).confidence
    rate_mbps = link_mbps(folder)
    all_runs = table(runs, rate_mbps)
    means = summary(all_runs, confidence)
    networks = {
        name: structured(values, Network, f"{folder / DOCUMENT} is broken: the network {name}")
        for name, values in document.settings.networks.items()
    }
    places = {name: (network.down_mbps or 0.0, *queue_of(network)) for name, network in networks.items()}
    drawn = []
    for mix in dict.fromkeys(means["mix"]):
        of_mix = means[means["mix"] == mix]
        caption = (
            f"The share that {_flows(mix)} got of the link, by its rate and its queue (means over runs, "
            f"{level(confidence)} intervals). The dotted line is the share of equal parts."
        )
        drawn.append(ReportFigure(f"shares-{mix}", caption, figures.draw_shares, (of_mix, places)))
        for network in dict.fromkeys(of_mix["network"]):
            some = [one for one in runs if one.network == network and f"{one.mix[0]}x{one.mix[1]}" == mix]
            drawn.append(_rates(some, mix, network, against, rate_mbps[network]))
    columns: dict[Any, Any] = {
        "network": ("network", label),
        "mix": "flows",
        "protocol": ("protocol", label),
        "runs": "runs",
        "share": ("share", share),
        ("share_low", "share_high"): (
            f"{level(confidence)} interval",
            lambda low, high: f"{share(low)} to {share(high)}",
        ),
        "relative": ("of its equal part", "{:.2f}".format),
        "jain": ("Jain's index", "{:.3f}".format),
        "used": ("of the link", share),
    }
    note = (
        f"Means over runs, without their first {UNSETTLED_S:g} s. Flows: of the protocol, and against how many others."
    )
    tables = (
        ReportTable("shares", "How the link was shared", means, text_table(means, columns), note),
        ReportTable("share-runs", "Every run", all_runs, all_runs.round(4).astype(str)),
    )
    paragraphs = _sentences(means, against)
    return Section(STUDY, "Fairness", paragraphs, tuple(drawn), tables=tables)


def _rates(runs: list[RunRates], mix: str, network: str, against: str, rate_mbps: float | None) -> ReportFigure:
    caption = (
        f"The rate of each flow over time, {_flows(mix)} on {label(network)}: lines are means over runs, bands "
        "reach from the lowest to the highest."
    )
    return ReportFigure(f"rates-{mix}-{network}", caption, figures.draw_rates, (runs, against, rate_mbps))


def _sentences(means: pd.DataFrame, against: str) -> tuple[str, ...]:
    """Sentences on the share of each protocol in its most and in its least generous setting."""
    sentences = []
    for protocol, rows in means.groupby("protocol", sort=False):
        low, high = rows.loc[rows["relative"].idxmin()], rows.loc[rows["relative"].idxmax()]
        text = f"{label(str(protocol))} got {_got(high)}"
        text += f" at most, {_got(low)} at least" if len(rows) > 1 else ""
        sentences.append(f"{text}, against {label(against)}.")
    return (" ".join(sentences), "A fair share is 1.00 times the equal part; all flows begin together and never stop.")


def _got(row: "pd.Series[Any]") -> str:
    where = f"{share(row['share'])} as {row['mix']} on {label(row['network'])}"
    return f"{row['relative']:.2f} times its equal part ({where})"


def _flows(mix: str) -> str:
    count, others = map(int, mix.split("x"))
    return f"{plural('flow', count)} against {plural('other', others)}"
