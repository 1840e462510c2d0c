"""The cells of a grid, each a page behind a network: mean page load times, and how they differ."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from analysis.contrasts import welch_p
from analysis.outcomes import FASTER, NOT_DECIDED, SIGNIFICANT_P, SLOWER
from analysis.runs import CampaignTable, gates
from analysis.text import plural, size_label
from measure.gates import OVER_TIME
from record.grid import Page, page_named

# A smaller difference of the means counts as none, even if it is significant.
SIMILAR_WITHIN = 0.05
SIMILAR = "similar"
# Why a cell has no difference: its loads do not end in time, it did not fit the budget, or it is not measured (yet).
TIME, BUDGET, OPEN = "time", "budget", "open"
MEASURED = "measured"
NO_TIMES = np.array([])

COLUMNS = ["compared", "reference", "site", "count", "size_bytes", "servers", "network", "rounds", "runs_reference"]
COLUMNS += ["mean_reference", "sd_reference", "runs_compared", "mean_compared", "sd_compared", "difference", "p"]
COLUMNS += ["verdict", "state", "remark"]


def pages_of(campaign: CampaignTable) -> list[Page]:
    """The pages of a grid, with those of which nothing is measured yet."""
    names = [*campaign.document.study.get("pages", ()), *campaign.document.sites]
    return [page for name in dict.fromkeys(names) if (page := page_named(name))]


def cells(campaign: CampaignTable) -> pd.DataFrame:
    """A row for each page, network and protocol but the first, with the columns `COLUMNS`; times in ms.

    `difference` is (mean of the first protocol - mean of the compared one) / mean of the first, so that positive means
    that the compared one is faster, as in Kakhki et al.; `p` is Welch's t test's; `rounds` is the least number
    of runs of either. `verdict` is similar where the means are less than 5 % apart, faster or slower where
    p < 0.01, undecided elsewhere. Where a load of either protocol did not end in time, there are no numbers: those
    that did are no sample of all.
    """
    left_out = {(cell["site"], cell["network"]): cell for cell in campaign.document.study.get("left_out", ())}
    late = _attempts(campaign.runs[gates(campaign.runs["reason"]) == OVER_TIME.name])
    attempts = _attempts(campaign.runs)
    times = {
        key: group["plt"].dropna().to_numpy(dtype=float)
        for key, group in campaign.valid.groupby(["site", "network", "protocol"])
    }
    reference, *others = campaign.protocols
    rows = []
    for page in pages_of(campaign):
        for network in campaign.networks:
            cell = (page.name, network)
            for compared in others:
                both = [(*cell, protocol) for protocol in (reference, compared)]
                attempts_at_cell, late_at_cell = (sum(counts[key] for key in both) for counts in (attempts, late))
                a, b = (times.get(key, NO_TIMES) if not late_at_cell else NO_TIMES for key in both)
                row: dict[str, Any] = {"compared": compared, "reference": reference, "site": page.name}
                row |= asdict(page) | {"network": network} | compare(a, b)
                row["state"], row["remark"] = _state(row["rounds"], attempts_at_cell, late_at_cell, left_out.get(cell))
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def compare(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The numbers of a cell from the page load times `a` of the first protocol and `b` of the compared one."""
    row: dict[str, Any] = {"rounds": min(len(a), len(b))}
    for whose, times in (("reference", a), ("compared", b)):
        row[f"runs_{whose}"] = len(times)
        row[f"mean_{whose}"] = float(times.mean()) if len(times) else np.nan
        row[f"sd_{whose}"] = float(times.std(ddof=1)) if len(times) > 1 else np.nan
    difference = (row["mean_reference"] - row["mean_compared"]) / row["mean_reference"]
    p = float(welch_p(a[np.newaxis], b[np.newaxis])[0]) if row["rounds"] > 1 else np.nan
    return row | {"difference": difference, "p": p, "verdict": verdict(difference, p)}


def verdict(difference: float, p: float = 0.0) -> str:
    """The verdict on a `difference` as in `cells`; empty where there is none, or no p value."""
    if np.isnan(difference) or np.isnan(p):
        return ""
    if abs(difference) < SIMILAR_WITHIN:
        return SIMILAR
    if p >= SIGNIFICANT_P:
        return NOT_DECIDED
    return FASTER if difference > 0 else SLOWER


def _attempts(runs: pd.DataFrame) -> Counter[tuple[str, str, str]]:
    return Counter(zip(runs["site"], runs["network"], runs["protocol"], strict=True))


def _state(rounds: int, attempts: int, late: int, left_out: Mapping[str, str] | None) -> tuple[str, str]:
    if late:
        return TIME, f"{late} of {attempts} loads did not end in time"
    if rounds:
        return MEASURED, ""
    if left_out is not None:
        return left_out["of"], left_out["reason"]
    return OPEN, "no load counts" if attempts else "not measured"


@dataclass(frozen=True)
class Panel:
    """Pages that stand side by side in a heat map, in order; the name and the title say what varies among them."""

    name: str
    title: str
    pages: tuple[Page, ...]


def panels(pages: Sequence[Page]) -> list[Panel]:
    """The panels of a heat map of `pages`: for each number of servers, one for each line of pages in which size or
    count is fixed, or one for all where the pages vary both."""
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
    """Pages of one number of servers as panels: name, title, pages."""
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


def network_label(network: Mapping[str, Any]) -> str:
    """A network in a few words, from its settings in `campaign.json`."""
    mbps = network.get("down_mbps")
    text = "no rate limit" if mbps is None else f"{mbps:.3g} Mbit/s"
    if network.get("down_trace"):
        text = f"varying, {text} by mean"
    text += f", {network['min_rtt_ms']:g} ms"
    if network.get("jitter_ms"):
        text += f" ± {network['jitter_ms']:g} ms" + (", reordering" if network.get("reorder") else "")
    if network.get("loss"):
        way = {"up": " on the uplink", "down": " on the downlink"}.get(network.get("loss_on", "both"), "")
        text += f", {100 * network['loss']:g} % loss{way}"
    return text
