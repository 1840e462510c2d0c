"""The report's section on a grid of pages and networks."""

import math
from functools import partial
from pathlib import Path

import pandas as pd

from analysis.outcomes import FASTER, NOT_DECIDED, SIGNIFICANT_P, SLOWER
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.runs import CampaignTable, load
from analysis.text import NOTHING, file_name, label, listing, ms, p_value, pair_label, percent, plural, size_label, span
from base.errors import EyelevelError
from measure.table import read_document
from record.grid import Page
from studies.grid import heatmap, wait_download
from studies.grid.cells import (
    BUDGET,
    MEASURED,
    SIMILAR,
    SIMILAR_WITHIN,
    TIME,
    cells,
    network_label,
    pages_of,
    panels,
    verdict,
)
from studies.grid.controlled import PRESET as CONTROLLED
from studies.grid.controlled import UNCHANGED, beside, read_old
from studies.grid.measure import STUDY
from studies.grid.presets import PRESETS, read_preset
from studies.grid.timings import timings

# The bars of waiting and downloading are of Kakhki et al.'s 10 MB image at 100 Mbit/s.
BARS_PAGE = Page(1, 10_000_000)
BARS_MBPS = 100
# Loss and delay of the older study's networks.
CONDITIONS = {"controlled-clean": "0 %, 5 ms", "controlled-100ms": "2 %, 100 ms", "controlled-200ms": "2 %, 200 ms"}
PAGE = {"count": "objects", "size_bytes": ("of", size_label)}
REASONS = {TIME: "time", BUDGET: "budget"}
VERDICTS = (
    f"Similar: means less than {100 * SIMILAR_WITHIN:g} % apart. Faster, slower: further apart, and p < "
    f"{SIGNIFICANT_P} (Welch's t test). Not decided: further apart, but not for sure."
)


def section(folder: Path) -> Section | None:
    """The section on the grid in `folder`, or None when there is no grid. Raises EyelevelError when it is broken."""
    document = read_document(folder)
    if document is None or document.study_name != STUDY:
        return None
    campaign = load(folder)
    preset = document.study.get("preset", "")
    if len(campaign.protocols) < 2:
        raise EyelevelError(f"the grid in {folder} has one protocol, and nothing to compare it with")
    cell_table = cells(campaign)
    old = beside(cell_table, read_old()) if preset == CONTROLLED else pd.DataFrame()
    paragraphs = [scope(campaign, cell_table), *limits(campaign, cell_table)]
    tables = [all_cells(cell_table, campaign)]
    if len(old):
        paragraphs[1:1] = old_verdicts(old)
        tables.insert(0, old_study(old))
    figures = (*heat_maps(campaign, cell_table), *bars(campaign))
    title = read_preset(preset).title if preset in PRESETS else "A grid of pages"
    return Section(STUDY, title, tuple(paragraphs), figures, tables=tuple(tables))


def heat_maps(campaign: CampaignTable, cell_table: pd.DataFrame) -> list[ReportFigure]:
    """A heat map for each protocol that is compared with the first."""
    rows = [network_label(network) for network in campaign.document.networks.values()]
    figures = []
    for compared in campaign.protocols[1:]:
        of_pair = cell_table[cell_table["compared"] == compared].set_index(["site", "network"])
        maps = []
        for panel in panels(pages_of(campaign)):
            by_place = {
                (y, x): _cell(of_pair.loc[(page.name, network)])
                for y, network in enumerate(campaign.networks)
                for x, page in enumerate(panel.pages)
            }
            maps.append(heatmap.Map(panel.title, [column_name(page, panel.pages) for page in panel.pages], by_place))
        caption = (
            f"{pair_label(compared, campaign.protocols[0])}: percent by which its mean page load time is lower; "
            f"positive (red) means that it is faster. White: not significant at p < {SIGNIFICANT_P} (Welch's t test). "
            "In brackets the number of rounds."
        )
        name = file_name(f"heatmap_{compared}")
        figures.append(ReportFigure(name, caption, heatmap.draw, (maps, rows, label(compared))))
    return figures


