"""The comparison of two campaigns for readers: sentences, tables, the page, and JSON for continuous integration."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.campaign_changes import CampaignChange
from analysis.report.page import environment, page_basics
from analysis.report.section import ReportTable, text_table
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

# The version of the JSON document (docs/compare.md); it grows if a key changes its meaning or is removed.
FORMAT = 1
NO_REGRESSION, WORSE = "no regression shown", "worse"
INDEX, JSON = "index.html", "compare.json"
CHANGE: dict[Any, Any] = {
    "change": ("change", percent),
    ("low", "high"): ("interval", percent_interval),
    "p_corrected": ("p corrected", p_value),
    "verdict": "verdict of B",
    "beyond_canary": ("beyond the canary", lambda value: {True: "yes", False: "no"}.get(value, "-")),
    "worse": ("worse", lambda value: "WORSE" if value else ""),
}


def sentences(change: CampaignChange) -> list[str]:
    """The answer, and the facts that it rests on."""
    return [_outcome(change), *_others(change), *_caveats(change)]


def _outcome(change: CampaignChange) -> str:
    threshold = f"by more than {level(change.worse_than)}"
    if change.allowance is not None:
        threshold += f" and the {percent(change.allowance)} that the machine's canary allows"
    if not change.is_worse:
        return f"No regression is shown: nothing in B is shown to be slower than in A {threshold}."
    over, single = (table[table["worse"]] for table in (change.over_sites, change.sites))
    texts = [f"over all sites {_listed(over)}"] if len(over) else []
    if len(single):
        names = sorted(single["site"].unique())
        texts.append(f"at {plural('site', len(names))} ({listing(names)})")
    return f"B is worse: it is shown to be slower than A {threshold}, {', and '.join(texts)}."


def _listed(rows: pd.DataFrame) -> str:
    """The changes of the protocols and networks of `rows`, each with its metrics."""
    groups = rows.groupby(["protocol", "network"], sort=False)
    return listing(
        [
            f"{label(protocol)} behind {label(network)} "
            f"({', '.join(f'{label(row.metric)} {percent(row.change)}' for row in group.itertuples())})"
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
        texts.append("No canary of the processor has an interval in both: nothing bounds what the machine changed.")
    else:
        texts.append(
            "A change is beyond the canary if its interval lies outside the processor canary's: then the machine's "
            "processor alone does not explain it, if loads slow down by no more than the canary does."
        )
    texts.append(
        f"Of comparisons of two campaigns between which nothing has changed, {level(change.false_alarm_share)} at most "
        "say that B is worse, if their runs are independent: if none share a slow hour of the machine."
    )
    recordings = change.differences["what"].str.fullmatch(r"settings sites \S+ sha256")
    if recordings.any():
        names = [text.split()[2] for text in change.differences.loc[recordings, "what"]]
        compared = sorted(set(names) & set(change.sites["site"]))
        if compared:
            texts.append(f"The recordings of {listing(compared)} are not the same in A and B: these are other pages.")
    return texts + [text[:1].upper() + text[1:] + "." for text in change.unmatched]


def _begun(campaign: CampaignTable) -> str:
    begun_at = campaign.document.begun_at
    return f"on {moment(begun_at)}" if begun_at else "at an unknown time"


def tables(change: CampaignChange) -> dict[str, list[ReportTable]]:
    """The tables of the page, by section."""
    confidence = level(change.hypotheses.confidence)
    setting = {"network": ("network", label), "protocol": ("protocol", label), "metric": ("metric", label)}
    over = text_table(change.over_sites, {**setting, "sites": "sites", **CHANGE})
    runs = {"runs_a": "runs of A", "runs_b": "runs of B"}
    means = {"mean_a": ("A [ms]", ms), "mean_b": ("B [ms]", ms)}
    sites = text_table(change.sites, {"site": "site", **setting, **runs, **means, **CHANGE})
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
            )
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
                "Ratios within blocks: what slows all protocols alike, as the machine may, cancels. Holm's method.",
            )
        ],
        "differences": [
            ReportTable("differences", "What else differs between A and B", change.differences, differences)
        ],
    }


def document(change: CampaignChange) -> dict[str, Any]:
    """The comparison as JSON (docs/compare.md): unknown values are null, changes are shares, times are in ms."""
    return {
        "format": FORMAT,
        "outcome": WORSE if change.is_worse else NO_REGRESSION,
        "worse_than": change.worse_than,
        "canary_allowance": change.allowance,
        "significant_p": change.hypotheses.significant_p,
        "confidence": change.hypotheses.confidence,
        **{
            name: {"name": campaign.name, "begun_at": campaign.document.begun_at, "valid_runs": len(campaign.valid)}
            for name, campaign in (("a", change.a), ("b", change.b))
        },
        "over_sites": _rows(change.over_sites),
        "sites": _rows(change.sites),
        "contrasts": _rows(change.contrasts),
        "canaries": _rows(change.canaries),
        "differences": _rows(change.differences),
        "unmatched": list(change.unmatched),
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
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
        template = environment(new).get_template("changes.html.j2")
        html = template.render(
            **page_basics(change.b.document), tables=page_tables, a=change.a, b=change.b, sentences=sentences(change)
        )
        (new / INDEX).write_text(html)
        write_json(new / JSON, document(change))
    give_to_caller(into)
    return into
