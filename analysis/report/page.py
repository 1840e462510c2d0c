"""The report's page: one HTML file that needs nothing beside it."""

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from analysis.figures.style import named
from analysis.films import Shot
from analysis.report import words
from analysis.report.findings import Findings
from analysis.report.plates import Plate
from analysis.report.section import Section
from analysis.report.views import View
from analysis.runs import METRICS, CampaignTable

HERE = Path(__file__).parent
# Long tables are folded together on the page.
FOLDED_ROWS = 40
# Significant digits of the numbers that the page's own table of all comparisons carries.
DIGITS = 4


@dataclass(frozen=True)
class PlayedFilm:
    """A film on the page: the run, and its WebM."""

    shot: Shot
    data: bytes


def page(
    found: Findings,
    plates: Iterable[Plate],
    views: Mapping[str, list[View]],
    films: Iterable[list[PlayedFilm]],
    missing: list[str],
    versions: Mapping[str, str],
    figures: Path,
    sections: Sequence[Section] = (),
) -> str:
    """The page of a campaign as HTML. `views`: section → its tables; `figures`: where the plates' PNG files lie;
    `missing`: what could not be shown, and why; `versions`: of what made the report; `sections`: of studies."""
    return (
        _environment(figures)
        .get_template("page.html.j2")
        .render(
            **_shared(found.campaign.document, plates, views, versions, sections),
            found=found,
            scope=words.scope(found),
            headlines=words.headlines(found),
            agreement=words.paper_agreement(found),
            warnings=words.warnings(found),
            films=list(films),
            missing=missing,
            explorer=Markup(explorer(found)),
            metrics=METRICS,
        )
    )


def study_page(
    name: str,
    campaign: CampaignTable | None,
    sections: Sequence[Section],
    plates: Iterable[Plate],
    views: Mapping[str, list[View]],
    versions: Mapping[str, str],
    figures: Path,
    documents: Mapping[str, Mapping[str, Any]],
) -> str:
    """The page of a folder that has studies alone, as HTML; `campaign`: its unfilmed campaign, if it has one;
    `documents`: by titles, what those that are no campaign were measured with."""
    document = campaign.document if campaign else {}
    shared = _shared(document, plates, views, versions, sections)
    template = _environment(figures).get_template("study.html.j2")
    return template.render(**shared, name=name, measured=campaign is not None, documents=documents)


def _environment(figures: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["picture"] = lambda plate: _data_url("image/png", (figures / f"{plate.name}.png").read_bytes())
    environment.filters["film"] = lambda film: _data_url("video/webm", film.data)
    environment.filters["named"] = named
    environment.filters["cells"] = cells
    environment.filters["inline"] = inline
    return environment


def _shared(
    document: Mapping[str, Any],
    plates: Iterable[Plate],
    views: Mapping[str, list[View]],
    versions: Mapping[str, str],
    sections: Sequence[Section],
) -> dict[str, Any]:
    """What the pages of campaigns and of studies both show."""
    by_section: dict[str, list[Plate]] = {}
    for plate in plates:
        by_section.setdefault(plate.section, []).append(plate)
    return {
        "plates": by_section,
        "views": {**views, **{section.name: list(section.views) for section in sections}},
        "sections": sections,
        "versions": versions,
        "told_versions": document.get("versions", {}),
        "machine": document.get("machine", {}),
        "settings": document.get("settings", {}),
        "browser": document.get("settings", {}).get("browser", {}),
        "begun_at": document.get("begun_at", ""),
        "folded_rows": FOLDED_ROWS,
        "css": Markup((HERE / "page.css").read_text()),
        "js": Markup((HERE / "page.js").read_text()),
    }


def inline(svg: str) -> Markup:
    """A drawing as a part of the page: without what may only stand at a file's beginning."""
    return Markup(svg[svg.index("<svg") :])


def cells(table: pd.DataFrame) -> list[list[str]]:
    """The rows of a table of texts."""
    return [[str(value) for value in row] for row in table.itertuples(index=False)]


def explorer(found: Findings) -> str:
    """All comparisons as JSON for the page's script: names once, then a row of places and numbers for each."""
    key = ["reference", "compared", "network", "site", "metric"]
    merged = found.gained.merge(found.contrasts, on=key, how="left")
    numbers = {
        "runs_reference": "runs, against", "runs_compared": "runs", "mean_reference": "mean, against [ms]",
        "mean_compared": "mean [ms]", "gain": "gain", "gain_low": "from", "gain_high": "to", "p": "ANOVA p",
        "welch_p": "Welch p", "block_p": "p within blocks",
        "mannwhitney_p": "Mann-Whitney p", "ks_p": "KS p", "cliffs_delta": "Cliff's delta",
        "shift_ms": "shift [ms]", "shift_low": "from [ms]", "shift_high": "to [ms]", "equivalence_p": "TOST p",
        "corrected_p": "corrected p",
    }  # fmt: skip
    pairs = [f"{named(pair.compared)} against {named(pair.reference)}" for pair in found.hypotheses.comparisons]
    pair_of = {(pair.reference, pair.compared): place for place, pair in enumerate(found.hypotheses.comparisons)}
    told = found.samples
    places = {
        "network": {name: place for place, name in enumerate(told.networks)},
        "site": {name: place for place, name in enumerate(told.sites)},
        "metric": {name: place for place, name in enumerate(told.metrics)},
    }
    columns: list[list[Any]] = [[pair_of[one] for one in zip(merged["reference"], merged["compared"], strict=True)]]
    columns += [[places[name][value] for value in merged[name]] for name in ("network", "metric", "site")]
    columns += [[_short(value) for value in merged[name].tolist()] for name in numbers]
    columns += [merged["finding"].tolist(), merged["note"].tolist()]
    document = {
        "pairs": pairs,
        "networks": [named(name) for name in told.networks],
        "metrics": [named(name) for name in told.metrics],
        "sites": told.sites,
        "headings": [*numbers.values(), "finding", "note"],
        "shares": [list(numbers).index(name) for name in ("gain", "gain_low", "gain_high")],
        "rows": list(zip(*columns, strict=True)),
    }
    # Inside <script>, no text may end it.
    return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")


def _short(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
