"""`eyelevel site-info`: describe the recorded sites, in a table and as the paper's Figure 1."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError
from base.places import SITES
from base.terminal import plain_table, print_json, terminal
from base.words import plural
from eyelevel.arguments import begin
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of
from record.layout import INDEX

if TYPE_CHECKING:
    import pandas as pd


@click.command(params=parameters_of("site-info"))
def main(into: Path, as_json: bool) -> None:
    """Print a table of the recorded sites, and save the table and the paper's Figure 1 as files; with --json, only
    print.

    Example: eyelevel site-info --into results/sites
    """
    folders = sorted(path.parent for path in SITES.glob(f"[!.]*/{INDEX}"))
    if not folders:
        raise EyelevelError(f"there are no sites in {SITES}; import one, or run 'eyelevel demo'")
    begin(f"reading {plural('site', len(folders))}")

    from analysis.figures import figure1
    from analysis.figures.style import save
    from analysis.sites import site_table
    from measure.sites.facts import facts_of
    from record.site import Site

    table = site_table({folder.name: facts_of(Site.load(folder)) for folder in folders})
    if as_json:
        from analysis.report.changes import plain_rows

        print_json(plain_rows(table))
        return
    _print(table)
    into.mkdir(parents=True, exist_ok=True)
    table.to_csv(into / "sites.csv", index=False)
    save(figure1.draw(table), into, "figure1")
    click.echo(f"{into}: sites.csv, figure1.png, figure1.pdf")


def _print(table: "pd.DataFrame") -> None:
    """Print `table` for a reader, without the URLs of the largest resources."""
    texts = plain_table(padding=(0, 0, 0, 1))
    texts.add_column("site", overflow="fold", min_width=15)
    headings = ("ex-\nchanges", "MB", "servers", "hosts", "third\nparty", "largest\nkB", "served\n%", "Jaccard\nindex")
    for name in headings:
        texts.add_column(name, justify="right", no_wrap=True)
    for row in table.itertuples():
        counts = (str(row.servers), str(row.hosts), str(row.third_party_hosts))
        megabytes, largest = f"{row.bytes / 1e6:.2f}", f"{row.largest_bytes / 1e3:.0f}"
        # Rounded down, so that it is 100 % only if nothing is missing.
        served = "" if math.isnan(row.served) else f"{math.floor(row.served * 1000) / 10:.1f}"
        jaccard = "" if math.isnan(row.served) else f"{row.jaccard:.3f}"
        texts.add_row(row.site, str(row.exchanges), megabytes, *counts, largest, served, jaccard)
    terminal().print(texts)
    if open_sites := list(table.loc[table["served"].isna(), "site"]):
        suggest(make_line("close", {"SITES": ",".join(open_sites)}))
