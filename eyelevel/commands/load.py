"""`eyelevel load`: load a replayed site once in a fresh browser, from within its replay."""

import sys
from pathlib import Path

import click

from base.privileges import require_browsing
from browsers.browsertime.configuration import QUIET_MS
from eyelevel.arguments import PATH
from tuning.defaults import DEFAULT_BROWSER


@click.command()
@click.option("--site", "site_name", required=True, help="The site that is replayed: the name of a folder in sites/.")
@click.option("--proto", required=True, help="The protocol that it is replayed over.")
@click.option("--limit", "limit_s", type=float, default=300, show_default=True, help="Seconds a load may take.")
@click.option("--film/--no-film", default=True, show_default=True, help="Whether to film it.")
@click.option("--film-cores", default="", help="Processor cores for the film alone, separated by commas.")
@click.option("--quiet-ms", default=QUIET_MS, show_default=True, help="For how long the page must ask for nothing.")
@click.option("--browser", default=DEFAULT_BROWSER, show_default=True, help="The browser.")
@click.option("--into", "folder", required=True, type=PATH, help="Where to put the results.")
def main(
    site_name: str, proto: str, limit_s: float, film: bool, film_cores: str, quiet_ms: int, browser: str, folder: Path
) -> None:
    """Load a site once in a fresh browser, and film it. To be run in a replay: outside, the site's hosts do not exist.

    Its exit status is that of Browsertime.

    Example: eyelevel replay --site demo-news --net lte --proto quic -- \\
    eyelevel load --site demo-news --proto quic --into results/visit
    """
    from measure.run.aliases import choose_protocol
    from measure.run.visit import VisitSpec, visit
    from record.collection import choose_site
    from servers.registry import server_of
    from tuning import protocols

    require_browsing("loading")
    protocol = choose_protocol(proto, protocols.load())
    spec = VisitSpec(
        choose_site(site_name).folder,
        protocol,
        server_of(protocol).connection_options(protocol),
        limit_s,
        folder,
        film=film,
        film_cores=tuple(int(core) for core in film_cores.split(",") if core),
        quiet_ms=quiet_ms,
        browser=browser,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    sys.exit(visit(spec))
