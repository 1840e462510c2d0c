"""Everything that a campaign or a study says, as one page, figures and tables."""

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path
from typing import Any

from analysis import films, hypotheses
from analysis.films import Strip
from analysis.report import views
from analysis.report.findings import Findings, find
from analysis.report.latex import latex
from analysis.report.page import PlayedFilm, page, study_page
from analysis.report.plates import Plate, plates
from analysis.report.section import Section
from analysis.report.views import View
from analysis.runs import CampaignTable, load
from base.errors import EyelevelError
from base.files import read_json, replacing_folder
from base.ownership import give_to_caller

REPORT = "report"
RUNS = "runs.csv"
LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "pyarrow")
# Says of a campaign's folder what it has to say, or that there is nothing of it.
Study = Callable[[Path], Section | None]
# All films of a page together; what does not fit any more is told.
FILM_BYTES = 16_000_000


def write_report(
    folder: Path, studies: Sequence[Study], declared: hypotheses.Hypotheses, site: str | None = None
) -> Path:
    """Write the report of what is in `folder` into it, in place of an older one; returns where.

    `site`: whose films to show, instead of the site with the largest disagreement. Raises EyelevelError.
    """
    campaign, studied = contents(folder, studies)
    into = folder / REPORT
    told = {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
    with workers() as apart, replacing_folder(into) as new:
        of_studies = [plate for section in studied for plate in section.plates]
        figures = new / "figures"
        if campaign and campaign.filmed:
            found = find(campaign, declared, apart)
            strips, played, missing = shown_films(found, site, new)
            drawn = draw([*plates(found, strips), *of_studies], figures, apart)
            views_of = tables(found)
            html = page(found, drawn, views_of, played, missing, told, figures, studied)
            write_comparisons(found, new)
        else:
            drawn = draw(of_studies, figures, apart)
            views_of = study_tables(campaign) if campaign else {}
            measured_with = documents(folder, studied)
            html = study_page(folder.resolve().name, campaign, studied, drawn, views_of, told, figures, measured_with)
        for drawing in (one for section in studied for one in section.drawings):
            (figures / f"{drawing.name}.svg").write_text(drawing.svg)
        shown = [view for group in views_of.values() for view in group]
        write_tables([*shown, *(view for section in studied for view in section.views)], new)
        if campaign:
            campaign.runs.to_parquet(new / "runs.parquet", index=False)
        (new / "index.html").write_text(html)
    give_to_caller(into)
    return into


def write_figures(
    folder: Path, studies: Sequence[Study], declared: hypotheses.Hypotheses, site: str | None = None
) -> Path:
    """Write the figures of what is in `folder` alone, to where its report has them; returns where."""
    campaign, studied = contents(folder, studies)
    into = folder / REPORT / "figures"
    with workers() as apart, replacing_folder(into) as new:
        made = [plate for section in studied for plate in section.plates]
        if campaign and campaign.filmed:
            found = find(campaign, declared, apart)
            strips, _, _ = shown_films(found, site, None)
            made = [*plates(found, strips), *made]
        draw(made, new, apart)
        for drawing in (one for section in studied for one in section.drawings):
            (new / f"{drawing.name}.svg").write_text(drawing.svg)
    give_to_caller(into.parent)
    return into


def contents(folder: Path, studies: Sequence[Study]) -> tuple[CampaignTable | None, list[Section]]:
    """The campaign in `folder`, if there is one, and the sections of its studies. Raises EyelevelError."""
    studied = [section for study in studies if (section := study(folder)) is not None]
    if studied and not (folder / RUNS).exists():
        return None, studied
    return load(folder), studied


def documents(folder: Path, sections: Sequence[Section]) -> dict[str, dict[str, Any]]:
    """What studies that are no campaigns of their own were measured with: the title of each of `sections` → the
    settings, versions and machine that `<name>/<name>.json` tells. Raises EyelevelError when one is broken."""
    by_title = {}
    for section in sections:
        path = folder / section.name / f"{section.name}.json"
        if path.exists():
            by_title[section.title] = read_json(path)
    return by_title


@contextmanager
def workers() -> Iterator[Executor]:
    """As many further processes as there are cores; gone with the block."""
    # Forked, they have all libraries loaded.
    with ProcessPoolExecutor(len(sched_getaffinity(0)), mp_context=get_context("fork")) as pool:
        yield pool


def draw(made: list[Plate], folder: Path, apart: Executor) -> list[Plate]:
    """Draw all plates into `folder`; returns them."""
    folder.mkdir(exist_ok=True)
    for drawn in [apart.submit(plate.write, folder) for plate in made]:
        drawn.result()
    return made


def shown_films(
    found: Findings, site: str | None, folder: Path | None
) -> tuple[list[list[Strip]], list[list[PlayedFilm]], list[str]]:
    """Film strips, films and what is missing of them: for each network, the first family pair with films, on `site` or
    where Speed Index and PLT disagree most. `folder`: where films are put together; None for strips alone."""
    if site and site not in found.samples.sites:
        raise EyelevelError(f"the site {site} is not in the campaign; it has {', '.join(found.samples.sites)}")
    strips: list[list[Strip]] = []
    played: list[list[PlayedFilm]] = []
    missing, left = [], FILM_BYTES
    for network in found.samples.networks:
        shots = _shots(found, network, site)
        if not shots:
            missing.append(f"There are no films of {site or 'any site'} behind {network} for any declared pair.")
            continue
        try:
            strips.append(films.strips(shots))
            if folder is None:
                continue
            copies = []
            for shot in shots:
                copy = folder / "film.webm"
                films.playable(shot, copy)
                copies.append(PlayedFilm(shot, copy.read_bytes()))
                copy.unlink()
        except EyelevelError as error:
            missing.append(str(error))
            continue
        left -= sum(len(film.data) for film in copies)
        if left < 0:
            missing.append(f"The films of {shots[0].site} behind {network} are too large for this page.")
        else:
            played.append(copies)
    return strips, played, missing


def _shots(found: Findings, network: str, site: str | None) -> list[films.Shot]:
    campaign = found.campaign
    for pair in found.hypotheses.family:
        for name in [site] if site else films.disagreement(found.gained, network, pair):
            both = [
                films.typical(campaign.runs, campaign.folder, name, network, protocol)
                for protocol in (pair.reference, pair.compared)
            ]
            shots = [shot for shot in both if shot]
            if len(shots) == len(both):
                return shots
    return []


def tables(found: Findings) -> dict[str, list[View]]:
    """Section of the page → its tables."""
    return {
        "measured": [
            views.protocols(found.campaign, found.samples.protocols),
            views.networks(found.campaign, found.samples.networks),
            views.validation(found.campaign),
            views.settings_means(found),
        ],
        "sites": [views.sites(found)] if len(found.sites) else [],
        "paper": [views.mean_gains(found), views.table3(found)] if len(found.gained) else [],
        "by_site": [views.gains_by_site(found, pair) for pair in found.hypotheses.comparisons],
        "beside": [views.beside_paper(found)],
        "beyond": [views.over_sites(found), views.findings_counted(found)] if len(found.contrasts) else [],
        "power": [views.power(found), views.stopping(found)],
        "diagnostics": views.diagnostics_of(found),
        "within": [views.unusual(found)] if len(found.contrasts) else [],
        "exclusions": [views.excluded_attempts(found.campaign)],
    }


def study_tables(campaign: CampaignTable) -> dict[str, list[View]]:
    """The same of an unfilmed campaign, whose results are told by its study."""
    measured = [
        replace(views.protocols(campaign, campaign.protocols), title="Protocol settings"),
        replace(views.networks(campaign, campaign.networks), title="Networks"),
        views.validation(campaign),
    ]
    return {"measured": measured, "exclusions": [views.excluded_attempts(campaign)]}


def write_tables(made: list[View], folder: Path) -> None:
    """Each table as CSV and LaTeX."""
    into = folder / "tables"
    into.mkdir(exist_ok=True)
    for view in made:
        view.data.to_csv(into / f"{view.name}.csv", index=False)
        (into / f"{view.name}.tex").write_text(latex(view))


def write_comparisons(found: Findings, folder: Path) -> None:
    """All comparisons of a campaign as CSV."""
    key = ["reference", "compared", "network", "site", "metric"]
    comparisons = found.gained.merge(found.contrasts, on=key, how="left") if len(found.contrasts) else found.gained
    into = folder / "tables"
    into.mkdir(exist_ok=True)
    comparisons.to_csv(into / "comparisons.csv", index=False)
