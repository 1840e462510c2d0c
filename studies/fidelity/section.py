"""The report's section on fidelity: the errors of all sites in sentences, as a figure and as tables."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, Section, text_table
from analysis.runs import CampaignTable, load
from analysis.text import (
    NOTHING,
    label,
    label_with_title,
    level,
    listing,
    ms,
    percent,
    percent_interval,
    plural,
    share,
    whole_number,
)
from dataset.table import RUNS, read_document
from studies.fidelity import error_figure, machine
from studies.fidelity.errors import errors, overall
from studies.fidelity.measure import STUDY, Compared, compared_sites, replayed_version

# The section begins with these metrics.
LEADS = ("plt", "si")


def section(folder: Path) -> Section | None:
    """The section on the fidelity of the replays in `folder`; None if it is another study's campaign, or if none of its
    runs can be compared. Raises EyelevelError."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY or not (folder / RUNS).exists():
        return None
    campaign, compared = load(folder), compared_sites(document)
    confidence = of_campaign(folder, document).confidence
    live = {name: one.live for name, one in compared.items()}
    by_site = errors(campaign, live, confidence)
    if by_site.empty:
        return None
    all_sites = overall(by_site, confidence)
    metrics = [metric for metric in campaign.metrics if (by_site["metric"] == metric).any()]
    first = [metric for metric in LEADS if metric in metrics] or metrics[:1]
    leads = [lead(row, confidence) for row in all_sites.to_dict("records") if row["metric"] in first]
    caption = (
        "How much longer replays take than live loads of the same page (0: as long; left: shorter). Points are single "
        f"sites with their {level(confidence)} intervals, which those of a single live load do not have; the band is "
        "the median error of all sites to both sides."
    )
    finding = "; ".join(f"{label(row['metric'])} {share(row['median_error'])}" for row in all_sites.to_dict("records"))
    figure = ReportFigure(
        "fidelity", caption, error_figure.draw, (by_site, all_sites, metrics), f"Median error of all sites: {finding}"
    )
    return Section(
        STUDY,
        "Fidelity: how far replays are from live loads",
        (" ".join(leads), *comparisons(compared, campaign), *limits(compared), *machine.sentences(live, campaign.runs)),
        (figure,),
        tables=(overall_table(all_sites, confidence), site_table(by_site, confidence)),
    )


def lead(row: Mapping[str, Any], confidence: float) -> str:
    """A row of `overall` as a sentence."""
    where = f", {row['condition']}" if row["condition"] else ""
    median = percent_interval(row["median_low"], row["median_high"])
    text = f"{label_with_title(row['metric'])}{where}: the median error of {plural('site', row['sites'])} is "
    text += share(row["median_error"])
    if median != NOTHING:
        text += f" ({level(confidence)} interval {share(row['median_low'])} to {share(row['median_high'])})"
    if not math.isnan(row["chance_error"]):
        text += f", where scatter alone would make about {share(row['chance_error'])}"
    mean = percent_interval(row["mean_low"], row["mean_high"])
    text += f"; replays differ by {percent(row['mean_error'])} on average"
    text += f" ({mean})" if mean != NOTHING else ""
    if row["with_interval"]:
        text += f"; the intervals of {row['with_zero']} of {plural('site', row['with_interval'])} have 0 in them"
    return f"{text}."


def comparisons(compared: Mapping[str, Compared], campaign: CampaignTable) -> list[str]:
    """The comparisons that were made: a sentence for all sites of the same kind."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    measured = set(campaign.valid["site"])
    for name, one in compared.items():
        if name in measured:
            over = tuple(f"over {label(protocol)} on {label(network)}" for network, protocol in one.conditions)
            kinds.setdefault((_version(one), *over), []).append(name)
    sentences = [
        f"{listing(names)}: live {version}, replayed {listing(over)}." for (version, *over), names in kinds.items()
    ]
    absent = [name for name in compared if name not in measured]
    return [" ".join(sentences), *([f"Without a run that counts: {listing(absent)}."] if absent else [])]


def _version(one: Compared) -> str:
    """The version of HTTP that most live requests used, in words."""
    ((version, _),) = one.live.requests.most_common(1) or [("", 0)]
    if not version:
        return "over an unknown version of HTTP"
    return f"mostly over {version}" if len(one.live.requests) > 1 else f"over {version}"


def limits(compared: Mapping[str, Compared]) -> list[str]:
    """The limits of the errors of these sites."""
    texts = [
        "An error is the ratio of the geometric means of replays and live loads, less 1. It has many "
        "causes, and does not separate them: the servers' distances and times to answer, their congestion control and "
        "windows, changes of the web since the recording, and changes of the page by the replay, such as the script "
        "that makes it send the same requests on every load."
    ]
    if single := [name for name, one in compared.items() if len(one.live.loads) == 1]:
        texts.append(
            f"There is one live load of {listing(single)}: the scatter of the live loads is unknown, and the "
            "error has no interval."
        )
    if older := [name for name, one in compared.items() if replayed_version(one.live) not in one.live.requests]:
        texts.append(f"{listing(older)} used a version of HTTP live that no server here speaks.")
    return texts


def overall_table(all_sites: pd.DataFrame, confidence: float) -> ReportTable:
    """The table of the errors over all sites."""
    interval = f"{level(confidence)} interval"
    columns: dict[Any, Any] = {
        **({"condition": "replayed"} if all_sites["condition"].any() else {}),
        "metric": ("metric", label),
        "sites": ("sites", whole_number),
        "median_error": ("median error", share),
        ("median_low", "median_high"): (interval, percent_interval),
        "chance_error": ("by scatter alone", share),
        "mean_error": ("mean difference", percent),
        ("mean_low", "mean_high"): ("interval of the mean", percent_interval),
        ("with_zero", "with_interval"): ("intervals with 0 in them", lambda some, all_: f"{some} of {all_}"),
    }
    note = (
        "Median error: of the errors' sizes, without their signs; its interval is that of the sign test. By scatter "
        "alone: about what it would be if replays were as live loads are, since either scatters; more loads and runs "
        "make it smaller. Mean difference: of the logarithms, with signs, over these sites. Intervals with 0 in them: "
        "of single sites, of those that have one; no evidence of sameness, since few loads make wide intervals."
    )
    return ReportTable("fidelity", "Errors over all sites", all_sites, text_table(all_sites, columns), note)


def site_table(by_site: pd.DataFrame, confidence: float) -> ReportTable:
    """The table of the errors of each site."""
    columns: dict[Any, Any] = {
        **SITE_SETTING,
        "metric": ("metric", label),
        "live_loads": ("live loads", whole_number),
        "runs": ("runs", whole_number),
        "live_ms": ("live [ms]", ms),
        "replay_ms": ("replay [ms]", ms),
        "error": ("error", percent),
        ("error_low", "error_high"): (f"{level(confidence)} interval", percent_interval),
        "live_scatter": ("scatter live", share),
        "replay_scatter": ("scatter of replays", share),
    }
    note = (
        "Times are geometric means. The interval is Welch's, of the logarithms. Scatter: standard deviation of the "
        "logarithms: an error that is smaller than that of the live loads is less than what two live loads differ by."
    )
    return ReportTable("fidelity_sites", "Errors of each site", by_site, text_table(by_site, columns), note)
