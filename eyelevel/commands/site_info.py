"""`eyelevel site-info`: describe the recorded sites, in a table and as the paper's Figure 1."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.places import SITES
from base.terminal import terminal
from eyelevel.arguments import begin
from eyelevel.options import parameters_of
from record.layout import INDEX


@click.command(params=parameters_of("site-info"))
def main(into: Path) -> None:
    """Print a table of the recorded sites, and save the table and the paper's Figure 1 as files.

    Example: eyelevel site-info --into results/sites
    """
    folders = sorted(path.parent for path in SITES.glob(f"[!.]*/{INDEX}"))
    if not folders:
        raise EyelevelError(f"there are no sites in {SITES}; import one, or run 'eyelevel demo'")
    begin(f"reading {len(folders)} sites")

    from analysis.figures import figure1
    from analysis.figures.style import save
    from analysis.sites import print_sites, site_table
    from measure.sites.facts import facts_of
    from record.site import Site

    table = site_table({folder.name: facts_of(Site.load(folder)) for folder in folders})
    print_sites(table, terminal())
    into.mkdir(parents=True, exist_ok=True)
    table.to_csv(into / "sites.csv", index=False)
    save(figure1.draw(table), into, "figure1")
    click.echo(f"{into}: sites.csv, figure1.png, figure1.pdf")
