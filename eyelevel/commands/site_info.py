"""`eyelevel site-info`: describe recorded sites, in a table and as the paper's Figure 1."""

import csv
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

    from record.site import Site
    from record.web.table import Row


@click.command(params=parameters_of("site-info"))
def main(into: Path, sites: str | None, as_json: bool) -> None:
    """Print a table of the sites, and save the table and the paper's Figure 1 as files; with --json, only print.

    For the set `web`, a second table compares its pages with today's web (record/web/README.md).

    Example: eyelevel site-info --sites web --into results/sites
    """
    chosen = _chosen(sites)

    from analysis.figures import figure1
    from analysis.figures.style import save
    from analysis.sites import site_table
    from measure.sites.facts import facts_of
    from record.web import page_names

    table = site_table({site.name: facts_of(site) for site in chosen})
    if as_json:
        from analysis.report.changes import plain_rows

        print_json(plain_rows(table))
        return
    _print(table)
    is_set = [site.name for site in chosen] == page_names()
    into.mkdir(parents=True, exist_ok=True)
    table.to_csv(into / "sites.csv", index=False)
    save(figure1.draw(table, _today() if is_set else None), into, "figure1")
    files = ["sites.csv", "figure1.png", "figure1.pdf"]
    if is_set:
        _print_marginals(chosen, into / "marginals.csv")
        files.append("marginals.csv")
    click.echo(f"{into}: {', '.join(files)}")


def _chosen(wanted: str | None) -> "list[Site]":
    """The sites to describe. Raises EyelevelError."""
    from record.collection import choose_sites
    from record.site import Site

    if wanted:
        begin(f"reading {wanted}")
        return choose_sites(wanted)
    folders = sorted(path.parent for path in SITES.glob(f"[!.]*/{INDEX}"))
    if not folders:
        raise EyelevelError(f"there are no sites in {SITES}; import one, or run 'eyelevel demo'")
    begin(f"reading {plural('site', len(folders))}")
    return [Site.load(folder) for folder in folders]


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
    open_sites = [name for name in table.loc[table["served"].isna(), "site"] if (SITES / name).is_dir()]
    if open_sites:
        suggest(make_line("close", {"SITES": ",".join(open_sites)}))


def _today() -> dict[str, list[float]]:
    """Percentiles of today's web, for Figure 1."""
    from record.web.quantiles import marginals

    known = marginals()
    return {"bytes": [1024 * size for size in known["bytes"].values], "servers": list(known["servers"].values)}


def _print_marginals(pages: "list[Site]", file: Path) -> None:
    """Count the numbers of the set's pages as they are stored, print them beside the published ones, and save both as a
    table."""
    from record.web.facts import facts
    from record.web.table import POSITIVE, correlation, rows

    numbers = {page.name: facts(page.recording()) for page in pages}
    lines = rows(numbers)
    texts = plain_table(padding=(0, 0, 0, 1))
    texts.add_column("of the 40 pages, or their files", overflow="fold", min_width=28)
    for name in ("today's web", "these pages", "fits"):
        texts.add_column(name, justify="right", no_wrap=True)
    for row in lines:
        texts.add_row(row.title, _numbers(row.published), _numbers(row.ours), row.judgement)
    terminal().print(texts)
    for pair in POSITIVE:
        click.echo(f"rank correlation of {' and '.join(pair)}: {correlation(numbers, *pair):+.2f}")
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("marginal", "percentile", "today", "pages", "guess", "source", "address"))
        for row in lines:
            table.writerows(_lines(row))


def _lines(row: "Row") -> list[tuple[str, str, float, float, str, str, str]]:
    """The lines of a marginal in the file: one for each percentile."""
    levels = [f"p{level}" for level in row.marginal.levels] if row.marginal.values else ["share, %"]
    said = (("no", "yes")[row.marginal.guess], row.marginal.source, row.marginal.address)
    pairs = zip(levels, row.published, row.ours, strict=True)
    return [(row.name, level, published, ours, *said) for level, published, ours in pairs]


def _numbers(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.3g}" if number < 100 else f"{number:.0f}" for number in numbers)
