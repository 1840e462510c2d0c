"""The report's section on a grid of pages and networks."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.networks import path_rtt_ms
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.report.sentences import equivalence_margin
from analysis.runs import CampaignTable, load
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER, VERDICTS
from analysis.text import (
    NOTHING,
    file_name,
    label,
    label_with_title,
    label_with_unit,
    level,
    listing,
    ms,
    p_value,
    pair_label,
    percent,
    percent_interval,
    plural,
    share,
    size_label,
    span,
)
from base.errors import EyelevelError
from dataset.table import read_document
from studies.grid import heatmap, wait_download
from studies.grid.cells import BUDGET, MEASURED, METRIC, TIME, cells, metrics_of, pages_of, panels, row_label
from studies.grid.defaults import PRESETS
from studies.grid.hop_changes import hop_changes
from studies.grid.measure import STUDY
from studies.grid.pages import Page
from studies.grid.presets import read_preset
from studies.grid.slides import CONTROLLED, SIMILAR, SIMILAR_WITHIN, UNCHANGED, UNCONTROLLED, beside, read_old
from studies.grid.slides import PRESETS as OF_SLIDES
from studies.grid.timings import mean_times, timings

# The bars of waiting and downloading are for Kakhki et al.'s 10 MB image at 100 Mbit/s.
BARS_PAGE = Page(1, 10_000_000)
BARS_MBPS = 100
PAGE = {"count": "objects", "size_bytes": ("of", size_label)}
LOOKS = "Coloured: faster or slower. Grey, with =: equivalent. White, with ?: not decided."
REASONS = {TIME: "time", BUDGET: "budget"}
# How the report explains the words of `slides.by_size`. They judge means without a test, since the older study reports
# only means.
BY_SIZE = f"by the size of the difference of means alone ({SIMILAR}: less than {100 * SIMILAR_WITHIN:g} %)"
# The set-up of each part of the older study, as far as its numbers reveal it.
SET_UPS = {
    CONTROLLED: "The slides give round-trip times, and compare HTTP/2 with QUIC. They do not say where packets were "
    "lost. Here loss is on the uplink: 128 objects of 300 KB in 3.3 s are 94 Mbit/s, a hundred times what TCP reaches "
    "with a loss of 2 % in the direction of its data (Mathis et al., CCR 1997).",
    UNCONTROLLED: "The older study loaded pages from Google Sites over a home Wi-Fi, with a round trip of 25 ms and "
    "the delay and loss of netem. The slides give the numbers of objects on its pages, but neither their sizes nor "
    "the rate: here, both are chosen so that larger objects add about as much time as theirs. Our pages have nothing "
    "else of theirs. So do not compare the times, but their growth with the round trip and with losses: 196 objects "
    "over HTTP/2 took their pages 56 ms longer for each further ms of round trip, and 25 over QUIC. With 200 ms added "
    "and no loss, their times over HTTP/2 are shorter than with 100 ms. The slides have these numbers.",
}


def section(folder: Path) -> Section | None:
    """The section on the grid in `folder`; None if there is no grid. Raises EyelevelError if it is broken."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY:
        return None
    campaign = load(folder)
    preset = document.study.get("preset", "")
    if len(campaign.protocols) < 2:
        raise EyelevelError(f"the grid in {folder} has one protocol, and nothing to compare it with")
    declared = of_campaign(folder, document)
    by_metric = {metric: cells(campaign, declared, metric) for metric in metrics_of(campaign)}
    cell_table = by_metric[METRIC]
    old = beside(cell_table, read_old(preset)) if preset in OF_SLIDES else pd.DataFrame()
    paragraphs = [scope(campaign, by_metric), verdict_rule(declared, campaign), *limits(campaign, cell_table)]
    tables = [all_cells(of_metric, campaign, declared, metric) for metric, of_metric in by_metric.items()]
    if len(old):
        paragraphs[2:2] = [since_then(old), SET_UPS[preset]]
        tables.insert(0, old_study(old, preset, campaign))
    figures = [figure for metric, table in by_metric.items() for figure in heat_maps(campaign, table, metric)]
    by_hop = {metric: hop_changes(campaign, metric, declared) for metric in by_metric}
    if len(by_hop[METRIC]):
        paragraphs.append(what_hops_change(by_hop, campaign, declared))
        tables += [all_hop_changes(changes, campaign, declared, metric) for metric, changes in by_hop.items()]
        figures += [figure for metric, changes in by_hop.items() for figure in hop_maps(campaign, changes, metric)]
    figures += bars(campaign, declared.confidence)
    title = read_preset(preset).title if preset in PRESETS else "A grid of pages"
    return Section(STUDY, title, tuple(paragraphs), tuple(figures), tables=tuple(tables))


