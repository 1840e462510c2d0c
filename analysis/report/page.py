"""The report's pages: HTML files, each of which needs no other files."""

import io
import platform
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from analysis.hypotheses import origin_sentence
from analysis.report.conditions import lane_facts
from analysis.report.run_files import Links
from analysis.report.section import Section, data_url
from analysis.report.warnings import titled
from analysis.runs import CampaignTable
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import label, level, moment, plural, unit
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
# The CSS classes of verdicts (answer.css).
VERDICT_CLASSES = {
    FASTER: "sooner",
    SLOWER: "later",
    EQUIVALENT: "alike",
    EQUAL_ON_AVERAGE: "alike",
    NOT_DECIDED: "open",
}
# Tables with more columns are printed on pages of their own, in landscape.
BROAD_COLUMNS = 12
# The libraries that compute and draw a report.
LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "pyarrow")


def study_page(
    campaign: CampaignTable,
    sections: Sequence[Section],
    studies: Sequence[Section],
    pictures: Mapping[str, str],
    links: Links,
) -> str:
    """The page of a study's campaign, or of a campaign without films, as HTML: first the sections of `studies`, which
    have its results, then its own `sections`. `pictures`: name of a figure → its URL."""
    template = environment(pictures, links).get_template("study.html.j2")
    return template.render(
        **page_basics(campaign.document),
        name=campaign.name,
        identity=identity(campaign),
        sections=sections,
        studies=studies,
        filmed=campaign.settings.filmed,
        run_files=links.table(campaign),
    )


def identity(campaign: CampaignTable) -> str:
    """The campaign in a line: its name, date, commit and runs."""
    document, runs = campaign.document, campaign.runs
    commit = document.machine.get("testbed")
    parts = [
        f"Campaign {campaign.name}",
        *([f"begun on {moment(document.begun_at)}"] if document.begun_at else []),
        *([f"Eyelevel commit {commit}"] if commit else []),
        f"{plural('run', int(runs['valid'].sum()))} that count",
    ]
    return ", ".join(parts) + "."


def environment(pictures: Mapping[str, str], links: Links | None = None) -> jinja2.Environment:
    """The environment in which the templates of this folder are rendered. `pictures`: name of a figure → its URL;
    `links` makes the links to files of runs. Without `links`, a page has no such links."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {
        "picture": lambda figure: Markup(pictures[figure.name]),
        "film": partial(data_url, "video/webm"),
        "label": label,
        "unit": unit,
        "cells": cells,
        "moment": moment,
        "level": level,
        "origin": origin_sentence,
        "inline": inline,
        "titled": titled,
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
        "browsers": document.settings.settings_of_browsers,
        "begun_at": document.begun_at,
        "open_tables": OPEN_TABLES,
        "broad_columns": BROAD_COLUMNS,
        "css": styles("page.css"),
        "js": Markup((HERE / "page.js").read_text()),
    }


def styles(*names: str) -> Markup:
    """The style sheets of these names."""
    return Markup("").join(Markup((HERE / name).read_text()) for name in names)


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
    return data_url("image/jpeg", data.getvalue())
