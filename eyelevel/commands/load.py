"""`eyelevel load`: load a replayed site once in a fresh browser; runs inside the replay."""

import sys
from pathlib import Path

import click

from base.privileges import require_browsing
from eyelevel.options import parameters_of


@click.command(params=parameters_of("load"))
def main(
    site_name: str,
    proto: str,
    limit_s: float,
    film: bool,
    film_cores: str | None,
    quiet_ms: int,
    browser: str,
    folder: Path,
) -> None:
    """Load a site once in a fresh browser, and film it. Run this command inside a replay: outside, the site's hosts do
    not exist.

    The exit status is that of Browsertime.

    Example: eyelevel replay --site demo-news --net lte --proto quic -- \\
    eyelevel load --site demo-news --proto quic --into results/visit
    """
    from browsers.registry import one_browser
    from measure.run.aliases import choose_protocol
    from measure.run.visit import visit
    from measure.run.visit_spec import VisitSpec
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
        film_cores=tuple(map(int, film_cores.split(","))) if film_cores else (),
        quiet_ms=quiet_ms,
        browser=one_browser(browser),
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    sys.exit(visit(spec))
