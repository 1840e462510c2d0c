"""Several campaigns combined, for readers: sentences, tables, the forest plot, the page, and JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.combining import AGREE, DISAGREE, Combination
from analysis.figures.forest import draw_combined
from analysis.report.changes import plain_rows
from analysis.report.page import environment, page_basics
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.report.write import write_tables
from analysis.runs import records
from analysis.statistics.outcomes import EQUIVALENT, NOT_DECIDED
from analysis.text import label, level, listing, number, p_value, pair_label, percent, percent_interval, plural, share
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller

# The version of the JSON document (docs/contributors/json.md); it grows if a key changes its meaning or is removed.
FORMAT = 1
INDEX, JSON = "index.html", "combine.json"
OPEN = "are neither shown to agree nor to disagree"
CONTRAST: dict[Any, Any] = {
    ("compared", "reference"): ("protocols", pair_label),
    "network": ("network", label),
    "metric": ("metric", label),
}
GAIN: dict[Any, Any] = {"gain": ("change", percent), ("gain_low", "gain_high"): ("interval", percent_interval)}


def summary(combination: Combination) -> list[str]:
    """On how many contrasts the campaigns agree, and the facts that limit what is known."""
    words = {AGREE: AGREE, DISAGREE: DISAGREE, NOT_DECIDED: OPEN}
    numbers = combination.contrasts["agreement"].value_counts()
    parts = [f"{words[one]} on {plural('contrast', numbers[one])}" for one in words if one in numbers]
    texts = [f"The campaigns {listing(parts)}."]
    if (combination.contrasts["campaigns"] == 2).any():
        texts.append(
            "Two campaigns hardly show how campaigns differ (1 degree of freedom), so their combined interval is long: "
            "combine three or more."
        )
    return texts + [f"{text[:1].upper()}{text[1:]}." for text in combination.notes]


def sentences(combination: Combination) -> list[str]:
    """For each contrast its verdict, and whether the campaigns agree."""
    return [_sentence(row) for row in records(combination.contrasts)]


def _sentence(row: Mapping[str, Any]) -> str:
    verdict, compared, reference = row["verdict"], label(row["compared"]), label(row["reference"])
    texts = {
        EQUIVALENT: f"{compared} and {reference} are equivalent",
        NOT_DECIDED: f"it is not decided whether {compared} is faster than {reference}",
    }
    outcome = texts.get(verdict, f"{compared} is {verdict} than {reference}")
    agreements = {
        AGREE: f"agree: any two differ by less than {share(row['margin'])}",
        DISAGREE: f"do not agree: their true changes have a standard deviation of {share(row['tau'])}",
    }
    agreement = agreements.get(row["agreement"], OPEN)
    return (
        f"{label(row['network'])}, {label(row['metric'])}: {outcome} ({percent(row['gain'])}, "
        f"{percent_interval(row['gain_low'], row['gain_high'])}); the {row['campaigns']} campaigns {agreement}."
    )


def tables(combination: Combination) -> list[ReportTable]:
    """The tables of the page."""
    hypotheses, contrasts = combination.hypotheses, combination.contrasts
    texts = text_table(
        contrasts,
        {
            **CONTRAST,
            **GAIN,
            "verdict": "verdict",
            "campaigns": "campaigns",
            "tau": ("between campaigns", share),
            "i_squared": ("I\N{SUPERSCRIPT TWO}", share),
            ("q", "q_p_corrected"): ("Q (p)", lambda q, p: f"{number(q)} ({p_value(p)})"),
            "agreement": "campaigns agree",
        },
    )
    agree = {AGREE: "yes", DISAGREE: "no"}
    texts["campaigns agree"] = texts["campaigns agree"].map(lambda text: agree.get(text, text))
    gains = text_table(
        combination.gains, {**CONTRAST, "campaign": "campaign", **GAIN, "sites": "sites", "blocks": "blocks"}
    )
    note = (
        f"Negative is faster. Intervals hold with {level(hypotheses.confidence)}, each by itself. A verdict, and "
        f"whether campaigns agree, needs a p value below {level(hypotheses.significant_p)} after Bonferroni's "
        f"correction for {plural('contrast', len(contrasts))}. Between campaigns: the standard deviation of true "
        "changes."
    )
    differences = text_table(
        combination.differences, {"campaign": "campaign", "what": "what", "a": "first", "b": "this"}
    )
    return [
        ReportTable("combined_contrasts", "Combined changes", contrasts, texts, note),
        ReportTable("campaign_gains", "Changes of each campaign", combination.gains, gains, "Each over its own sites."),
        ReportTable("differences", "How campaigns differ from the first", combination.differences, differences),
    ]


def document(combination: Combination) -> dict[str, Any]:
    """The combination as JSON (docs/contributors/json.md): unknown values are null, changes are shares."""
    return {
        "format": FORMAT,
        "significant_p": combination.hypotheses.significant_p,
        "confidence": combination.hypotheses.confidence,
        "campaigns": [
            {"name": name, "begun_at": campaign.document.begun_at, "valid_runs": len(campaign.valid)}
            for name, campaign in combination.campaigns.items()
        ],
        "contrasts": plain_rows(combination.contrasts),
        "gains": plain_rows(combination.gains),
        "differences": plain_rows(combination.differences),
        "notes": list(combination.notes),
    }


def write(combination: Combination, into: Path) -> Path:
    """Write the page, the JSON, the tables and the figure into the folder `into`, and replace older ones; returns the
    folder."""
    figure = ReportFigure(
        "combined",
        "Changes of each campaign, and combined, with intervals. An arrow: the interval is longer than shown.",
        draw_combined,
        (combination.contrasts, combination.gains),
        " ".join(sentences(combination)),
    )
    section = Section("gains", "Changes", figures=(figure,), tables=tuple(tables(combination)))
    with replacing_folder(into, JSON) as new:
        for name in ("tables", "figures"):
            (new / name).mkdir()
        write_tables(section.tables, new / "tables")
        html = (
            environment({figure.name: figure.write(new / "figures")})
            .get_template("combined.html.j2")
            .render(
                **page_basics(next(iter(combination.campaigns.values())).document),
                campaigns=combination.campaigns,
                section=section,
                summary=summary(combination),
                sentences=sentences(combination),
            )
        )
        (new / INDEX).write_text(html)
        write_json(new / JSON, document(combination))
    give_to_caller(into)
    return into
