"""The cells of a grid, each a page on a network: its times, their differences, and whether a difference is shown.

A cell is a contrast on one site. Its test and its verdict are those of a campaign's report
(`analysis.statistics.ratios`, `analysis.statistics.outcomes`), with rounds as blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.runs import CampaignTable, gates, records
from analysis.samples import samples_of
from analysis.statistics.contrast_table import contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, mean_over_sites, site_margins
from analysis.statistics.samples import Array, counts
from analysis.text import plural, size_label
from measure.run.gates import OVER_TIME
from studies.grid.pages import Page, page_named
from tuning.devices import described
from tuning.networks import words

METRIC = "plt"
# Further metrics, where they were measured. LCP is not among them: Chromium takes the blanks between a page's images
# for text, and the images have one pixel each. So LCP is not that of an image.
FURTHER = ("fcp",)
# Why a cell has no gain: its loads do not end in time, it did not fit the budget, or it is not measured (yet).
TIME, BUDGET, OPEN = "time", "budget", "open"
MEASURED = "measured"

# The columns of `COLUMNS` that identify a cell, and those of its counts, times and tests.
CELL = ["compared", "site", "network"]
COUNTS = ["rounds", "runs_reference", "runs_compared"]
TIMES = ["mean_reference", "sd_reference", "mean_compared", "sd_compared"]
TESTS = ["gain", "gain_low", "gain_high", "p", "equivalence_p", "margin"]
COLUMNS = ["compared", "reference", "site", "count", "size_bytes", "servers", "network", *COUNTS, *TIMES, *TESTS]
COLUMNS += ["p_corrected", "equivalence_p_corrected", "verdict", "state", "remark"]


def pages_of(campaign: CampaignTable) -> list[Page]:
    """The pages of a grid, including pages without any measurement yet."""
    names = [*campaign.document.study.get("pages", ()), *campaign.settings.sites]
    return [page for name in dict.fromkeys(names) if (page := page_named(name))]


def metrics_of(campaign: CampaignTable) -> list[str]:
    """The metrics in which a grid's cells are compared."""
    return [METRIC, *(name for name in FURTHER if name in campaign.valid and campaign.valid[name].notna().any())]


def cells(campaign: CampaignTable, hypotheses: Hypotheses, metric: str = METRIC) -> pd.DataFrame:
    """A row for each page, network and protocol except the first, with the columns `COLUMNS`; times are in ms.

    `rounds`: the number of rounds with a load of each of the two protocols. `gain`: the gain of the location of the log
    ratios within rounds, with the interval from `gain_low` to `gain_high`; negative means that the compared protocol is
    faster. `p` is from the test of a gain of 0, `equivalence_p` from the test of a gain beyond `margin`; `p_corrected`
    and `equivalence_p_corrected` are corrected for the false discovery rate over all cells (Benjamini and Hochberg) in
    this `metric`; another metric's are corrected by themselves.
    Two kinds of cells have no numbers and no verdict: cells that are not measured, and cells in which a load of either
    protocol did not end in time, since the loads that did are not representative.
    """
    table = _all_cells(campaign, metric).merge(tests(campaign, hypotheses, metric), how="left", on=CELL)
    table = table.astype(dict.fromkeys(TESTS, float))
    late = campaign.runs[gates(campaign.runs["reason"]) == OVER_TIME.name]
    table["late"], table["attempts"] = _loads(late, table), _loads(campaign.runs, table)
    table.loc[table["late"] > 0, [*TIMES, *TESTS]] = np.nan
    table.loc[table["late"] > 0, COUNTS] = 0
    table = table.fillna(dict.fromkeys(COUNTS, 0)).astype(dict.fromkeys(COUNTS, int))
    left_out = {(cell["site"], cell["network"]): cell for cell in campaign.document.study.get("left_out", ())}
    # The study lists the cells that it leaves out without a browser: they are left out in all of them.
    states = [
        _state(row, left_out.get((row["site"], campaign.clients[row["network"]].network))) for row in records(table)
    ]
    table["state"], table["remark"] = zip(*states, strict=True) if states else ((), ())
    table = judged(table, false_discovery_rate, hypotheses.significant_p)
    return table.assign(verdict=table["verdict"].where(table["state"] == MEASURED, ""))[COLUMNS]


