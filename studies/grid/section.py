"""The report's section on a grid of pages and networks."""

import math
from pathlib import Path

import pandas as pd

from analysis.figures.style import named
from analysis.report.plates import Plate
from analysis.report.section import Section
from analysis.report.views import NOTHING, View, counted, ms, p_value, percent
from analysis.runs import CampaignTable, load
from base.errors import EyelevelError
from record.grid import Page
from studies.downloads.figure2 import size_name
from studies.grid import heatmap, wait_download
from studies.grid.cells import (
    BUDGET,
    FASTER,
    MEASURED,
    SIMILAR,
    SIMILAR_WITHIN,
    SLOWER,
    TIME,
    UNDECIDED,
    cells,
    described,
    pages_of,
    panels,
    verdict,
)
from studies.grid.controlled import PRESET as CONTROLLED
from studies.grid.controlled import beside, read_old
from studies.grid.timings import timings

NAME = "grid"
TITLES = {
    "longlook": "Objects, sizes and networks (Kakhki et al.)",
    "longlook-0rtt": "With and without 0-RTT (Kakhki et al.)",
    CONTROLLED: "Objects and sizes, controlled",
}
# Of what the bars of waiting and downloading are: Kakhki et al.'s 10 MB image at 100 Mbit/s.
BARS_PAGE = Page(1, 10_000_000)
BARS_MBPS = 100
REASONS = {TIME: "time", BUDGET: "budget"}


def section(folder: Path) -> Section | None:
    """What the grid in `folder` says, or None when there is none. Raises EyelevelError when it is broken."""
    if not (folder / "campaign.json").exists():
        return None
    campaign = load(folder)
    study = campaign.document.get("study") or {}
    if study.get("name") != NAME:
        return None
    if len(campaign.protocols) < 2:
        raise EyelevelError(f"the grid in {folder} has one protocol, and nothing to compare it with")
    found = cells(campaign)
    old = beside(found, read_old()) if study.get("preset") == CONTROLLED else pd.DataFrame()
    views = (*([controlled_view(old)] if len(old) else []), cells_view(found, campaign))
    words = (*scope(campaign, found), *(controlled_words(old) if len(old) else ()), *limits(campaign, found))
    plates = (*heat_maps(campaign, found), *bars(campaign))
    return Section(NAME, TITLES.get(study.get("preset", ""), "A grid of pages"), words, plates, views=views)


def heat_maps(campaign: CampaignTable, found: pd.DataFrame) -> list[Plate]:
    """A heat map for each protocol that is compared with the first."""
    told = campaign.document["settings"]["networks"]
    rows = [described(told[network]) for network in campaign.networks]
    plates = []
    for compared in campaign.protocols[1:]:
        own = found[found["compared"] == compared].set_index(["site", "network"])
        maps = []
        for panel in panels(pages_of(campaign)):
            placed = {
                (y, x): _cell(own.loc[(page.name, network)])
                for y, network in enumerate(campaign.networks)
                for x, page in enumerate(panel.pages)
            }
            maps.append(heatmap.Map(panel.title, [column_name(page, panel.pages) for page in panel.pages], placed))
        pair = f"{named(compared)} against {named(campaign.protocols[0])}"
        caption = (
            f"{pair}: percent by which its mean page load time is lower; positive (red) means that it is faster. "
            "White: not significant at p < 0.01 (Welch's t test). In brackets the number of rounds."
        )
        name = f"heatmap_{compared}".replace("+", "plus")
        plates.append(Plate(name, NAME, caption, heatmap.draw, (maps, rows, named(compared))))
    return plates


def _cell(row: "pd.Series[float]") -> heatmap.Cell:
    if row["state"] != MEASURED:
        return heatmap.Cell(None, math.nan, int(row["rounds"]), REASONS.get(row["state"], "-"))
    return heatmap.Cell(float(row["difference"]), float(row["p"]), int(row["rounds"]))


def column_name(page: Page, beside_it: tuple[Page, ...]) -> str:
    """A page's name among the columns `beside_it`: only what varies there."""
    size, count = size_name(page.size_bytes), str(page.count)
    if len({other.count for other in beside_it}) == 1:
        return size
    if len({other.size_bytes for other in beside_it}) == 1:
        return count
    return f"{count} of\n{size}"


