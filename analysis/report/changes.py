"""The comparison of two campaigns for readers: sentences, tables, the page, and JSON for continuous integration."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.campaign_changes import LOST, SLOW, SLOW_FACTOR, CampaignChange
from analysis.report.lines import Line, grouped
from analysis.report.page import environment, page_basics, styles
from analysis.report.section import ReportTable, text_table
from analysis.report.sentences import HEADLINE
from analysis.report.warnings import of_missing_times
from analysis.report.write import write_tables
from analysis.runs import CampaignTable, records
from analysis.statistics.outcomes import FASTER, SLOWER
from analysis.text import (
    label,
    level,
    listing,
    moment,
    ms,
    p_value,
    pair_label,
    percent,
    percent_interval,
    plural,
    whole_number,
)
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller

# The version of the JSON document (docs/contributors/json.md); it grows if a key changes its meaning or is removed.
FORMAT = 1
NO_REGRESSION, WORSE = "no regression shown", "worse"
INDEX, JSON = "index.html", "compare.json"
FORMS: dict[Any, Any] = {
    "change": ("change", percent),
    ("low", "high"): ("interval", percent_interval),
    "p_corrected": ("p corrected", p_value),
    "verdict": "verdict of B",
    "beyond_canary": ("beyond the canary", lambda value: {True: "yes", False: "no"}.get(value, "-")),
    "worse": ("worse", lambda value: "WORSE" if value else ""),
}


def _points(share: float) -> str:
    """A change of a share in percentage points."""
    return percent(share).removesuffix(" %")


SHARES: dict[Any, Any] = {
    "network": ("network", label),
    "protocol": ("protocol", label),
    "sites": "sites",
    ("found_a", "loads_a"): ("in A", "{} of {}".format),
    ("found_b", "loads_b"): ("in B", "{} of {}".format),
    "change": ("change", _points),
    ("low", "high"): ("interval", lambda low, high: f"{_points(low)} to {_points(high)}"),
    "worse_p_corrected": ("p corrected", p_value),
    "worse": FORMS["worse"],
}


def sentences(change: CampaignChange) -> list[str]:
    """The answer, and the facts that it rests on."""
    return [
        f"{answer(change)}: {_parts(change)}",
        *_means(change),
        *_decision(change),
        *_others(change),
        *_caveats(change),
    ]


def answer(change: CampaignChange) -> str:
    """The answer in a few words."""
    return "B is worse" if change.is_worse else "No regression is shown"


def _reasons(change: CampaignChange) -> list[str]:
    """The other changes, and whether B is shown to be within the threshold."""
    return [*_means(change), *_decision(change), *_others(change)]


def _parts(change: CampaignChange) -> str:
    """The answer in three parts: typical load, slow loads, lost loads."""
    return f"{_typical(change)}; {_counted(change, SLOW)}; {_counted(change, LOST)}."


def _lines(change: CampaignChange) -> list[Line]:
    """The lines of the page: the changes over all sites."""
    kinds = {FASTER: "sooner", SLOWER: "later"}
    return [
        Line(
            row["metric"],
            row["network"],
            label(row["protocol"]),
            "later" if row["worse"] else kinds.get(row["verdict"], "open"),
            "worse" if row["worse"] else row["verdict"],
            row["change"],
            row["low"],
            row["high"],
            margin=math.nan,
        )
        for row in records(change.over_sites.sort_values("metric", key=lambda names: names != HEADLINE, kind="stable"))
    ]


def _threshold(change: CampaignChange) -> str:
    threshold = level(change.worse_than)
    if change.allowance is None:
        return threshold
    return f"{threshold} and the {percent(change.allowance)} that the machine's canary allows"


def _typical(change: CampaignChange) -> str:
    if change.over_sites.empty:
        return "typical loads could not be compared"
    over, single = (table[table["worse"]] for table in (change.over_sites, change.sites))
    texts = [f"over all sites {_listed(over)}"] if len(over) else []
    if len(single):
        names = sorted(single["site"].unique())
        texts.append(f"at {plural('site', len(names))} ({listing(names)})")
    is_shown = "are shown" if texts else "are not shown"
    text = f"typical loads {is_shown} to be slower in B than in A by more than {_threshold(change)}"
    return ", ".join([text, " and ".join(texts)]) if texts else text


def _counted(change: CampaignChange, kind: str) -> str:
    rows = change.shares[change.shares["kind"] == kind]
    if rows.empty:
        return f"{kind} loads could not be counted in both"
    worse = rows[rows["worse"]]
    if worse.empty:
        total = of_loads(rows.select_dtypes("number").sum())
        return f"{kind} loads are not shown to be more frequent in B ({total})"
    places = [f"{label(row['protocol'])} on {label(row['network'])} ({of_loads(row)})" for row in records(worse)]
    return f"{kind} loads are shown to be more frequent in B: {listing(places)}"


def of_loads(row: Mapping[str, Any]) -> str:
    """The numbers of loads found in A and in B, and of all loads, in words."""
    return f"{row['found_a']:.0f} of {row['loads_a']:.0f} in A, {row['found_b']:.0f} of {row['loads_b']:.0f} in B"


def _means(change: CampaignChange) -> list[str]:
    """The changes of the means where slow loads are more frequent."""
    slow = change.shares[(change.shares["kind"] == SLOW) & change.shares["worse"]]
    rows = change.over_sites.merge(slow[["network", "protocol"]], on=["network", "protocol"])
    if rows.empty:
        return []
    return [f"The arithmetic mean, which slow loads raise, changes: {_listed(rows, 'mean_change')}."]


def _decision(change: CampaignChange) -> list[str]:
    """If B is not worse: whether it is shown to be within the threshold."""
    if change.is_worse:
        return []
    typical, points = f"slower by less than {_threshold(change)}", f"{100 * change.worse_than:g} percentage points"
    if change.is_decided:
        return [
            f"B is shown to be within the threshold: typical loads over all sites are {typical}, and the shares of "
            f"slow and lost loads are larger by less than {points}."
        ]
    texts = [
        f"{(~table['within']).sum()} of {len(table)} {what}"
        for table, what in (
            (change.over_sites, f"typical loads over all sites are not shown to be {typical}"),
            (change.shares, f"shares of slow and lost loads are not shown to be larger by less than {points}"),
        )
        if not table["within"].all()
    ]
    if any(table["is_left_out"].any() for table in change.missing.values()):
        texts.append("times are left out, since too many loads lack them (see below)")
    return [f"Not decided: {', and '.join(texts)}."]


def _listed(rows: pd.DataFrame, column: str = "change") -> str:
    """The changes (`column`) of the protocols and networks of `rows`, each with its metrics."""
    groups = rows.groupby(["protocol", "network"], sort=False)
    return listing(
        [
            f"{label(protocol)} on {label(network)} "
            f"({', '.join(f'{label(row.metric)} {percent(getattr(row, column))}' for row in group.itertuples())})"
            for (protocol, network), group in groups
        ]
    )


def _others(change: CampaignChange) -> list[str]:
    """The changes over all sites that do not make B worse."""
    rows = change.over_sites[~change.over_sites["worse"]]
    slower, faster = (rows[rows["verdict"] == verdict] for verdict in (SLOWER, FASTER))
    texts = [f"Slower, but not shown to be by more than the threshold: {_listed(slower)}."] if len(slower) else []
    return texts + ([f"Faster: {_listed(faster)}."] if len(faster) else [])


def _caveats(change: CampaignChange) -> list[str]:
    texts = [
        "A and B were not measured in the same blocks: nothing is paired, and the machine's own change does not "
        f"cancel. A was begun {_begun(change.a)}, B {_begun(change.b)}."
    ]
    for row in change.canaries.itertuples():
        texts.append(
            f"The machine's canary {row.canary} took {ms(row.mean_a)} ms in A, {ms(row.mean_b)} ms in B: a change of "
            f"{percent(row.change)} ({percent_interval(row.low, row.high)}; {row.times_a} and {row.times_b} times)."
        )
    if change.allowance is None:
        texts.append("No canary of the processor has an interval in both, so the machine's own change is unknown.")
    else:
        texts.append(
            "Beyond the canary: the interval lies outside the processor canary's, so the change is larger than a "
            "slower processor alone explains, if loads slow down by no more than the canary does."
        )
    allowed = "" if change.worse_than == 0 == (change.allowance or 0) else f" (times of B less {_threshold(change)})"
    texts.append(
        f"A load is slow if one of its times is more than {SLOW_FACTOR:g} times the median of all loads of its site "
        f"over the same protocol, in A and B{allowed}. A load is lost if it failed, never ended or showed another "
        "page, even if it was repeated."
    )
    texts.append(
        f"If nothing has changed, at most {level(change.false_alarm_share)} of comparisons say that B is worse. This "
        "requires that runs are independent: that none share a slow hour of the machine."
    )
    recordings = change.differences["what"].str.fullmatch(r"settings sites \S+ sha256")
    if recordings.any():
        names = [text.split()[2] for text in change.differences.loc[recordings, "what"]]
        compared = sorted(set(names) & set(change.sites["site"]))
        if compared:
            texts.append(f"The recordings of {listing(compared)} are not the same in A and B: these are other pages.")
    texts += [f"In {name}: {text}" for name, table in change.missing.items() for text in of_missing_times(table)]
    return texts + [text[:1].upper() + text[1:] + "." for text in change.unmatched]


def _begun(campaign: CampaignTable) -> str:
    begun_at = campaign.document.begun_at
    return f"on {moment(begun_at)}" if begun_at else "at an unknown time"


def tables(change: CampaignChange) -> dict[str, list[ReportTable]]:
    """The tables of the page, by section."""
    confidence = level(change.hypotheses.confidence)
    setting = {"network": ("network", label), "protocol": ("protocol", label), "metric": ("metric", label)}
    over_form = {**setting, "sites": "sites", **FORMS, "mean_change": ("change of the mean", percent)}
    over = text_table(change.over_sites, over_form)
    shares = text_table(change.shares, {"kind": "loads", **SHARES})
    runs = {"runs_a": "runs of A", "runs_b": "runs of B"}
    means = {"mean_a": ("A [ms]", ms), "mean_b": ("B [ms]", ms)}
    sites = text_table(change.sites, {"site": "site", **setting, **runs, **means, **FORMS})
    contrasts = text_table(
        change.contrasts,
        {
            ("compared", "reference"): ("protocols", pair_label),
            "network": ("network", label),
            "metric": ("metric", label),
            "sites": ("sites", whole_number),
            "change": ("change of the ratio", percent),
            ("low", "high"): ("interval", percent_interval),
            "p_corrected": ("p corrected", p_value),
        },
    )
    differences = text_table(change.differences, {"what": "what", "a": "A", "b": "B"})
    note = f"Change from A to B; negative is faster. Intervals hold with {confidence}."
    return {
        "over": [
            ReportTable(
                "campaign_changes", "Over all sites", change.over_sites, over, f"{note} p corrected by Holm's method."
            ),
            ReportTable(
                "slow_and_lost",
                "Slow and lost loads",
                change.shares,
                shares,
                f"Change of the share from A to B, in percentage points; intervals (Newcombe) hold with {confidence}. "
                "p of no larger share: exact, within sites, corrected by Holm's method over this table; - where no "
                "outcome could have been significant.",
            ),
        ],
        "sites": [
            ReportTable(
                "sites", "Site by site", change.sites, sites, f"{note} p corrected by Benjamini and Hochberg's method."
            )
        ],
        "contrasts": [
            ReportTable(
                "contrasts",
                "How protocols differ, in B against A",
                change.contrasts,
                contrasts,
                "Ratios within blocks, so effects that slow all protocols alike cancel. Corrected by Holm's method.",
            )
        ],
        "differences": [
            ReportTable("differences", "Other differences between A and B", change.differences, differences)
        ],
    }


def document(change: CampaignChange) -> dict[str, Any]:
    """The comparison as JSON (docs/contributors/json.md): unknown values are null, changes shares, times in ms."""
    return {
        "format": FORMAT,
        "outcome": WORSE if change.is_worse else NO_REGRESSION,
        "decided": change.is_decided,
        "worse_than": change.worse_than,
        "canary_allowance": change.allowance,
        "false_alarm_share": change.false_alarm_share,
        "significant_p": change.hypotheses.significant_p,
        "confidence": change.hypotheses.confidence,
        **{
            name: {"name": campaign.name, "begun_at": campaign.document.begun_at, "valid_runs": len(campaign.valid)}
            for name, campaign in (("a", change.a), ("b", change.b))
        },
        "over_sites": plain_rows(change.over_sites),
        "sites": plain_rows(change.sites),
        "shares": plain_rows(change.shares),
        "contrasts": plain_rows(change.contrasts),
        "canaries": plain_rows(change.canaries),
        "differences": plain_rows(change.differences),
        "unmatched": list(change.unmatched),
    }


def plain_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `table` for JSON: numbers of Python, and None in place of NaN and infinity."""
    return [{name: _plain(value) for name, value in row.items()} for row in records(table)]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(change: CampaignChange, into: Path) -> Path:
    """Write the page, the JSON and the tables into the folder `into`, and replace older ones; returns the folder."""
    page_tables = tables(change)
    with replacing_folder(into, JSON) as new:
        (new / "tables").mkdir()
        write_tables([table for some in page_tables.values() for table in some], new / "tables")
        template = environment({}).get_template("changes.html.j2")
        html = template.render(
            **page_basics(change.b.document) | {"css": styles("page.css", "answer.css")},
            tables=page_tables,
            a=change.a,
            b=change.b,
            answer=answer(change),
            parts=_parts(change),
            reasons=_reasons(change),
            groups=grouped(_lines(change), "protocols", "B faster"),
            confidence=level(change.hypotheses.confidence),
            warnings=_caveats(change),
        )
        (new / INDEX).write_text(html)
        write_json(new / JSON, document(change))
    give_to_caller(into)
    return into
