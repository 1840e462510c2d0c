"""`eyelevel report`: write all results of a campaign or a study as one page, figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError, Misuse
from base.places import RESULTS
from base.text import printable
from base.words import plural
from dataset.table import require_document
from eyelevel.arguments import begin, campaign_folder
from eyelevel.next_step import after_report, suggest
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from analysis.findings import Findings


@click.command(params=parameters_of("report"))
def main(
    campaign: str, site: str | None, file: Path | None, figures_only: bool, into: Path | None, allow_changed: bool
) -> None:
    """Write the report of CAMPAIGN (a folder in results/, or a path) into its folder report/. Begin with index.html,
    the answer; everything.html has all tables and figures.

    Example: eyelevel report first --site demo-news
    """
    if figures_only and into:
        raise Misuse("--into is for whole reports, which include the figures; omit --figures-only")
    folder = campaign_folder(campaign)
    begin(f"reading {folder}")

    from analysis import hypotheses
    from analysis.report.write import report_and_findings, write_figures
    from dataset.package import is_package
    from eyelevel.sections import sections_of

    if is_package(folder):
        require_as_written(folder, allow_changed=allow_changed)
        into = place_for_package(folder, into, figures_only=figures_only)
    question, sections = hypotheses.of_campaign(folder, require_document(folder), file), sections_of(folder)
    if figures_only:
        click.echo(write_figures(folder, sections, question, site))
    else:
        report, findings = report_and_findings(folder, sections, question, site, into)
        print_answer(folder, report, findings)


def print_answer(folder: Path, report: Path, findings: Findings | None) -> None:
    """Print what the campaign in `folder` shows according to its `findings` (None for a study), the path of its
    `report`, and the next command."""
    from analysis.report.conclusion import conclusion
    from analysis.report.section import ANSWER

    answer = conclusion(findings) if findings else None
    for line in (*(answer.sentences if answer else ()), f"report: {report / ANSWER}"):
        # The campaign may be a stranger's, and so are the names in these lines.
        click.echo(printable(line))
    suggest(after_report(folder, answer))


def require_as_written(package: Path, *, allow_changed: bool) -> None:
    """Raise EyelevelError if a file of `package` differs from what was written; only warn if `allow_changed`."""
    from dataset.package import differences

    if wrong := differences(package):
        name, what = next(iter(wrong.items()))
        more = f", and {plural('other difference', len(wrong) - 1)}" if len(wrong) > 1 else ""
        text = f"{package} is not as written: {printable(name)} is {what}{more}"
        if not allow_changed:
            raise EyelevelError(f"{text}; 'make verify FOLDER={package}' lists all; --allow-changed reports it anyway")
        click.echo(f"eyelevel: WARNING: {text}", err=True)


def place_for_package(package: Path, into: Path | None, *, figures_only: bool) -> Path:
    """Where a new report of `package` is written: `into`, or a folder in results/. Raises EyelevelError if that is not
    allowed."""
    from analysis.report.write import REPORT
    from dataset.package import ENDING

    if figures_only:
        raise EyelevelError(f"{package} is a read-only package: omit --figures-only")
    if into is None:
        into = RESULTS / f"{package.resolve().name.removesuffix(ENDING)}-{REPORT}"
        # Do not offer the report in the package instead: it may be a stranger's page with any scripts.
        click.echo(f"{package} is a read-only package; a new report of it is written to {into}", err=True)
    elif into.resolve().is_relative_to(package.resolve()):
        raise EyelevelError(f"{into} is in the package {package}, which is read-only; choose another folder")
    return into
