"""`python -m analysis.report`: everything that a campaign says, as one page, figures and tables."""

import platform
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path

import click

from analysis import films, hypotheses
from analysis.films import Strip
from analysis.report import views
from analysis.report.findings import Findings, find
from analysis.report.latex import latex
from analysis.report.page import PlayedFilm, page
from analysis.report.plates import Plate, plates
from analysis.report.views import View
from analysis.runs import CampaignTable, load
from eyelevel.errors import EyelevelError, reports_errors
from eyelevel.files import replacing_folder
from eyelevel.ownership import give_to_caller
from eyelevel.places import RESULTS

REPORT = "report"
LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "pyarrow")
# All films of a page together; what does not fit any more is told.
FILM_BYTES = 16_000_000


def write_report(campaign: CampaignTable, declared: hypotheses.Hypotheses, site: str | None = None) -> Path:
    """Write the report of `campaign` into its folder, in place of an older one; returns where.

    `site`: whose films to show, instead of the site with the largest disagreement. Raises EyelevelError.
    """
    into = campaign.folder / REPORT
    with workers() as apart, replacing_folder(into) as folder:
        found = find(campaign, declared, apart)
        strips, played, missing = shown_films(found, site, folder)
        drawn = draw(plates(found, strips), folder / "figures", apart)
        sections = tables(found)
        write_tables([view for group in sections.values() for view in group], found, folder)
        told = {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
        html = page(found, drawn, sections, played, missing, told, folder / "figures")
        (folder / "index.html").write_text(html)
    give_to_caller(into)
    return into


def write_figures(campaign: CampaignTable, declared: hypotheses.Hypotheses, site: str | None = None) -> Path:
    """Write the figures of `campaign` alone, into the same place as its report has them; returns where."""
    into = campaign.folder / REPORT / "figures"
    with workers() as apart, replacing_folder(into) as folder:
        found = find(campaign, declared, apart)
        strips, _, _ = shown_films(found, site, None)
        draw(plates(found, strips), folder, apart)
    give_to_caller(into.parent)
    return into


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
            views.protocols(found),
            views.networks(found),
            views.validation(found),
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
        "exclusions": [views.excluded_attempts(found)],
    }


def write_tables(made: list[View], found: Findings, folder: Path) -> None:
    """Each table as CSV and LaTeX, all comparisons as CSV, all attempts as Parquet."""
    into = folder / "tables"
    into.mkdir()
    for view in made:
        view.data.to_csv(into / f"{view.name}.csv", index=False)
        (into / f"{view.name}.tex").write_text(latex(view))
    key = ["reference", "compared", "network", "site", "metric"]
    comparisons = found.gained.merge(found.contrasts, on=key, how="left") if len(found.contrasts) else found.gained
    comparisons.to_csv(into / "comparisons.csv", index=False)
    found.campaign.runs.to_parquet(folder / "runs.parquet", index=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("campaign")
@click.option("--site", help="Whose films to show; the site whose SI and PLT disagree most unless given.")
@click.option(
    "--hypotheses",
    "declared",
    type=click.Path(path_type=Path),
    default=hypotheses.DECLARED,
    show_default="analysis/hypotheses.toml",
    help="What is asked: pairs, family, thresholds.",
)
@click.option("--figures-only", is_flag=True, help="Draw the figures and nothing else.")
def main(campaign: str, site: str | None, declared: Path, figures_only: bool) -> None:
    """Write the report of CAMPAIGN (a folder in results/, or any path of one) into its folder report/.

    Example: python -m analysis.report try --site demo-news
    """
    folder = Path(campaign) if (Path(campaign) / "runs.csv").exists() else RESULTS / campaign
    write = write_figures if figures_only else write_report
    click.echo(write(load(folder), hypotheses.load(declared), site))


if __name__ == "__main__":
    reports_errors(main)()
