"""`eyelevel record`: load pages from the web and keep them as sites."""

import os
from contextlib import nullcontext
from pathlib import Path

import click

from base.errors import EyelevelError, Misuse, print_error
from base.ownership import give_to_caller
from base.places import WORK
from base.words import plural
from eyelevel.options import parameters_of

PATH = click.Path(path_type=Path, resolve_path=True)


@click.command(params=parameters_of("record"))
def main(
    sources: tuple[str, ...],
    mobile: bool,
    keep_cookies: bool,
    origin_ca: Path | None,
    into: Path,
    allow_private: bool,
    live: int | None,
    net: str | None,
    script: Path | None,
) -> None:
    """Record the pages at URLs, or those that files list; by default the pages of sites.txt.

    An older site stays unchanged until its page has been recorded again in full. If a page fails, the others are still
    recorded.

    A page script carries out a few steps in each page, such as accepting cookies, and is kept with the site.

    Example: eyelevel record https://www.gnu.org/
    """
    from measure.host.exclusive import measuring_alone
    from measure.live.loads import load_live
    from record.live import write_live
    from record.page_script import read_page_script, values_of
    from record.recorder import sandbox
    from record.recorder.addresses import policy_for
    from record.recorder.spec import RecordSpec
    from record.recorder.targets import read_targets
    from record.site import Site
    from record.summary import summary
    from tuning import networks
    from tuning.settings import choose_one

    if net and not live:
        raise Misuse("--net is the network of live loads; give their number, too, as in: --live 5")
    network = choose_one("network", net, networks.load()) if net else None
    failed, not_live = [], []
    # Read all lines before loading the first page: a mistake in the last line must not cost an hour.
    page_script = read_page_script(script) if script else None
    values = values_of(page_script, os.environ) if page_script else {}
    targets = read_targets(sources or (str(WORK / "sites.txt"),))
    with measuring_alone() if live else nullcontext():
        for target in targets:
            click.echo(f"{target.name}: loading {target.url}")
            spec = RecordSpec(
                target.url,
                into / target.name,
                mobile,
                keep_cookies,
                origin_ca,
                address_policy=policy_for(target.url, allow_private=allow_private),
                page_script=page_script,
                values=values,
            )
            if not sandbox.run(spec):
                failed.append(target.name)
                continue
            site = Site.load(spec.folder)
            click.echo(summary(site))
            if live:
                try:
                    write_live(load_live(site, live, network, origin_ca), site.folder)
                    give_to_caller(site.folder)
                    click.echo(f"{site.name}: {plural('live load', live)} kept")
                except EyelevelError as error:
                    print_error(str(error))
                    not_live.append(site.name)
    faults = []
    if failed:
        faults.append(f"not recorded: {', '.join(failed)}; see above. Older recordings of these are unchanged")
    if not_live:
        faults.append(f"recorded, but without live loads: {', '.join(not_live)}; see above")
    if faults:
        raise EyelevelError(". ".join(faults))