def heat_maps(campaign: CampaignTable, cell_table: pd.DataFrame, metric: str = METRIC) -> list[ReportFigure]:
    """A heat map of `metric` for each protocol that is compared with the first."""
    rows = [row_label(campaign, name) for name in campaign.networks]
    figures = []
    for compared in campaign.protocols[1:]:
        of_pair = cell_table[cell_table["compared"] == compared].set_index(["site", "network"])
        cells_of_pair = {place: _cell(row) for place, row in of_pair.iterrows()}
        caption = (
            f"{pair_label(compared, campaign.protocols[0])}: change in {label_with_title(metric)}, in percent; "
            f"negative is faster, where Kakhki et al. write a positive number. {LOOKS} In brackets the rounds."
        )
        maps = _maps(pages_of(campaign), campaign.networks, cells_of_pair)
        figures.append(ReportFigure(_file(f"heatmap_{compared}", metric), caption, heatmap.draw, (maps, rows)))
    return figures


def hop_maps(campaign: CampaignTable, changes: pd.DataFrame, metric: str) -> list[ReportFigure]:
    """For each protocol, a heat map of the changes of `metric` by a hop."""
    figures = []
    for protocol, of_protocol in changes.groupby("protocol", sort=False):
        networks = [name for name in campaign.networks if name in set(of_protocol["network"])]
        by_place = of_protocol.set_index(["site", "network"])
        map_cells = {place: _changed(row) for place, row in by_place.iterrows()}
        pages = [page for page in pages_of(campaign) if page.name in set(of_protocol["site"])]
        caption = (
            f"{label(str(protocol))} with the hop against {label(str(protocol))} without: change in "
            f"{label_with_title(metric)}, in percent; negative is faster with it. {LOOKS} In brackets the loads of the "
            "one that has fewer."
        )
        rows = [row_label(campaign, name) for name in networks]
        draw = partial(heatmap.draw, bar_label="change with the hop (negative is faster); below it: loads")
        figures.append(
            ReportFigure(_file(f"hop_{protocol}", metric), caption, draw, (_maps(pages, networks, map_cells), rows))
        )
    return figures


def _maps(pages: Sequence[Page], networks: Sequence[str], map_cells: Mapping[Any, heatmap.Cell]) -> list[heatmap.Map]:
    """A map for each panel of `pages`, with a row for each network; `map_cells` are by page and network."""
    maps = []
    for panel in panels(pages):
        places = product(enumerate(networks), enumerate(panel.pages))
        by_place = {
            (y, x): map_cells.get((page.name, network), heatmap.Cell(None, "", 0, NOTHING))
            for (y, network), (x, page) in places
        }
        maps.append(heatmap.Map(panel.title, [column_name(page, panel.pages) for page in panel.pages], by_place))
    return maps


def _changed(row: "pd.Series[Any]") -> heatmap.Cell:
    loads = min(int(row["loads_with"]), int(row["loads_without"]))
    return heatmap.Cell(float(row["change"]), str(row["verdict"]), loads)


def _cell(row: "pd.Series[Any]") -> heatmap.Cell:
    if row["state"] != MEASURED:
        return heatmap.Cell(None, "", int(row["rounds"]), REASONS.get(row["state"], NOTHING))
    return heatmap.Cell(float(row["gain"]), str(row["verdict"]), int(row["rounds"]))


def column_name(page: Page, columns: tuple[Page, ...]) -> str:
    """A page's name among all `columns`: only the property that varies among them."""
    size, count = size_label(page.size_bytes), str(page.count)
    if len({other.count for other in columns}) == 1:
        return size
    if len({other.size_bytes for other in columns}) == 1:
        return count
    return f"{count} of\n{size}"


