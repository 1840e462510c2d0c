"""`eyelevel try`: a first measurement, which needs no choice."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.terminal import terminal
from dataset.table import DOCUMENT, RUNS, CampaignDocument, read_document, require_document
from dataset.verdicts import VERDICTS
from eyelevel.arguments import begin
from eyelevel.commands.report import print_answer
from eyelevel.make import same_command
from eyelevel.measuring_options import campaign_name
from eyelevel.options import parameters_of

# A round trip of 600 ms makes the difference large beside what the machine's other work adds to a load: with the load
# average of a machine of two cores at 5, the ratios of pairs of loads scattered by 1.2 %, and by 14 % on lte.
SITE, NETWORK, PROTOCOLS = "demo-light", "geo", ("tcp+", "quic")
RUNS_OF_EACH = 3


@click.command(params=parameters_of("try"))
def main(name: str, results: Path, plain: bool) -> None:
    """Load a demo site over TCP and over QUIC on an emulated satellite link, and say which showed it sooner.

    TCP has the paper's tuning (tcp+). If the campaign exists, it is resumed; if it has ended, its result is printed
    again.

    Example: eyelevel try
    """
    folder = results / campaign_name(name)
    document = read_document(folder)
    if document:
        require_demo(folder, document)
    again = same_command("try", click.get_current_context())
    if not document or has_open_runs(folder):
        over = "TCP with the paper's tuning (tcp+) and QUIC"
        begin(f"{SITE}, {RUNS_OF_EACH} loads each over {over}, on an emulated satellite link ({NETWORK})")
        from eyelevel.answer.request import QUESTION
        from eyelevel.commands import campaign

        words = ["--campaign", name, "--results", str(results), *(["--plain"] if plain else [])]
        if not document:
            words += ["--net", NETWORK, "--proto", ",".join(PROTOCOLS), "--sites", SITE]
            words += ["--runs", str(RUNS_OF_EACH), "--hypotheses", str(QUESTION)]
        campaign.measured(campaign.main.make_context("campaign", words).params, terminal(), again)
    report(folder)


def require_demo(folder: Path, document: CampaignDocument) -> None:
    """Raises EyelevelError if the campaign of `document` in `folder` measures something else than this command does."""
    settings = document.settings
    measured = ([*settings.sites], [*settings.networks], [*settings.protocols])
    if document.study_name or measured != ([SITE], [NETWORK], [*PROTOCOLS]):
        raise EyelevelError(
            f"{folder} is a campaign with other settings; measure the demo under another name: make try CAMPAIGN=demo"
        )


def has_open_runs(folder: Path) -> bool:
    """Whether runs of the campaign in `folder` are still to be made. Raises EyelevelError."""
    from measure.campaign.status import status

    return bool(status(folder).open_runs)


def report(folder: Path) -> None:
    """Write the report of the campaign in `folder`, unless it is newer than the runs, and print the answer. Raises
    EyelevelError."""
    begin(f"reading {folder}")

    from analysis import hypotheses
    from analysis.report.conclusion import findings_of
    from analysis.report.section import ANSWER
    from analysis.report.write import REPORT, report_and_findings
    from analysis.runs import load
    from eyelevel.sections import sections_of

    question, into = hypotheses.of_campaign(folder, require_document(folder)), folder / REPORT
    sources = [path for name in (RUNS, DOCUMENT, VERDICTS) if (path := folder / name).exists()]
    page = into / ANSWER
    if page.exists() and page.stat().st_mtime >= max(path.stat().st_mtime for path in sources):
        print_answer(folder, into, findings_of(load(folder), question))
    else:
        print_answer(folder, *report_and_findings(folder, sections_of(folder), question, None, None))
