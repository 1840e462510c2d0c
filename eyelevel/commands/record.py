"""`eyelevel record`: load pages from the web and keep them as sites."""

import sys
from pathlib import Path

import click

from base.places import PROJECT, SITES
from eyelevel.options import allow_private, keep_cookies
from record.recorder import sandbox
from record.recorder.addresses import AddressPolicy
from record.recorder.spec import RecordSpec
from record.recorder.targets import read_targets
from record.site import Site
from record.summary import summary

PATH = click.Path(path_type=Path, resolve_path=True)


@click.command()
@click.argument("sources", nargs=-1, metavar="[URL|FILE]...")
@click.option("--mobile", is_flag=True, help="Load the pages as on a phone.")
@keep_cookies
@click.option(
    "--origin-ca",
    type=PATH,
    help="Trust servers of the certificate authority in this PEM file instead of the public ones.",
)
@click.option("--into", type=PATH, default=SITES, show_default="sites/", help="The folder to put the sites in.")
@allow_private
def main(
    sources: tuple[str, ...],
    mobile: bool,
    keep_cookies: bool,
    origin_ca: Path | None,
    into: Path,
    allow_private: bool,
) -> None:
    """Record the pages at URLs, or those that files list; the pages of sites.txt unless given.

    An older site stays as it is until its page has been recorded again in full. A page that fails does not
    stop the others.

    Example: eyelevel record https://www.gnu.org/
    """
    failed = []
    # All lines are read before the first page is loaded: a mistake in the last line must not cost an hour.
    for target in read_targets(sources or (str(PROJECT / "sites.txt"),)):
        click.echo(f"{target.name}: loading {target.url}")
        spec = RecordSpec(
            target.url,
            into / target.name,
            mobile,
            keep_cookies,
            origin_ca,
            address_policy=AddressPolicy.ALL if allow_private else AddressPolicy.SAME_SPACE,
        )
        if sandbox.run(spec):
            click.echo(summary(Site.load(spec.folder)))
        else:
            failed.append(target.name)
    if failed:
        sys.exit(
            f"eyelevel: not recorded: {', '.join(failed)}; see above. Older recordings of them were left as they are"
        )
