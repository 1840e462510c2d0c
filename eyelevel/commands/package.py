"""`eyelevel package`: write a campaign as a folder that can be cited."""

from pathlib import Path

import click

from base.files import require_replaceable
from base.places import RESULTS
from base.text import printable
from dataset.package import ENDING
from dataset.table import require_document
from eyelevel.arguments import begin, campaign_folder
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of
from record.privacy import secret_parameters


@click.command(params=parameters_of("package"))
def main(campaign: str, into: Path | None, licence: str) -> None:
    """Write CAMPAIGN (a folder in results/, or a path) as a folder that can be cited.

    The folder is an RO-Crate with the campaign's numbers, settings, validation and report, checksums and a data sheet.
    It has no films, no logs and no other people's content.

    Example: eyelevel package first --into first-data
    """
    folder = campaign_folder(campaign)
    begin(f"reading {folder}")
    if secrets := secret_parameters(str(site.get("url")) for site in require_document(folder).settings.sites.values()):
        names = ", ".join(map(printable, secrets))
        text = f"the URLs of its sites, which are in the package, have values that look like secrets: {names}"
        click.echo(f"eyelevel: WARNING: {text}", err=True)
    package = package_of(folder, into or RESULTS / f"{folder.resolve().name}{ENDING}", licence)
    click.echo(package)
    suggest(make_line("verify", {"FOLDER": str(package)}))


def package_of(folder: Path, into: Path, licence: str) -> Path:
    """Write the campaign in `folder` to `into` as a package with its report; return `into`. Raises EyelevelError."""
    require_replaceable(into, "--into names another folder")
    from analysis import hypotheses
    from analysis.report.write import write_report
    from eyelevel.package import write_package
    from eyelevel.sections import sections_of

    def report(of: Path) -> Path:
        return write_report(of, sections_of(of), hypotheses.of_campaign(of, require_document(of), None))

    return write_package(folder, into, licence, report)
