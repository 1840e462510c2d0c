"""`eyelevel close`: find out which requests of pages the recording does not answer, and fetch those where possible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError, print_error
from base.places import SITES
from base.privileges import require_browsing
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from record.site import Site


@click.command(params=parameters_of("close"))
def main(
    names: tuple[str, ...],
    loads: int,
    proto: str,
    net: str,
    repeatable: bool,
    film: bool,
    fetch: bool | None,
    origin_ca: Path | None,
    allow_private: bool,
    recorded: bool,
    folder: Path,
) -> None:
    """Complete the named sites; by default all that are not complete.

    Completing loads a site in replay to find requests that its recording does not answer, and fetches the responses
    where possible.

    Example: eyelevel close www.yelp.com
    """
    from browsers.browsertime.configuration import QUIET_MS
    from measure.completing.completing import OUR_RECORDER, Completing, complete, font_warnings, summary, warnings
    from measure.host.exclusive import measuring_alone
    from measure.run.aliases import choose_protocols
    from measure.run.setting import Loading
    from record.edit import is_variant
    from record.recorder.addresses import AddressPolicy
    from record.site import Site
    from tuning import networks, protocols
    from tuning.settings import choose_one

    require_browsing("completing")
    completing = Completing(
        loads=loads,
        network=choose_one("network", net, networks.load()),
        protocols={protocol.name: protocol for protocol in choose_protocols(proto, protocols.load())},
        # The quiet time of the slowest network is used on every network, to catch late requests of a page, too.
        loading=Loading(repeatable, filmed=film, quiet_ms=QUIET_MS),
        origin_ca=origin_ca,
        address_policy=AddressPolicy.ALL if allow_private else AddressPolicy.PUBLIC,
    )
    completed, failed = [], []
    with measuring_alone("completing"):
        for site in chosen(" ".join(names).replace(",", " ").split(), folder):
            ours = OUR_RECORDER in site.recorder.get("tool", "")
            if recorded and not names and not ours:
                continue
            try:
                # A variant lacks resources on purpose: they were dropped.
                wanted = ours and not is_variant(site) if fetch is None else fetch
                completeness = complete(site, completing, fetch=wanted)
                click.echo(summary(site.name, completeness))
                completed.append(site.name)
                closed = Site.load(site.folder)
                for text in [*warnings(closed, completeness), *font_warnings(closed, completeness)]:
                    click.echo(f"eyelevel: WARNING: {text}", err=True)
            except EyelevelError as error:
                print_error(str(error))
                failed.append(site.name)
    if failed:
        raise EyelevelError(f"not completed: {', '.join(failed)}; see above")
    if completed:
        suggest(make_line("campaign", {"SITES": ",".join(completed), "NET": "lte", "PROTO": "tcp,quic"}))


def chosen(names: Sequence[str], folder: Path) -> list[Site]:
    """The sites `names` in `folder`, or if there are no names, all that are not completed yet. Raises EyelevelError."""
    from measure.sites.completeness import read
    from record import collection

    if folder != SITES:
        sites = collection.sites_in(folder, list(names))
    elif names:
        sites = collection.choose_sites(list(names))
    else:
        sites = [collection.load_site(name) for name in collection.recorded_names()]
    return sites if names else [site for site in sites if read(site) is None]
