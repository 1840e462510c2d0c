"""The section of films of a campaign's report: for each network one site, and a typical run of both protocols."""

from pathlib import Path

from analysis.figures import figure4
from analysis.figures.films import Shot, Strip, disagreement, strips, typical
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.run_files import files_of
from analysis.report.section import ReportFigure, Section
from analysis.runs import rows_of
from analysis.text import label, listing
from base.errors import EyelevelError
from films.kept import film_of, small_copy

# All films of a page together have at most this many bytes.
PAGE_BYTES = 16_000_000
FILMS = "films"


def films_section(findings: Findings, site: str | None, waterfalls: Path | None) -> Section:
    """The section of films: for each network, the strips and films of the first pair of the family that has some.

    They are those of `site`; unless that is given, of the site whose gains in SI and PLT differ most. The waterfalls of
    the same runs are written into `waterfalls`, a new folder; without this folder, the section has only strips. Raises
    EyelevelError when the campaign does not have the site.
    """
    if site and site not in findings.samples.sites:
        raise EyelevelError(f"the site {site} is not in the campaign; it has {', '.join(findings.samples.sites)}")
    groups: list[list[Strip]] = []
    films_by_network: list[list[tuple[Shot, bytes]]] = []
    missing: list[str] = []
    without_films: list[str] = []
    free_bytes = PAGE_BYTES
    for network in findings.samples.networks:
        shots = _shots(findings, network, site)
        if not shots:
            without_films.append(label(network))
            continue
        try:
            groups.append(strips(shots))
            copies = [(shot, small_copy(shot.film, shot.end_ms / 1000 + 1)) for shot in shots] if waterfalls else []
        except EyelevelError as error:
            missing.append(str(error))
            continue
        free_bytes -= sum(len(film) for _, film in copies)
        if free_bytes < 0:
            missing.append(f"The films of {shots[0].site} on {network} are too large for this page.")
        elif copies:
            films_by_network.append(copies)
    if groups and without_films:
        missing.append(f"No pair of films of {site or 'a site'} was kept on {listing(without_films)}.")
    titles: dict[str, str] = {}
    if groups and waterfalls:
        from analysis.report.waterfalls.page import write_waterfalls

        titles, without = write_waterfalls(groups, findings.campaign.folder, waterfalls)
        missing += without
    figures = tuple(strip_figure(number, group) for number, group in enumerate(groups, start=1))
    values = {"missing": missing, "waterfalls": titles, "films": films_by_network}
    return Section(FILMS, "Films", figures=figures, values=values)


def strip_figure(number: int, strips: list[Strip]) -> ReportFigure:
    """A figure of these strips, which are of runs on one network, with links to the files of these runs, except
    films."""
    shot = strips[0].shot
    caption = f"{shot.site} on {label(shot.network)}: one typical run of each protocol."
    finding = alternatives.strip({strip.shot.protocol: strip.shot.metrics for strip in strips})
    run_files = {
        f"{label(strip.shot.protocol)} run {strip.shot.run}: {text}": path
        for strip in strips
        for files in files_of(strip.shot.film.parent).values()
        for text, path in files.items()
    }
    return ReportFigure(
        f"figure4_{shot.network}_{number}", caption, figure4.draw, (strips,), finding, run_files, of_pictures=True
    )


def _shots(findings: Findings, network: str, site: str | None) -> list[Shot]:
    campaign = findings.campaign
    valid = rows_of(campaign.valid, network=network)
    if "folder" not in valid:
        return []
    folders = zip(valid["site"], valid["protocol"], valid["folder"], strict=True)
    filmed = {(*setting,) for *setting, folder in folders if film_of(campaign.folder / str(folder), campaign.folder)}
    for pair in findings.hypotheses.family:
        for name in [site] if site else disagreement(findings["gains"], network, pair):
            if {(name, protocol) for protocol in pair} <= filmed:
                shots = [typical(valid, campaign.folder, name, network, protocol) for protocol in pair]
                if all(shots):
                    return [shot for shot in shots if shot]
    return []
