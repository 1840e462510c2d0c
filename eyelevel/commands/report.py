"""`eyelevel report`: everything that a campaign or a study says, as one page, figures and tables."""

from pathlib import Path

import click

from analysis import hypotheses
from analysis.report.write import write_figures, write_report
from analysis.user_study.section import section as user_study
from eyelevel.options import campaign_argument, campaign_folder
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
def main(campaign: str, site: str | None, file: Path | None, figures_only: bool) -> None:
    """Write the report of CAMPAIGN (a folder in results/, or any path of one) into its folder report/.

    Example: eyelevel report try --site demo-news
    """
    write = write_figures if figures_only else write_report
    folder = campaign_folder(campaign)
    question = hypotheses.of_campaign(folder, require_document(folder), file)
    click.echo(write(folder, [*(study.section for study in STUDIES), user_study], question, site))
