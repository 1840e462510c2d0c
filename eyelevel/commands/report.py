"""`eyelevel report`: everything that a campaign or a study says, as one page, figures and tables."""

from pathlib import Path

import click

from analysis import hypotheses
from analysis.report.write import write_figures, write_report
from eyelevel.options import campaign_argument, campaign_folder
from studies import STUDIES


@click.command()
@campaign_argument
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

    Example: eyelevel report try --site demo-news
    """
    write = write_figures if figures_only else write_report
    click.echo(write(campaign_folder(campaign), [study.section for study in STUDIES], hypotheses.load(declared), site))