def bars(campaign: CampaignTable, confidence: float) -> list[ReportFigure]:
    """The bars of waiting and downloading, if their object was measured."""
    fast = {
        name: network for name, network in campaign.network_settings.items() if network.get("down_mbps") == BARS_MBPS
    }
    times = timings(campaign, BARS_PAGE.name, list(fast))
    if times.empty:
        return []
    present = set(times["network"])
    labels = [(name, row_label(campaign, name).replace(", ", ",\n", 1)) for name in fast if name in present]
    caption = (
        f"One image of {size_label(BARS_PAGE.size_bytes)} at {BARS_MBPS} Mbit/s: mean time from its request to the "
        f"first byte (wait) and on to the last (download), with the {level(confidence)} intervals of the wait and "
        "of the sum; in brackets the runs."
    )
    means = mean_times(times, confidence)
    return [ReportFigure("wait_download", caption, wait_download.draw, (means, labels, campaign.protocols))]


def all_cells(cell_table: pd.DataFrame, campaign: CampaignTable, declared: Hypotheses, metric: str) -> ReportTable:
    """The table of every cell in numbers, in `metric`."""
    texts = text_table(
        cell_table,
        {
            **PAGE, "servers": "servers", "network": ("network", partial(row_label, campaign)),
            "compared": ("protocol", label), _times("compared"): (f"its {label_with_unit(metric)}", _time),
            "reference": ("against", label), _times("reference"): (label_with_unit(metric), _time),
            "gain": ("change", percent),
            ("gain_low", "gain_high"): (f"{level(declared.confidence)} interval", percent_interval),
            "p_corrected": ("corrected p", p_value), "margin": ("equivalent within", share),
            "verdict": ("verdict", _or_nothing), "remark": "remark",
        },
    )  # fmt: skip
    if cell_table["servers"].nunique() == 1:
        texts = texts.drop(columns="servers")
    note = (
        f"{label(metric)}: mean ± standard deviation (loads). Gain: of the location of the log ratios within rounds; "
        "negative is faster. It is not that of the means, which a single slow load moves."
    )
    title = "Every cell" if metric == METRIC else f"Every cell: {label(metric)}"
    return ReportTable(_file("grid_cells", metric), title, cell_table, texts, note)


def what_hops_change(by_hop: Mapping[str, pd.DataFrame], campaign: CampaignTable, declared: Hypotheses) -> str:
    """For each metric and protocol, how many cells have each verdict on the hop's effect."""
    sentences = []
    for metric, changes in by_hop.items():
        by = "" if metric == METRIC else f"by {label(metric)}, "
        for protocol, of_protocol in changes.groupby("protocol", sort=False):
            numbers = _counted(of_protocol["verdict"])
            sentences.append(f"{by}{label(str(protocol))} is {numbers} of {plural('cell', len(of_protocol))}")
    return (
        f"With the hop, against the same two halves without it: {'; '.join(sentences)}. Loads with and without are of "
        "different rounds, in an order that was drawn, so they are compared without pairing (difference of the "
        "locations of their logarithms, Welch's degrees of freedom), and p values are corrected over all these cells "
        f"(Benjamini and Hochberg, p < {declared.significant_p}; equivalent: within "
        f"{equivalence_margin(declared, campaign)})."
    )


def all_hop_changes(changes: pd.DataFrame, campaign: CampaignTable, declared: Hypotheses, metric: str) -> ReportTable:
    """The table of every change of `metric` by a hop, in numbers."""
    sizes = {page.name: f"{page.count} of {size_label(page.size_bytes)}" for page in pages_of(campaign)}
    texts = text_table(
        changes,
        {
            "network": ("network", partial(row_label, campaign)), "site": ("objects", sizes.__getitem__),
            "protocol": ("protocol", label),
            ("mean_without", "loads_without"): (f"{label(metric)} without [ms]", _mean),
            ("mean_with", "loads_with"): ("with", _mean),
            "change": ("change", percent),
            ("change_low", "change_high"): (f"{level(declared.confidence)} interval", percent_interval),
            "p_corrected": ("corrected p", p_value), "margin": ("equivalent within", share), "verdict": "verdict",
        },
    )  # fmt: skip
    note = (
        f"{label(metric)}: mean (loads). Change: of the locations of the logarithms; negative is faster with the hop."
    )
    title = "Changes by the hop" if metric == METRIC else f"Changes by the hop: {label(metric)}"
    return ReportTable(_file("grid_hops", metric), title, changes, texts, note)