def _cell(row: "pd.Series[float]") -> heatmap.Cell:
    if row["state"] != MEASURED:
        return heatmap.Cell(None, math.nan, int(row["rounds"]), REASONS.get(row["state"], NOTHING))
    return heatmap.Cell(float(row["difference"]), float(row["p"]), int(row["rounds"]))


def column_name(page: Page, columns: tuple[Page, ...]) -> str:
    """A page's name among all `columns`: what varies there."""
    size, count = size_label(page.size_bytes), str(page.count)
    if len({other.count for other in columns}) == 1:
        return size
    if len({other.size_bytes for other in columns}) == 1:
        return count
    return f"{count} of\n{size}"


def bars(campaign: CampaignTable) -> list[ReportFigure]:
    """The bars of waiting and downloading, if their object was measured."""
    fast = {
        name: network for name, network in campaign.document.networks.items() if network.get("down_mbps") == BARS_MBPS
    }
    times = timings(campaign, BARS_PAGE.name, list(fast))
    if times.empty:
        return []
    present = set(times["network"])
    labels = [(name, network_label(fast[name]).replace(", ", ",\n", 1)) for name in fast if name in present]
    caption = (
        f"One image of {size_label(BARS_PAGE.size_bytes)} at {BARS_MBPS} Mbit/s: mean time from its request to the "
        "first byte (wait) and on to the last (download), with the standard deviation of the sum; in brackets the runs."
    )
    return [ReportFigure("wait_download", caption, wait_download.draw, (times, labels, campaign.protocols))]


def all_cells(cell_table: pd.DataFrame, campaign: CampaignTable) -> ReportTable:
    """Every cell in numbers."""
    networks = campaign.document.networks
    texts = text_table(
        cell_table,
        {
            **PAGE, "servers": "servers", "network": ("network", lambda name: network_label(networks[name])),
            "compared": ("protocol", label), _times("compared"): ("its PLT [ms]", _time),
            "reference": ("against", label), _times("reference"): ("PLT [ms]", _time),
            "difference": ("faster by", percent), "p": ("p", p_value), "verdict": ("verdict", _or_nothing),
            "remark": "remark",
        },
    )  # fmt: skip
    if cell_table["servers"].nunique() == 1:
        texts = texts.drop(columns="servers")
    note = f"Mean ± standard deviation (runs). {VERDICTS}"
    return ReportTable("grid_cells", "Every cell", cell_table, texts, note)


def old_study(old: pd.DataFrame) -> ReportTable:
    """The old study's values beside ours."""
    whole_percent = partial(percent, digits=0)
    texts = text_table(
        old,
        {
            "network": ("loss, delay", CONDITIONS.__getitem__), **PAGE,
            _times("reference"): ("TCP+ [ms]", _time), _times("compared"): ("QUIC [ms]", _time),
            "difference": ("QUIC faster by", whole_percent), "p": ("p", p_value), "verdict": ("QUIC is", _or_nothing),
            "old_reference": ("TCP then [ms]", ms), "old_compared": ("QUIC then [ms]", ms),
            "old_difference": ("faster by then", whole_percent), "old_verdict": "was",
            "change": ("change", _or_nothing),
        },
    )  # fmt: skip
    note = (
        f"Mean ± standard deviation (runs). {VERDICTS} The old study gives means alone, so its verdict depends on the "
        f"{100 * SIMILAR_WITHIN:g} % alone."
    )
    return ReportTable("controlled", "Page load times beside those of the older study", old, texts, note)


def scope(campaign: CampaignTable, cell_table: pd.DataFrame) -> str:
    """The extent of the grid, and the number of cells with each verdict."""
    complete = cell_table[cell_table["state"] == MEASURED]
    least, most = (int(complete["rounds"].min()), int(complete["rounds"].max())) if len(complete) else (0, 0)
    rounds = f"{span(least, most)} {'round' if least == most == 1 else 'rounds'}"
    sentences = [
        f"{plural('page', len(pages_of(campaign)))} behind {plural('network', len(campaign.networks))} over "
        f"{' and '.join(map(label, campaign.protocols))}: {len(complete)} of {len(cell_table)} cells measured, "
        f"{rounds} each; {len(campaign.runs)} loads, of which {len(campaign.valid)} count."
    ]
    for compared in campaign.protocols[1:]:
        verdicts = complete.loc[complete["compared"] == compared, "verdict"].value_counts()
        numbers = ", ".join(f"{name} in {verdicts.get(name, 0)}" for name in (FASTER, SLOWER, SIMILAR, NOT_DECIDED))
        sentences.append(f"{pair_label(compared, campaign.protocols[0])}: {numbers} cells.")
    return " ".join([*sentences, VERDICTS])


