"""The comparison of two settings for readers: sentences, tables, the page, a summary in Markdown, and JSON for
continuous integration."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.ab import SettingsChange, Side
from analysis.campaign_changes import LOST, SLOW, SLOW_FACTOR
from analysis.hypotheses import origin_sentence
from analysis.report.answer import cautions
from analysis.report.changes import FORMS, NO_REGRESSION, SHARES, WORSE, of_loads, plain_rows
from analysis.report.lines import Line, grouped
from analysis.report.page import VERDICT_CLASSES, cells, environment, page_basics, styles
from analysis.report.section import ReportTable, text_table
from analysis.report.sentences import HEADLINE
from analysis.report.write import write_tables
from analysis.runs import records
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER, VERDICTS
from analysis.statistics.planning import POWER
from analysis.stopping import planned_runs
from analysis.text import NOTHING, label, level, listing, p_value, percent, percent_interval, plural, whole_number
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from dataset.settings import CampaignSettings

# The version of the JSON document (docs/contributors/json.md); it grows if a key changes its meaning or is removed.
FORMAT = 1
# Larger slowdowns (shares) say only that there were too few blocks.
MOST_DETECTABLE = 10.0
# The settings of loads, for every page; what lacks one has its usual value.
LOADING = (*CampaignSettings().of_loads(), "lanes", "at_once", "server_rtts")
FOLDER, INDEX, JSON, SUMMARY = "ab", "index.html", "ab.json", "ab.md"


def result(change: SettingsChange) -> str:
    """The result in a sentence: what makes B worse, else the verdicts."""
    contrasts, shares = change.answerable, change.shares
    if change.is_worse:
        worse = contrasts[contrasts["worse"]]
        texts = [f"slower {_places(worse)}"] if len(worse) else []
        texts += [
            f"more {row['kind']} loads on {label(row['network'])} ({of_loads(row)})"
            for row in records(shares[shares["worse"]])
        ]
        return f"B is worse than A: {listing(texts)}"
    by_verdict = {name: contrasts[contrasts["verdict"] == name] for name in VERDICTS}
    phrases = {
        name: f"{name} {_places(rows)}" for name, rows in by_verdict.items() if len(rows) and name != NOT_DECIDED
    }
    if undecided := len(by_verdict[NOT_DECIDED]):
        phrases[NOT_DECIDED] = f"{undecided} of {plural('comparison', len(contrasts))} not decided"
    if FASTER in phrases and SLOWER not in phrases:
        del phrases[FASTER]
        return ", ".join([f"B is faster than A {_places(by_verdict[FASTER])}", *phrases.values()])
    if [*phrases] == [EQUIVALENT]:
        return f"A and B are equivalent {_places(contrasts)}"
    return f"B is not shown to be worse than A: {', '.join(phrases.values())}"


def _places(rows: pd.DataFrame) -> str:
    """The changes of `rows` by network."""
    return listing(
        [
            f"on {label(str(network))} "
            f"({', '.join(f'{label(row.metric)} {percent(row.change)}' for row in of_network.itertuples())})"
            for network, of_network in rows.groupby("network", sort=False)
        ]
    )


def details(change: SettingsChange) -> list[str]:
    """The facts behind the result: its basis, other loads, and what would have been found."""
    contrasts = change.contrasts
    headline = contrasts[contrasts["metric"].eq(HEADLINE) & contrasts["blocks"].gt(0)]
    runs = change.both.runs
    planned = planned_runs(change.campaign)
    of_each = f", of {planned[-1]} planned for each site and network" if planned else ""
    blocks = [f"{row.blocks} on {label(row.network)}" for row in headline.itertuples()]
    texts = [f"Pairs of loads that count: {listing(blocks) if blocks else 'none'}{of_each}."]
    if excluded := int((~runs["valid"]).sum()):
        texts.append(f"Rejected: {excluded} of {plural('attempt', len(runs))}.")
    texts += [_counted(change, kind) for kind in (SLOW, LOST)]
    detectable = [
        f"{percent(row.detectable)} on {label(row.network)}"
        for row in headline.itertuples()
        if row.detectable < MOST_DETECTABLE
    ]
    if detectable:
        texts.append(
            f"A slowdown that would be shown with a probability of {level(POWER)} ({label(HEADLINE)}): "
            f"{listing(detectable)}."
        )
    return texts


def _counted(change: SettingsChange, kind: str) -> str:
    rows = change.shares[change.shares["kind"] == kind]
    if rows.empty:
        return f"{kind.capitalize()} loads could not be counted in both."
    return f"{kind.capitalize()} loads: {of_loads(rows.select_dtypes('number').sum())}."


def caveats(change: SettingsChange) -> list[str]:
    """Sentences that a reader must know before trusting the result."""
    slower = "slower, and not shown to be equivalent"
    if change.worse_than is not None:
        slower = f"slower by more than {level(change.worse_than)} (WORSE_THAN)"
    return [
        *cautions(change.both),
        f"Worse: {slower}; or more slow or lost loads. A load is slow if one "
        f"of its times is more than {SLOW_FACTOR:g} times the median of its site; it is lost if it failed, never ended "
        "or showed another page, even if it was repeated.",
        f"At most {level(change.false_alarm_share)} of comparisons of equal settings say that B is worse.",
        origin_sentence(change.hypotheses.origin),
    ]


def tables(change: SettingsChange) -> list[ReportTable]:
    """The tables of the page."""
    confidence = level(change.hypotheses.confidence)
    place = {"network": ("network", label), "metric": ("metric", label)}
    contrasts = text_table(
        change.contrasts,
        {
            **place,
            "sites": "sites",
            "blocks": "pairs",
            "change": ("change", percent),
            ("low", "high"): ("interval", percent_interval),
            "p_corrected": ("p corrected", p_value),
            "verdict": "verdict",
            "worse": FORMS["worse"],
            "margin": ("margin", percent),
            "detectable": ("detectable", lambda value: percent(value) if value < MOST_DETECTABLE else NOTHING),
        },
    )
    forms = {name: SHARES[name] for name in SHARES if name != "protocol"}
    shares = text_table(change.shares, {"kind": "loads", **forms})
    reasons = {"kind": "kind", "gate": "gate", "excluded": ("attempts", whole_number), "example": "example"}
    excluded = text_table(change.excluded, {"network": ("network", label), "setting": "setting", **reasons})
    return [
        ReportTable(
            "ab_contrasts",
            "B against A",
            change.contrasts,
            contrasts,
            f"Change from A to B, from ratios within pairs; negative is faster. Intervals hold with {confidence}. p by "
            "Bonferroni's method over this table. A change within the margin is equivalent. Detectable: the slowdown "
            f"that would be called worse with a probability of {level(POWER)}.",
        ),
        ReportTable(
            "slow_and_lost",
            "Slow and lost loads",
            change.shares,
            shares,
            "Change of the share from A to B, in percentage points. p of no larger share: exact, within sites, by "
            "Holm's method over this table; - where no outcome could have been significant.",
        ),
        ReportTable("ab_excluded", "Attempts that do not count", change.excluded, excluded),
    ]


def document(change: SettingsChange) -> dict[str, Any]:
    """The comparison as JSON (docs/contributors/json.md): unknown values are null, changes are shares."""
    declared, campaign = change.hypotheses, change.campaign
    planned = planned_runs(campaign)
    return {
        "format": FORMAT,
        "campaign": campaign.name,
        "begun_at": campaign.document.begun_at,
        "outcome": WORSE if change.is_worse else NO_REGRESSION,
        "decided": change.is_decided,
        "result": result(change),
        "worse_than": change.worse_than,
        "false_alarm_share": change.false_alarm_share,
        "significant_p": declared.significant_p,
        "confidence": declared.confidence,
        "power": POWER,
        "planned_runs": planned[-1] if planned else None,
        "a": _side(change, change.a, "A"),
        "b": _side(change, change.b, "B"),
        "networks": campaign.settings.networks,
        "loading": {name: value for name, value in campaign.settings.content().items() if name in LOADING},
        "sites": list(change.both.settings.sites),
        "versions": campaign.document.versions,
        "machine": campaign.document.machine,
        "contrasts": plain_rows(change.contrasts),
        "shares": plain_rows(change.shares),
        "excluded": plain_rows(change.excluded),
    }


def _side(change: SettingsChange, side: Side, name: str) -> dict[str, Any]:
    settings, runs = change.campaign.settings, change.both.runs
    of_side = runs[runs["protocol"] == name]
    return {
        "setting": side.text,
        "protocol": side.protocol,
        "protocol_settings": settings.protocols.get(side.protocol, {}),
        "browser": side.browser,
        "browser_settings": settings.settings_of_browsers.get(side.browser, {}),
        "sites": {site: settings.sites.get(site, {}).get("sha256") for site in side.sites},
        "attempts": len(of_side),
        "valid_runs": int(of_side["valid"].sum()),
    }


def summary(change: SettingsChange) -> str:
    """The comparison in Markdown, for a pull request."""
    contrasts, shares, excluded = (table.texts for table in tables(change))
    versions = ", ".join(f"{name} {version}" for name, version in change.campaign.document.versions.items())
    parts = [
        f"### {_plain(result(change))}",
        f"A: {_code(change.a.text)}  \nB: {_code(change.b.text)}",
        _markdown(contrasts),
        "\n".join(f"- {_plain(text)}" for text in details(change)),
        *(
            f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
            for title, text in (
                ("Slow and lost loads", _markdown(shares)),
                ("Attempts that do not count", _markdown(excluded)),
                ("Keep in mind", "\n".join(f"- {_plain(text)}" for text in caveats(change))),
                ("Versions", _plain(versions)),
            )
            if text
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown(table: pd.DataFrame) -> str:
    """`table` in Markdown; empty without rows."""
    if table.empty:
        return ""
    rows = [list(table.columns), ["---"] * len(table.columns), *cells(table)]
    return "\n".join(f"| {' | '.join(_plain(text) for text in row)} |" for row in rows)


def _plain(text: str) -> str:
    """`text` as Markdown that shows it as it is, in one line: names and reasons may be of strangers."""
    for letter in "\\`*_[]<>|#":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())


def _code(text: str) -> str:
    return f"`{text.replace('`', ' ')}`"


def _lines(change: SettingsChange) -> list[Line]:
    is_measured = change.contrasts["blocks"].groupby(change.contrasts["metric"]).transform("any")
    rows = change.contrasts[is_measured].sort_values("metric", key=lambda names: names != HEADLINE, kind="stable")
    return [
        Line(
            row["metric"],
            row["network"],
            "B against A",
            "later" if row["worse"] else VERDICT_CLASSES[row["verdict"]],
            WORSE if row["worse"] else row["verdict"],
            row["change"],
            row["low"],
            row["high"],
            row["margin"],
        )
        for row in records(rows)
    ]


def write(change: SettingsChange) -> Path:
    """Write the page, the JSON, the summary and the tables into the folder `ab` of the campaign, and replace older
    ones; returns the folder."""
    campaign, page_tables = change.campaign, tables(change)
    into = campaign.folder / FOLDER
    with replacing_folder(into, JSON) as new:
        (new / "tables").mkdir()
        write_tables(page_tables, new / "tables")
        html = (
            environment({})
            .get_template("ab.html.j2")
            .render(
                **page_basics(campaign.document) | {"css": styles("page.css", "answer.css")},
                tables=page_tables,
                a=change.a,
                b=change.b,
                name=campaign.name,
                result=result(change),
                details=details(change),
                groups=grouped(_lines(change), "settings", "B faster"),
                confidence=level(change.hypotheses.confidence),
                warnings=caveats(change),
            )
        )
        (new / INDEX).write_text(html)
        (new / SUMMARY).write_text(summary(change))
        write_json(new / JSON, document(change))
    give_to_caller(into)
    return into