def bars(campaign: CampaignTable) -> list[Plate]:
    """The bars of waiting and downloading, if the object that they are of was measured."""
    told = campaign.document["settings"]["networks"]
    fast = [name for name in campaign.networks if told[name].get("down_mbps") == BARS_MBPS]
    found = timings(campaign, BARS_PAGE.name, fast)
    if found.empty:
        return []
    measured = [(name, described(told[name]).replace(", ", ",\n", 1)) for name in fast if name in set(found["network"])]
    caption = (
        f"One image of {size_name(BARS_PAGE.size_bytes)} at {BARS_MBPS} Mbit/s: mean time from its request to the "
        "first byte (wait) and on to the last (download), with the standard deviation of the sum; in brackets the runs."
    )
    return [Plate("wait_download", NAME, caption, wait_download.draw, (found, measured, campaign.protocols))]


def cells_view(found: pd.DataFrame, campaign: CampaignTable) -> View:
    """Every cell in numbers."""
    told = campaign.document["settings"]["networks"]
    shown = pd.DataFrame(
        {
            "objects": found["count"].astype(str),
            "of": [size_name(size) for size in found["size_bytes"]],
            "servers": found["servers"].astype(str),
            "network": [described(told[name]) for name in found["network"]],
            "protocol": [named(name) for name in found["compared"]],
            "its PLT [ms]": _times(found, "compared"),
            "against": [named(name) for name in found["reference"]],
            "PLT [ms]": _times(found, "reference"),
            "faster by": [percent(value) for value in found["difference"]],
            "p": [p_value(value) for value in found["p"]],
            "verdict": found["verdict"].replace("", NOTHING),
            "remark": found["remark"],
        }
    )
    if found["servers"].nunique() == 1:
        shown = shown.drop(columns="servers")
    note = f"Mean ± standard deviation (runs). {verdicts_told()}"
    return View("grid_cells", "Every cell", found, shown, note)


def controlled_view(old: pd.DataFrame) -> View:
    """The old study's values beside ours."""
    shown = pd.DataFrame(
        {
            "loss, delay": [_condition(name) for name in old["network"]],
            "objects": old["count"].astype(str),
            "of": [size_name(size) for size in old["size_bytes"]],
            "TCP+ [ms]": _times(old, "reference"),
            "QUIC [ms]": _times(old, "compared"),
            "QUIC faster by": [percent(value, 0) for value in old["difference"]],
            "p": [p_value(value) for value in old["p"]],
            "QUIC is": old["verdict"].replace("", NOTHING),
            "TCP then [ms]": [ms(value) for value in old["old_reference"]],
            "QUIC then [ms]": [ms(value) for value in old["old_compared"]],
            "faster by then": [percent(value, 0) for value in old["old_difference"]],
            "was": old["old_verdict"],
            "change": old["change"].replace("", NOTHING),
        }
    )
    note = (
        f"Mean ± standard deviation (runs). {verdicts_told()} Of then there is a mean alone, so that its verdict is by "
        f"{100 * SIMILAR_WITHIN:g} % alone."
    )
    return View("controlled", "Page load times beside those of the older study", old, shown, note)


def verdicts_told() -> str:
    """What the words of a verdict mean."""
    apart = f"{100 * SIMILAR_WITHIN:g} %"
    return (
        f"Similar: means less than {apart} apart. Faster, slower: further apart, and p < 0.01 (Welch's t test). "
        "Undecided: further apart, but not for sure."
    )


def scope(campaign: CampaignTable, found: pd.DataFrame) -> list[str]:
    """What was measured, and what came out."""
    pages, networks = pages_of(campaign), campaign.networks
    made = found[found["state"] == MEASURED]
    least, most = (int(made["rounds"].min()), int(made["rounds"].max())) if len(made) else (0, 0)
    rounds = counted("round", most) if least == most else f"{least} to {most} rounds"
    first = (
        f"{counted('page', len(pages))} behind {counted('network', len(networks))} over "
        f"{' and '.join(named(name) for name in campaign.protocols)}: {len(made)} of {len(found)} cells measured, "
        f"{rounds} each; {len(campaign.runs)} loads, of which {int(campaign.runs['valid'].sum())} count."
    )
    said = []
    for compared in campaign.protocols[1:]:
        verdicts = made.loc[made["compared"] == compared, "verdict"].value_counts()
        numbers = ", ".join(f"{name} in {verdicts.get(name, 0)}" for name in (FASTER, SLOWER, SIMILAR, UNDECIDED))
        said.append(f"{named(compared)} against {named(campaign.protocols[0])}: {numbers} cells.")
    return [f"{first} {' '.join(said)} {verdicts_told()}"]