def old_verdicts(old: pd.DataFrame) -> list[str]:
    """How the old study's verdicts have changed, and what its numbers reveal about its set-up."""
    both = old[old["change"] != ""]
    changes = both["change"].value_counts()
    same = int(changes.get(UNCHANGED, 0))
    by_size = int((both["difference"].map(verdict) == both["old_verdict"]).sum())
    rest = "; ".join(f"{text}: {number}" for text, number in changes.drop(UNCHANGED, errors="ignore").items())
    return [
        f"Verdicts as then: {same} of {plural('cell', len(both))}{f'; {rest}' if rest else ''}. "
        f"By the size of the difference alone, sure or not, {by_size} would be as then.",
        "The slides say neither whether the delay is one way or round trip, nor where packets were lost. Here the "
        "delay is the round trip's: their page of two small objects over TCP with TLS took four times 100 ms. Loss is "
        "on the uplink: 128 objects of 300 KB in 3.3 s are 94 Mbit/s, a hundred times what TCP reaches with a loss of "
        "2 % in the direction of its data (Mathis et al., CCR 1997).",
    ]


def limits(campaign: CampaignTable, cell_table: pd.DataFrame) -> list[str]:
    """The limits of what the numbers show."""
    sentences = []
    late, beyond = (cell_table[cell_table["state"] == state] for state in (TIME, BUDGET))
    if len(late):
        limit_s = campaign.document.settings.get("limit_s")
        sentences.append(f"{plural('cell', len(late))} cannot finish in the {limit_s:g} s that a load may take.")
    if len(beyond):
        sentences.append(
            f"{plural('cell', len(beyond))} did not fit into the budget, which was used for the shorter ones."
        )
    first = [" ".join(sentences)] if sentences else []
    return [*first, *returning(campaign), *without_rate(campaign, cell_table)]


def returning(campaign: CampaignTable) -> list[str]:
    """The side effects of comparing a protocol with early data with one without."""
    settings = campaign.document.protocols
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
    """The rate of the largest page where no link limits it, which shows what the machine can do."""
    networks = campaign.document.networks
    free = [name for name, network in networks.items() if network.get("down_mbps") is None]
    rows = cell_table[cell_table["network"].isin(free) & (cell_table["state"] == MEASURED)]
    if rows.empty:
        return []
    bits, rtt_ms = 8 * rows["count"] * rows["size_bytes"], [networks[name]["min_rtt_ms"] for name in rows["network"]]
    ordered = rows.assign(bits=bits, rtt_ms=rtt_ms).sort_values(["bits", "rtt_ms"], ascending=[False, True])
    cell = ordered.iloc[0]
    mbps = [f"{cell['bits'] / cell[f'mean_{whose}'] / 1000:.0f} Mbit/s" for whose in ("reference", "compared")]
    page, network = (
        f"{cell['count']} objects of {size_label(cell['size_bytes'])}",
        network_label(networks[cell["network"]]),
    )
    return [
        "Without a rate limit the processor is the limit, and not the same for both: browser and server handle QUIC's "
        f"packets one by one, the kernel handles TCP's in bulk. On this machine ({campaign.document.machine['cpus']} "
        f"processors) {page} behind {network} came at {mbps[0]} over {label(cell['reference'])} and at {mbps[1]} over "
        f"{label(cell['compared'])}. Pages of many megabytes there show how fast the programs are, not the protocols."
    ]


def _times(whose: str) -> tuple[str, ...]:
    """The columns that `_time` writes together."""
    return f"mean_{whose}", f"sd_{whose}", f"runs_{whose}"


def _time(mean: float, deviation: float, runs: int) -> str:
    return f"{ms(mean)}{f' ± {ms(deviation)}' if runs > 1 else ''} ({runs})" if runs else NOTHING


def _or_nothing(text: str) -> str:
    return text or NOTHING