def old_study(old: pd.DataFrame, preset: str, campaign: CampaignTable) -> ReportTable:
    """The table of the old study's values next to those of `campaign`, which is of `preset`."""
    whole_percent = partial(percent, digits=0)
    networks = campaign.network_settings
    conditions = {name: f"{100 * one.get('loss', 0):g} %, {one['min_rtt_ms']:g} ms" for name, one in networks.items()}
    texts = text_table(
        old,
        {
            "network": ("loss, delay", conditions.__getitem__), **PAGE,
            _times("reference"): ("TCP+ [ms]", _time), _times("compared"): ("QUIC [ms]", _time),
            "gain": ("QUIC's change", percent), "verdict": ("verdict", _or_nothing),
            "old_reference": ("HTTP/2 then [ms]", ms), "old_compared": ("QUIC then [ms]", ms),
            "old_gain": ("of means, then", whole_percent), "mean_gain": ("of means, now", whole_percent),
            "change": ("change of these", _or_nothing),
        },
    )  # fmt: skip
    note = (
        "Mean ± standard deviation (loads). Gain and verdict are this report's. The older study shows means alone: "
        f"the columns from “of means” on compare its means with ours, {BY_SIZE}. Negative is faster."
    )
    return ReportTable(preset, "Page load times beside those of the older study", old, texts, note)


def scope(campaign: CampaignTable, by_metric: Mapping[str, pd.DataFrame]) -> str:
    """The extent of the grid, and the number of cells with each verdict in each metric."""
    cell_table = by_metric[METRIC]
    complete = cell_table[cell_table["state"] == MEASURED]
    least, most = (int(complete["rounds"].min()), int(complete["rounds"].max())) if len(complete) else (0, 0)
    rounds = f"{span(least, most)} {'round' if least == most == 1 else 'rounds'}"
    sentences = [
        f"{plural('page', len(pages_of(campaign)))} on {plural('network', len(campaign.networks))} over "
        f"{' and '.join(map(label, campaign.protocols))}: {len(complete)} of {len(cell_table)} cells measured, "
        f"{rounds} each; {len(campaign.runs)} loads, of which {len(campaign.valid)} count."
    ]
    for metric, table in by_metric.items():
        by = "" if metric == METRIC else f", by {label(metric)}"
        for compared in campaign.protocols[1:]:
            verdicts = table.loc[(table["compared"] == compared) & (table["state"] == MEASURED), "verdict"]
            sentences.append(f"{pair_label(compared, campaign.protocols[0])}{by}: {_counted(verdicts)} cells.")
    return " ".join(sentences)


def _counted(verdicts: "pd.Series[str]") -> str:
    """How many of `verdicts` are of each kind."""
    counts = verdicts.value_counts()
    return ", ".join(f"{name} in {counts.get(name, 0)}" for name in VERDICTS)


def verdict_rule(declared: Hypotheses, campaign: CampaignTable) -> str:
    """The meaning of a verdict on a cell."""
    return (
        "Each cell is tested by the ratios of the loads within its rounds, and p values are corrected over all cells "
        f"in a metric (Benjamini and Hochberg). Faster, slower: corrected p < {declared.significant_p}. Equivalent: "
        f"shown, as surely, to differ by less than {equivalence_margin(declared, campaign)}. Not decided: neither. "
        "Negative changes are faster; Kakhki et al. count them the other way, so their +25 % is -25 % here."
    )


