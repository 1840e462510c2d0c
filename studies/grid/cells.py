"""What a grid says of each of its cells, a page behind a network: mean page load times, and how they differ."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.contrasts import welch_p
from analysis.gain import SIGNIFICANT_P
from analysis.runs import CampaignTable
from record.grid import Page, page_named
from studies.downloads.figure2 import size_name

# A difference of the means that is smaller is none, however sure it is.
SIMILAR_WITHIN = 0.05
FASTER, SLOWER, SIMILAR, UNDECIDED = "faster", "slower", "similar", "undecided"
# Why a cell has no difference: its loads do not end in time, it was beyond the budget, or it is not measured (yet).
TIME, BUDGET, OPEN = "time", "budget", "open"
MEASURED = "measured"
NO_TIMES = np.array([])

COLUMNS = ["compared", "reference", "site", "count", "size_bytes", "servers", "network", "rounds", "runs_reference"]
COLUMNS += ["mean_reference", "sd_reference", "runs_compared", "mean_compared", "sd_compared", "difference", "p"]
COLUMNS += ["verdict", "state", "remark"]


def pages_of(campaign: CampaignTable) -> list[Page]:
    """The pages of a grid, those included of which nothing is measured."""
    study = campaign.document.get("study", {})
    names = [*study.get("pages", ()), *campaign.document["settings"]["sites"]]
    return [page for name in dict.fromkeys(names) if (page := page_named(name))]


def cells(campaign: CampaignTable) -> pd.DataFrame:
    """A row for each page, network and protocol but the first, with the columns `COLUMNS`; times in ms.

    `difference` is (mean of the first protocol - mean of the compared one) / mean of the first, so that positive means
    that the compared one is faster, as Kakhki et al. have it; `p` is Welch's t test's; `rounds` is how many runs of
    each there are at least. `verdict` is similar where the means are less than 5 % apart, faster or slower where
    p < 0.01, undecided elsewhere. Where a load of either protocol was not over in time, there are no numbers: those
    that were are no sample of all.
    """
    left_out = {(one["site"], one["network"]): one for one in campaign.document.get("study", {}).get("left_out", ())}
    late = _counted(campaign.runs[campaign.runs["reason"].str.startswith("over_time:")])
    attempts = _counted(campaign.runs)
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
                tried, too_late = (sum(number[key] for key in both) for number in (attempts, late))
                a, b = (times.get(key, NO_TIMES) if not too_late else NO_TIMES for key in both)
                row: dict[str, Any] = {
                    "compared": compared,
                    "reference": reference,
                    "site": page.name,
                    "count": page.count,
                }
                row |= {"size_bytes": page.size_bytes, "servers": page.servers, "network": network}
                row |= compare(a, b)
                row["state"], row["remark"] = _state(row["rounds"], tried, too_late, left_out.get(cell))
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def compare(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The numbers of a cell from the page load times `a` of the first protocol and `b` of the compared one."""
    mean_a, mean_b = (float(values.mean()) if len(values) else np.nan for values in (a, b))
    sd_a, sd_b = (float(values.std(ddof=1)) if len(values) > 1 else np.nan for values in (a, b))
    p = float(welch_p(a[np.newaxis], b[np.newaxis])[0]) if min(len(a), len(b)) > 1 else np.nan
    difference = (mean_a - mean_b) / mean_a
    return {
        "rounds": min(len(a), len(b)),
        "runs_reference": len(a),
        "mean_reference": mean_a,
        "sd_reference": sd_a,
        "runs_compared": len(b),
        "mean_compared": mean_b,
        "sd_compared": sd_b,
        "difference": difference,
        "p": p,
        "verdict": verdict(difference, p),
    }


def verdict(difference: float, p: float = 0.0) -> str:
    """The verdict on a `difference` as in `cells`; empty where there is none, or no p value."""
    if np.isnan(difference) or np.isnan(p):
        return ""
    if abs(difference) < SIMILAR_WITHIN:
        return SIMILAR
    if p >= SIGNIFICANT_P:
        return UNDECIDED
    return FASTER if difference > 0 else SLOWER


def _counted(runs: pd.DataFrame) -> Counter[tuple[str, str, str]]:
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
    """Pages that stand side by side in a heat map: what varies among them, and they themselves, in order."""

    name: str
    title: str
    pages: tuple[Page, ...]


def panels(pages: Sequence[Page]) -> list[Panel]:
    """How `pages` are laid out: by size and by count where one of them varies while the other is fixed, else all in
    one."""
    counts, sizes = sorted({page.count for page in pages}), sorted({page.size_bytes for page in pages})
    servers = sorted({page.servers for page in pages})
    spread = len(servers) > 1
    made = []
    for number in servers:
        own = {page for page in pages if page.servers == number}
        told = f", {number} {'server' if number == 1 else 'servers'}" if spread else ""
        suffix = f"_{number}s" if spread else ""
        by_size = [(count, [page for page in own if page.count == count]) for count in counts]
        by_count = [(size, [page for page in own if page.size_bytes == size]) for size in sizes]
        lines = [(f"size_of_{count}", f"size of {_objects(count)}", of) for count, of in by_size if len(of) > 1]
        if len(lines) > 1:
            # A whole field, of which no line stands alone.
            ordered = sorted(own, key=lambda page: (page.size_bytes, page.count))
            made.append(Panel(f"all{suffix}", f"objects and their size{told}", tuple(ordered)))
            continue
        lines += [
            (f"count_{size}B", f"number of objects of {size_name(size)}", of) for size, of in by_count if len(of) > 1
        ]
        covered = {page for _, _, of in lines for page in of}
        lines += [("others", "other pages", sorted(own - covered, key=str))] if own - covered else []
        made += [
            Panel(
                f"{name}{suffix}", f"{title}{told}", tuple(sorted(of, key=lambda page: (page.size_bytes, page.count)))
            )
            for name, title, of in lines
        ]
    return made


def _objects(count: int) -> str:
    return "one object" if count == 1 else f"{count} objects"


def described(network: Mapping[str, Any]) -> str:
    """A network in a few words, from what `campaign.json` keeps of it."""
    mbps = network.get("down_mbps")
    told = "no rate limit" if mbps is None else f"{mbps:.3g} Mbit/s"
    if network.get("down_trace"):
        told = f"varying, {told} by mean"
    told += f", {network['min_rtt_ms']:g} ms"
    if network.get("jitter_ms"):
        told += f" ± {network['jitter_ms']:g} ms" + (", reordering" if network.get("reorder") else "")
    if network.get("loss"):
        way = {"up": " on the uplink", "down": " on the downlink"}.get(network.get("loss_on", "both"), "")
        told += f", {100 * network['loss']:g} % loss{way}"
    return told
