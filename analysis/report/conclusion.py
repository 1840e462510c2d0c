"""The answer of a campaign in a few plain sentences, which a command can end with."""

import math
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis.analyses import STAGES, begun
from analysis.answer import MOST_RUNS
from analysis.findings import Findings, Table
from analysis.report.answer_sentences import digits, ends
from analysis.report.first_screen import CONTRADICTED, doubts, further_runs, sentence
from analysis.report.sentences import HEADLINE, headline_rows
from analysis.report.variants import of_variants
from analysis.report.verdicts import AMONG, NOT_BY_PAGE, slow_loads
from analysis.report.warnings import POST_HOC
from analysis.runs import CampaignTable, plain_texts, records, rows_of
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, FASTER, NOT_DECIDED, SLOWER
from analysis.statistics.spending import LOOKS
from analysis.text import label, level, plural

ALL_ANALYSES = ChainMap(*map(dict, STAGES))


@dataclass(frozen=True, eq=False)
class LazyFindings(Findings):
    """Findings that compute each table on demand: an answer needs only a fraction of the time of all tables."""

    store: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: Table) -> pd.DataFrame:
        """The table of the analysis `name`."""
        if name not in self.store:
            with plain_texts():
                self.store[name] = ALL_ANALYSES[name](self)
        return self.store[name]


def findings_of(campaign: CampaignTable, declaration: Hypotheses) -> LazyFindings:
    """The findings on `campaign` under the hypotheses of `declaration`. Raises EyelevelError if no run is valid."""
    one = begun(campaign, declaration)
    return LazyFindings(one.campaign, one.samples, one.hypotheses, one.declared)


@dataclass(frozen=True)
class Conclusion:
    """The `sentences`: one for each variant of a site, and for each declared pair; and what must be known of all.

    `runs`: the number of runs of each setting with which all that needs at most MOST_RUNS further ones is probably
    decided, with LOOKS[0] where that is unknown; None if there is nothing of this kind. `waterfall`: the variables of
    `make waterfall` for two loads of the largest difference, preferably a decided one; empty without any.
    """

    sentences: tuple[str, ...]
    runs: int | None
    waterfall: Mapping[str, str]


def conclusion(findings: Findings) -> Conclusion:
    """The conclusion of a campaign, in the metric of the report's headlines."""
    table = headline_rows(findings)
    sentences = of_variants(findings)
    for names, rows in table.groupby(["reference", "compared"], sort=False):
        pair = Pair(*names)
        first, *others = contrasts = records(rows)
        texts = [sentence(findings, pair, contrasts) if others else _of_one(findings, pair, first)]
        texts += [f"This may not be due to the protocols: {details}." for details in doubts(findings, pair).values()]
        texts += [CONTRADICTED] if any(slow_loads(findings, row) for row in contrasts) else []
        sentences.append(" ".join(texts))
    if findings.declared.origin.is_post_hoc:
        sentences.append(POST_HOC)
    if "simulated" in findings.campaign.document.further:
        sentences.append("This campaign is simulated: nothing in it was measured.")
    measured = [row for row in records(table) if row["blocks"]]
    further = [further_runs(findings, row) for row in measured if row["verdict"] == NOT_DECIDED]
    # With too few runs for a forecast, the first further step is to the first look.
    further = [LOOKS[0] if math.isnan(number) else number for number in further]
    further = [number for number in further if number <= MOST_RUNS]
    runs = None
    if further:
        last = int(findings.campaign.runs["run"].max())
        runs = max(findings.campaign.settings.runs or 0, last + math.ceil(max(further)))
    largest = min(measured, key=lambda row: (row["verdict"] == NOT_DECIDED, -abs(row["gain"])), default=None)
    return Conclusion(tuple(sentences), runs, _waterfall(findings, largest) if largest else {})


def _waterfall(findings: Findings, row: Mapping[str, Any]) -> dict[str, str]:
    """The variables of `make waterfall` for two loads of the contrast of `row`: of the first site that has both."""
    loads = rows_of(findings.campaign.valid, network=row["network"])
    protocols = loads.groupby("site", sort=False)["protocol"].agg(set)
    pair = (row["reference"], row["compared"])
    site = next(site for site, names in protocols.items() if names.issuperset(pair))
    return {"SITE": str(site), "NET": row["network"], "PROTO": ",".join(pair)}


def _of_one(findings: Findings, pair: Pair, row: Mapping[str, Any]) -> str:
    """The sentence on a pair that has one contrast, `row`."""
    reference, compared, on = label(pair.reference), label(pair.compared), f"on {label(row['network'])}"
    if not row["blocks"]:
        return f"There is no answer: no loads of {compared} and {reference} {on} can be compared."
    sites = findings.samples.sites
    pages = sites[0] if len(sites) == 1 else f"the {row['sites']} sites on average"
    show, showed = ("show", "showed") if row["metric"] == HEADLINE else ("load", "loaded")
    interval = ends(row["gain_low"], row["gain_high"])
    if interval and row["verdict"] == NOT_DECIDED and row["gain_low"] * row["gain_high"] > 0:
        interval += " sooner" if row["gain_high"] < 0 else " later"
    facts = [
        "Speed Index" if row["metric"] == HEADLINE else label(row["metric"]),
        f"{level(findings.declared.confidence)} interval {interval}" if interval else "too few for an interval",
        f"{plural('load', row['blocks'])} of each" if len(sites) == 1 else plural("pair", row["blocks"]) + " of loads",
    ]
    known = f"({', '.join(facts)})"
    among = AMONG if row["word"].endswith(AMONG) else ""
    if row["verdict"] in (FASTER, SLOWER):
        size = f"{100 * abs(row['gain']):.{digits(row['gain_low'], row['gain_high'])}f} %"
        direction = "sooner" if row["verdict"] == FASTER else "later"
        return f"{compared} {showed} {pages} {size} {direction} than {reference} {on}{among} {known}."
    if row["verdict"] != NOT_DECIDED:
        bound, word = f"less than {100 * row['margin']:.2g} % apart", row["word"].removesuffix(AMONG)
        by_page = {EQUAL_ON_AVERAGE: ", but perhaps not page by page", NOT_BY_PAGE: ", but not page by page"}
        equal = f"about equally soon{by_page.get(word, '')}"
        return f"{compared} and {reference} {showed} {pages} {equal} {on}{among}: {bound} {known}."
    further = further_runs(findings, row)
    number = f"about {further:.0f}" if further <= MOST_RUNS else f"more than {MOST_RUNS}"
    needed = f"if the difference is as large as measured, {number} further loads of each would probably decide it"
    decides = "" if math.isnan(further) else f"; {needed}"
    return f"It is not decided whether {compared} {show}s {pages} sooner than {reference} {on} {known}{decides}."
