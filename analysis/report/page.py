"""The report's page: one HTML file that needs no other files."""

import base64
import io
import platform
from collections.abc import Sequence, Set
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from analysis.balance import place_test
from analysis.findings import Findings
from analysis.hypotheses import origin_sentence
from analysis.report.conditions import lane_facts
from analysis.report.run_files import Links
from analysis.report.section import Section
from analysis.report.sentences import scope
from analysis.report.warnings import of_balance
from analysis.runs import CampaignTable
from analysis.text import label, level, moment, unit
from dataset.table import CampaignDocument

HERE = Path(__file__).parent
# Tables that are unfolded on the page, in any section and of any length.
OPEN_TABLES = frozenset(
    (
        "milestones",
        "campaign_changes",
        "slow_and_lost",
        "confirmatory",
        "success",
        "mean_gains",
        "claims",
        "table1_protocols",
        "table2_networks",
    )
)
# Tables with more columns are printed on pages of their own, in landscape.
BROAD_COLUMNS = 12
# The libraries that compute and draw a report.
LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "pyarrow")


def campaign_page(
    findings: Findings,
    sections: Sequence[Section],
    studies: Sequence[Section],
    families: Set[str],
    figures: Path,
    links: Links,
) -> str:
    """The page of a campaign as HTML: its `sections` in their order, then the sections of `studies`.

    `families`: the names of tables that have a part on the declared hypotheses; `figures`: the folder of the PNG files;
    `links` makes the links to files of runs.
    """
    template = environment(figures, links).get_template("page.html.j2")
    return template.render(
        **page_basics(findings.campaign.document),
        findings=findings,
        scope=scope(findings),
        sections=sections,
        studies=studies,
        is_balanced=not of_balance(findings["pair_balance"], place_test(findings.campaign)),
        families=families,
    )


def study_page(
    campaign: CampaignTable, sections: Sequence[Section], studies: Sequence[Section], figures: Path, links: Links
) -> str:
    """The page of a study's campaign, or of a campaign without films, as HTML: first the sections of `studies`, which
    have its results, then its own `sections`."""
    template = environment(figures, links).get_template("study.html.j2")
    return template.render(
        **page_basics(campaign.document),
        name=campaign.name,
        sections=sections,
        studies=studies,
        filmed=campaign.settings.filmed,
        run_files=links.table(campaign),
    )


def environment(figures: Path, links: Links | None = None) -> jinja2.Environment:
    """The environment in which the templates of this folder are rendered. `figures` is the folder of the PNG files;
    `links` makes the links to files of runs. Without `links`, a page has no such links."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {
        "picture": lambda figure: _data_url("image/png", (figures / f"{figure.name}.png").read_bytes()),
        "film": partial(_data_url, "video/webm"),
        "label": label,
        "unit": unit,
        "cells": cells,
        "moment": moment,
        "level": level,
        "origin": origin_sentence,
        "inline": inline,
        "links": links or (lambda _: []),
    }
    return templates


def page_basics(document: CampaignDocument) -> dict[str, Any]:
    """The values that all pages on campaigns show."""
    return {
        "versions": {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "campaign_versions": document.versions,
        "machine": {**document.machine, **lane_facts(document)},
        "settings": document.settings,
        "browsers": {document.settings.first_browser: document.settings.browser, **document.settings.further_browsers},
        "begun_at": document.begun_at,
        "open_tables": OPEN_TABLES,
        "broad_columns": BROAD_COLUMNS,
        "css": Markup((HERE / "page.css").read_text()),
        "js": Markup((HERE / "page.js").read_text()),
    }


def inline(svg: str) -> Markup:
    """A drawing as a part of the page, without the XML declaration, which is only allowed in a file."""
    return Markup(svg[svg.index("<svg") :])


def cells(table: pd.DataFrame) -> list[list[str]]:
    """The rows of a table of texts."""
    return [[str(value) for value in row] for row in table.itertuples(index=False)]


def jpeg(pixels: NDArray[np.uint8], width: int, quality: int) -> str:
    """A picture of at most this `width` as JPEG, as a data URL."""
    # Most pages have no such pictures.
    from PIL import Image

    image, data = Image.fromarray(pixels), io.BytesIO()
    image.thumbnail((width, width))
    image.save(data, "JPEG", quality=quality)
    return _data_url("image/jpeg", data.getvalue())


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