def controlled_words(old: pd.DataFrame) -> list[str]:
    """What became of the old study's verdicts, and what its numbers say of how it was made."""
    told = old[old["change"] != ""]
    same = int((told["change"] == "as then").sum())
    changed = told.loc[told["change"] != "as then", "change"].value_counts()
    by_size = int((told["difference"].map(verdict) == told["old_verdict"]).sum())
    listed = "; ".join(f"{text}: {number}" for text, number in changed.items())
    return [
        f"Verdicts as then: {same} of {counted('cell', len(told))}{f'; {listed}' if listed else ''}. "
        f"By the size of the difference alone, sure or not, {by_size} would be as then.",
        "The slides say neither whose the delay is nor where packets were lost. Here the delay is the round trip's: "
        "their page of two small objects over TCP with TLS took four times 100 ms. What is lost is on the uplink: 128 "
        "objects of 300 KB in 3.3 s are 94 Mbit/s, a hundred times what a loss of 2 % leaves a TCP connection on the "
        "way of its data (Mathis et al., CCR 1997).",
    ]


def limits(campaign: CampaignTable, found: pd.DataFrame) -> list[str]:
    """What keeps the numbers from saying more."""
    told = []
    late, beyond = (found[found["state"] == state] for state in (TIME, BUDGET))
    limit_s = campaign.document["settings"].get("limit_s")
    if len(late):
        told.append(f"{counted('cell', len(late))} cannot finish in the {limit_s:g} s that a load may take.")
    if len(beyond):
        told.append(f"{counted('cell', len(beyond))} did not fit into the budget, which was used for the shorter ones.")
    return [*([" ".join(told)] if told else []), *returning(campaign), *without_rate(campaign, found)]


def returning(campaign: CampaignTable) -> list[str]:
    """What else differs where a protocol with early data is compared with one without."""
    told = campaign.document["settings"]["protocols"]
    with_it = [name for name in campaign.protocols if told[name].get("early_data")]
    without = [name for name in campaign.protocols if name not in with_it]
    if not with_it or not without:
        return []
    return [
        f"Loads over {' and '.join(map(named, with_it))} are a browser's second visit, those over "
        f"{' and '.join(map(named, without))} its first. What it has done by then besides, such as starting its "
        "processes and checking certificates, is in the difference, too, and weighs the more, the shorter the round "
        "trip that early data saves."
    ]


def without_rate(campaign: CampaignTable, found: pd.DataFrame) -> list[str]:
    """How fast the largest page came where no link limits the rate, which tells what the machine can."""
    told = campaign.document["settings"]["networks"]
    free = [name for name in campaign.networks if told[name].get("down_mbps") is None]
    own = found[found["network"].isin(free) & (found["state"] == MEASURED)]
    if own.empty:
        return []
    own = own.assign(
        bits=8 * own["count"] * own["size_bytes"], rtt_ms=[told[name]["min_rtt_ms"] for name in own["network"]]
    )
    one = own.sort_values(["bits", "rtt_ms"], ascending=[False, True]).iloc[0]
    mbps = [f"{one['bits'] / one[f'mean_{whose}'] / 1000:.0f} Mbit/s" for whose in ("reference", "compared")]
    cpus = campaign.document["machine"]["cpus"]
    page, network = f"{one['count']} objects of {size_name(one['size_bytes'])}", described(told[one["network"]])
    return [
        "Without a rate limit the processor is the limit, and not the same for both: QUIC's packets are handled one by "
        f"one by browser and server, TCP's in bulk by the kernel. On this machine ({cpus} processors) {page} behind "
        f"{network} came at {mbps[0]} over {named(one['reference'])} and at {mbps[1]} over {named(one['compared'])}. "
        "Pages of many megabytes there say how fast the programs are, not the protocols."
    ]


def _times(table: pd.DataFrame, whose: str) -> list[str]:
    columns = (table[f"mean_{whose}"], table[f"sd_{whose}"], table[f"runs_{whose}"])
    return [
        f"{ms(mean)}{f' ± {ms(sd)}' if runs > 1 else ''} ({runs})" if runs else NOTHING
        for mean, sd, runs in zip(*columns, strict=True)
    ]


def _condition(network: str) -> str:
    return {"controlled-clean": "0 %, 5 ms", "controlled-100ms": "2 %, 100 ms", "controlled-200ms": "2 %, 200 ms"}[
        network
    ]
