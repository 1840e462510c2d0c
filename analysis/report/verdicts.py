"""The verdicts on the declared family in words, and what qualifies them: sites that differ, a mean that contradicts the
typical load, and a metric that contradicts the decided one. Each is said only if it is shown."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from analysis.findings import Findings
from analysis.runs import records, rows_of
from analysis.statistics.heterogeneity import differing
from analysis.statistics.hypotheses import Pair
from analysis.statistics.other_metrics import WORDS as CONTRADICTIONS
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, EQUIVALENT, FASTER, NOT_DECIDED, SLOWER, WARNING_P
from analysis.statistics.samples import OVER_SITES
from analysis.text import label, listing, percent

# After EQUAL_ON_AVERAGE if the pages are shown to differ.
NOT_BY_PAGE = f"{EQUAL_ON_AVERAGE}, not page by page"
# The end of a verdict on protocols that lost loads unequally.
AMONG = " among loads that succeeded"
DECIDED = (FASTER, SLOWER, EQUIVALENT, NOT_BY_PAGE, EQUAL_ON_AVERAGE)
WORDS = (*(word for verdict in DECIDED for word in (verdict, verdict + AMONG)), NOT_DECIDED)
# The columns of a pair on a network.
PLACE = OVER_SITES[:3]
# A sentence names at most this many contrasts besides its example, and at most this many metrics.
MOST = 3


@lru_cache(maxsize=1)
def verdict_table(findings: Findings) -> pd.DataFrame:
    """The table `confirmatory` for readers: no mean counts as equivalent if its sites scatter by more than the margin
    (EQUAL_ON_AVERAGE).

    Further columns: `word` (one of WORDS: the verdict, with AMONG for protocols that are shown to have lost loads
    unequally); `tau` (as in `heterogeneity`); `is_shown` (whether a difference is shown, however small); `pages_differ`
    (whether sites are shown to differ, by more than the margin). All callers share this table, so do not change it.
    """
    table, of_sites = findings["confirmatory"], findings["heterogeneity"]
    contrasts = pd.MultiIndex.from_frame(table[OVER_SITES])
    tau = of_sites.set_index(OVER_SITES)["tau"].reindex(contrasts).to_numpy(dtype=float)
    is_scattered = tau > np.log1p(table["margin"].to_numpy(dtype=float))
    cells = pd.MultiIndex.from_frame(differing(of_sites, findings.declared)[OVER_SITES])
    pages_differ = is_scattered & contrasts.isin(cells)
    verdict = table["verdict"].mask(table["verdict"].eq(EQUIVALENT) & is_scattered, EQUAL_ON_AVERAGE)
    word = verdict.mask(verdict.eq(EQUAL_ON_AVERAGE) & pages_differ, NOT_BY_PAGE)
    bounds = findings["loss_bounds"]
    unequal = pd.MultiIndex.from_frame(bounds.loc[bounds["lost_p_corrected"] < WARNING_P, PLACE])
    is_among = pd.MultiIndex.from_frame(table[PLACE]).isin(unequal) & verdict.ne(NOT_DECIDED)
    return table.assign(
        verdict=verdict,
        word=word.mask(is_among, word.astype(str) + AMONG),
        tau=tau,
        is_shown=table["p_corrected"] < findings.declared.significant_p,
        pages_differ=pages_differ,
    )


def verdict_in_words(row: Mapping[str, Any]) -> str:
    """The verdict of a row of `verdict_table`: `equivalent (0.1 % faster)`."""
    is_sized = row["verdict"] == EQUIVALENT and row["is_shown"]
    size = f"{100 * abs(row['gain']):.1f} % {FASTER if row['gain'] < 0 else SLOWER}"
    return f"{row['word']} ({size})" if is_sized else str(row["word"])


def marked(findings: Findings, row: Mapping[str, Any]) -> str:
    """The verdict of a row of `verdict_table` for a cell, with marks for what stands beside it."""
    is_unsaid = row["pages_differ"] and row["verdict"] != EQUAL_ON_AVERAGE
    marks = {"pages differ": is_unsaid, "slow loads contradict": bool(slow_loads(findings, row))}
    return ", ".join([verdict_in_words(row), *(mark for mark, applies in marks.items() if applies)])


def beside(findings: Findings, verdicts: pd.DataFrame, pair: Pair) -> dict[str, str]:
    """The qualifications of the verdicts on `pair`: a title → its details. `verdicts` is the `verdict_table`."""
    rows = records(rows_of(verdicts, **pair._asdict()).sort_values("tau", ascending=False, kind="stable"))
    rows.sort(key=lambda row: row["verdict"] == NOT_DECIDED)
    differ = {_place(row): text for row in rows if (text := pages(findings, row))}
    slow = {_place(row): text for row in rows if (text := slow_loads(findings, row))}
    return {
        **({"Pages differ, so the answer is about these pages on average": _example(differ)} if differ else {}),
        **({"Slow loads contradict the answer": _example(slow)} if slow else {}),
        **_contradictions(rows_of(findings["other_metrics"], **pair._asdict())),
    }


def clauses(findings: Findings, row: Mapping[str, Any]) -> list[str]:
    """The clauses that follow the verdict of one row of `verdict_table`."""
    differ, slow = pages(findings, row), slow_loads(findings, row)
    others = rows_of(findings["other_metrics"], **{name: row[name] for name in OVER_SITES})
    return [
        *([f"on these pages on average; pages differ: {differ}"] if differ else []),
        *([slow] if slow else []),
        *(
            f"{_named(other)} {other['word']} {label(other['metric'])}: {percent(other['gain'])}"
            for other in records(others[others["word"] != ""])
        ),
    ]


def pages(findings: Findings, row: Mapping[str, Any]) -> str:
    """How far pages differ in a row of `verdict_table`; empty unless it is shown that they do."""
    if not row["pages_differ"]:
        return ""
    (known,) = records(rows_of(findings["heterogeneity"], **{name: row[name] for name in OVER_SITES}))
    return (
        f"{known['faster']:.0f} of {known['sites']} are faster, from {_whole(known, 'least_gain', 'most_gain')}, the "
        f"next page like these: {_whole(known, 'new_low', 'new_high')}"
    )


def slow_loads(findings: Findings, row: Mapping[str, Any]) -> str:
    """How the mean or the 95th percentile contradicts the verdict of a row of `verdict_table`: it has the other sign,
    or is beyond what counts as equivalent, by more than two errors. Empty if neither does."""
    of_row = rows_of(findings["sensitivity"], **{name: row[name] for name in OVER_SITES})
    if of_row.empty or row["verdict"] == NOT_DECIDED:
        return ""
    numbers = of_row.iloc[0]
    names = [("mean", "mean"), ("slow", "95th percentile")]
    contradicting = [
        (key, name) for key, name in names if _contradicts(row, numbers[f"{key}_low"], numbers[f"{key}_high"])
    ]
    if not contradicting:
        return ""
    is_of_compared = numbers[f"{contradicting[0][0]}_gain"] > row["gain"]
    long = numbers["long_compared" if is_of_compared else "long_reference"]
    protocol = label(row["compared" if is_of_compared else "reference"])
    texts = [f"{name} {percent(numbers[f'{key}_gain'], 0)}" for key, name in contradicting]
    reason = f": one load in {1 / long:.0f} over {protocol} is long" if long > 0 else ""
    return f"typical load {percent(row['gain'], 0)}, {', '.join(texts)}{reason}"


def _contradicts(row: Mapping[str, Any], low: float, high: float) -> bool:
    if row["verdict"] in (FASTER, SLOWER):
        return bool(low > 0 if row["verdict"] == FASTER else high < 0)
    return bool(low > row["margin"] or high < 1 / (1 + row["margin"]) - 1)


def _contradictions(table: pd.DataFrame) -> dict[str, str]:
    """The metrics that contradict the decided ones of one pair, the plainest first, each with its changes."""
    rows = table[table["word"] != ""].sort_values(
        "word", key=lambda words: words.map(CONTRADICTIONS.index), kind="stable"
    )
    texts = {}
    for (_, word, metric), group in rows.groupby(["other", "word", "metric"], sort=False):
        others = records(group)
        places = [f"{percent(row['gain'])} on {label(row['network'])}" for row in others]
        texts[f"{_named(others[0])} {word} {label(metric)}"] = listing(places)
    return texts


def _named(other: Mapping[str, Any]) -> str:
    return label(other["other"]) if other["is_declared"] else f"{label(other['other'])} (not declared)"


def _place(row: Mapping[str, Any]) -> str:
    return f"{label(row['metric'])} on {label(row['network'])}"


def _example(texts: Mapping[str, str]) -> str:
    """The first of the `texts` with its place, and the places of the others."""
    place, *others = texts
    more = (
        "" if not others else f"; also {listing(others) if len(others) <= MOST else f'{len(others)} other contrasts'}"
    )
    return f"{place}: {texts[place]}{more}"


def _whole(row: Mapping[str, Any], low: str, high: str) -> str:
    return f"{percent(row[low], 0)} to {percent(row[high], 0)}"