def since_then(old: pd.DataFrame) -> str:
    """How the results have changed since the older study."""
    both = old[old["change"] != ""]
    changes = both["change"].value_counts()
    same = int(changes.get(UNCHANGED, 0))
    rest = "; ".join(f"{text}: {number}" for text, number in changes.drop(UNCHANGED, errors="ignore").items())
    agreeing = {FASTER: FASTER, SLOWER: SLOWER, SIMILAR: EQUIVALENT}
    of_changes = both[both["change"] != UNCHANGED]
    sure = int((of_changes["word"].map(agreeing) == of_changes["verdict"]).sum())
    certainty = f" The test of this report confirms {sure} of these changes." if rest else ""
    return (
        f"The older study shows means without their scatter. {BY_SIZE[0].upper()}{BY_SIZE[1:]}, "
        f"{same} of {plural('cell', len(both))} are as then{f'; {rest}' if rest else ''}.{certainty}"
    )


def limits(campaign: CampaignTable, cell_table: pd.DataFrame) -> list[str]:
    """The limits of what the numbers show."""
    sentences = []
    late, beyond = (cell_table[cell_table["state"] == state] for state in (TIME, BUDGET))
    if len(late):
        limit_s = campaign.settings.limit_s
        sentences.append(f"{plural('cell', len(late))} cannot finish in the {limit_s:g} s that a load may take.")
    if len(beyond):
        sentences.append(
            f"{plural('cell', len(beyond))} did not fit into the budget, which was used for the shorter ones."
        )
    first = [" ".join(sentences)] if sentences else []
    return [*first, *returning(campaign), *without_rate(campaign, cell_table)]


def returning(campaign: CampaignTable) -> list[str]:
    """If some protocols use early data and others do not: a paragraph on the other differences between their loads."""
    settings = campaign.settings.protocols
    with_it = [name for name in campaign.protocols if settings[name].get("early_data")]
    without = [name for name in campaign.protocols if name not in with_it]
    if not with_it or not without:
        return []
    return [
        f"Loads over {listing([label(name) for name in with_it])} are a browser's second visit, those over "
        f"{listing([label(name) for name in without])} its first. In its first visit a browser also starts its "
        "processes and checks certificates. That is part of the difference, and weighs the more, the shorter the round "
        "trip is that early data saves."
    ]


def without_rate(campaign: CampaignTable, cell_table: pd.DataFrame) -> list[str]:
    """The rate of the largest page on a network without a rate limit, which shows what the machine can do."""
    networks = campaign.network_settings
    free = [name for name, network in networks.items() if network.get("down_mbps") is None]
    rows = cell_table[cell_table["network"].isin(free) & (cell_table["state"] == MEASURED)]
    if rows.empty:
        return []
    bits, rtt_ms = 8 * rows["count"] * rows["size_bytes"], [path_rtt_ms(networks[name]) for name in rows["network"]]
    ordered = rows.assign(bits=bits, rtt_ms=rtt_ms).sort_values(["bits", "rtt_ms"], ascending=[False, True])
    cell = ordered.iloc[0]
    mbps = [f"{cell['bits'] / cell[f'mean_{whose}'] / 1000:.0f} Mbit/s" for whose in ("reference", "compared")]
    page, network = (
        f"{cell['count']} objects of {size_label(cell['size_bytes'])}",
        row_label(campaign, cell["network"]),
    )
    return [
        "Without a rate limit the processor is the limit, and not the same for both: browser and server handle QUIC's "
        f"packets one by one, the kernel handles TCP's in bulk. On this machine ({campaign.document.cores_of_a_run} "
        f"processors) {page} on {network} came at {mbps[0]} over {label(cell['reference'])} and at {mbps[1]} over "
        f"{label(cell['compared'])}. Pages of many megabytes there show how fast the programs are, not the protocols."
    ]


def _file(name: str, metric: str) -> str:
    """The name of the files of a table or figure in `metric`."""
    return file_name(name if metric == METRIC else f"{name}_{metric}")


def _times(whose: str) -> tuple[str, ...]:
    """The columns that `_time` formats together."""
    return f"mean_{whose}", f"sd_{whose}", f"runs_{whose}"


def _time(mean: float, deviation: float, runs: int) -> str:
    return f"{ms(mean)}{f' ± {ms(deviation)}' if runs > 1 else ''} ({runs})" if runs else NOTHING


def _mean(mean: float, loads: int) -> str:
    return f"{ms(mean)} ({loads})"


def _or_nothing(text: str) -> str:
    return text or NOTHING
