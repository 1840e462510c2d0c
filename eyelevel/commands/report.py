"""`eyelevel report`: everything that a campaign or a study says, as one page, figures and tables."""

from pathlib import Path

import click

from analysis import hypotheses
from analysis.report.write import write_figures, write_report
from analysis.user_study.section import section as user_study
from base.errors import EyelevelError
from eyelevel.options import PATH, campaign_argument, campaign_folder
from measure.table import require_document
from studies import STUDIES


@click.command()
@campaign_argument
@click.option("--site", help="Whose films to show; the site whose SI and PLT disagree most unless given.")
@click.option(
    "--hypotheses",
    "file",
    type=click.Path(path_type=Path),
    help="What is asked: pairs, family, thresholds. Others than the campaign's own, which it declared before its first "
    "run, count as post hoc.",
)
@click.option("--figures-only", is_flag=True, help="Draw the figures and nothing else.")
@click.option(
    "--into",
    type=PATH,
    help="The folder to write the report to; report/ in the campaign's unless given, for which that must be writable.",
)
def main(campaign: str, site: str | None, file: Path | None, figures_only: bool, into: Path | None) -> None:
    """Write the report of CAMPAIGN (a folder in results/, or any path of one) into its folder report/.

    Example: eyelevel report try --site demo-news
    """
    if figures_only and into:
        raise EyelevelError("--into is for whole reports, which have the figures, too; leave --figures-only out")
    folder = campaign_folder(campaign)
    question = hypotheses.of_campaign(folder, require_document(folder), file)
    sections = [*(study.section for study in STUDIES), user_study]
    if figures_only:
        click.echo(write_figures(folder, sections, question, site))
    else:
        click.echo(write_report(folder, sections, question, site, into))