def tests(campaign: CampaignTable, hypotheses: Hypotheses, metric: str) -> pd.DataFrame:
    """A row for each site, network and compared protocol of `campaign` if that protocol and the reference both have a
    load there. Its columns are CELL, `rounds` and TESTS."""
    samples = samples_of(campaign, [metric])

    def statistics(pair: Pair, _reference: Array, _compared: Array) -> dict[str, NDArray[Any]]:
        ratios = block_ratios(samples, pair)
        # A mean over one site is that site's location.
        ratio = mean_over_sites(ratios[..., None, :])
        margin = site_margins(samples, pair, hypotheses, campaign.rtt_ms)
        return {"rounds": counts(ratios), **contrast_columns(ratio, hypotheses.confidence, margin=margin)}

    reference, *others = campaign.protocols
    pairs = samples.measured(Pair(reference, name) for name in others)
    columns = [*CELL, "rounds", *TESTS]
    return samples.compare(pairs, statistics, columns)[columns]


def _all_cells(campaign: CampaignTable, metric: str) -> pd.DataFrame:
    """Each page on each network, with the times over the first protocol and over each other protocol."""
    reference, *others = campaign.protocols
    rows = [
        {"compared": compared, "reference": reference, "site": page.name, **asdict(page), "network": network}
        for page, network, compared in product(pages_of(campaign), campaign.networks, others)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS[: COLUMNS.index("rounds")])
    times = campaign.valid.groupby(["site", "network", "protocol"])[metric].agg(runs="count", mean="mean", sd="std")
    for whose in ("reference", "compared"):
        table = table.join(times.add_suffix(f"_{whose}"), on=["site", "network", whose])
    return table


def _loads(runs: pd.DataFrame, table: pd.DataFrame) -> "pd.Series[float]":
    """For each row of `table`, how many of `runs` are over one of its two protocols."""
    sizes = runs.groupby(["site", "network", "protocol"]).size()
    settings = (pd.MultiIndex.from_frame(table[["site", "network", whose]]) for whose in ("reference", "compared"))
    of_both = [sizes.reindex(of_one).fillna(0).to_numpy() for of_one in settings]
    return pd.Series(of_both[0] + of_both[1], table.index)


def _state(row: Mapping[str, Any], left_out: Mapping[str, str] | None) -> tuple[str, str]:
    """The state of the cell in `row`, and the reason if it has no numbers."""
    if row["late"]:
        return TIME, f"{row['late']:.0f} of {row['attempts']:.0f} loads did not end in time"
    if row["rounds"]:
        return MEASURED, ""
    if left_out is not None:
        return left_out["of"], left_out["reason"]
    return OPEN, "no round counts" if row["attempts"] else "not measured"


@dataclass(frozen=True)
class Panel:
    """Pages that stand side by side in a heat map, in order; the name and the title say how the pages differ."""

    name: str
    title: str
    pages: tuple[Page, ...]


def panels(pages: Sequence[Page]) -> list[Panel]:
    """The panels of a heat map of `pages`. For each number of servers there is a panel for each set of pages with the
    same size or count, or a single panel if both vary."""
    result = []
    servers = sorted({page.servers for page in pages})
    for number in servers:
        title_end, name_end = (f", {plural('server', number)}", f"_{number}s") if len(servers) > 1 else ("", "")
        lines = _lines({page for page in pages if page.servers == number})
        result += [
            Panel(
                f"{name}{name_end}", f"{title}{title_end}", tuple(sorted(line, key=attrgetter("size_bytes", "count")))
            )
            for name, title, line in lines
        ]
    return result


def _lines(pages: set[Page]) -> list[tuple[str, str, list[Page]]]:
    """`pages`, which have the same number of servers, divided among panels: the name, title and pages of each."""
    counts, sizes = sorted({page.count for page in pages}), sorted({page.size_bytes for page in pages})
    by_size = [(count, [page for page in pages if page.count == count]) for count in counts]
    lines = [(f"size_of_{count}", f"size of {_objects(count)}", line) for count, line in by_size if len(line) > 1]
    if len(lines) > 1:
        return [("all", "objects and their size", list(pages))]
    by_count = [(size, [page for page in pages if page.size_bytes == size]) for size in sizes]
    lines += [
        (f"count_{size}B", f"number of objects of {size_label(size)}", line) for size, line in by_count if len(line) > 1
    ]
    others = pages - {page for *_, line in lines for page in line}
    return [*lines, *([("others", "other pages", list(others))] if others else [])]


def _objects(count: int) -> str:
    return "one object" if count == 1 else plural("object", count)


def row_label(campaign: CampaignTable, name: str) -> str:
    """The network `name` of `campaign` in a few words, with its browser if the campaign has several."""
    text = network_label(campaign.network_settings[name])
    return f"{text}, {described(campaign.clients[name].program)}" if len(campaign.browsers) > 1 else text


def network_label(network: Mapping[str, Any]) -> str:
    """A network in a few words, from its settings in `campaign.json`."""
    return ", ".join(words(network, short=True))
