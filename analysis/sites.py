"""Recorded sites as a table: size, servers, hosts, and how complete they are."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, fields

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from dataset.site_facts import SiteFacts


def site_table(sites: Mapping[str, SiteFacts], names: Iterable[str] | None = None) -> pd.DataFrame:
    """A row for each of `sites` (name → facts), or for those of them in `names`, ordered by size.

    Columns: site, and the fields of `SiteFacts`. Sites that were not completed lack served, jaccard and loads.
    """
    columns = ["site", *(one.name for one in fields(SiteFacts))]
    rows = [(name, *astuple(sites[name])) for name in (sites if names is None else names) if name in sites]
    table = pd.DataFrame(rows, columns=columns).astype({"served": float, "jaccard": float, "loads": "Int64"})
    return table.sort_values("bytes", kind="stable", ignore_index=True)


def print_sites(table: pd.DataFrame, console: Console) -> None:
    """Print `table` for a reader, without the URLs of the largest resources."""
    texts = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    texts.add_column("site", overflow="fold", min_width=15)
    headings = ("ex-\nchanges", "MB", "servers", "hosts", "third\nparty", "largest\nkB", "served\n%", "Jaccard\nindex")
    for name in headings:
        texts.add_column(name, justify="right", no_wrap=True)
    for row in table.itertuples():
        counts = (str(row.servers), str(row.hosts), str(row.third_party_hosts))
        megabytes, largest = f"{row.bytes / 1e6:.2f}", f"{row.largest_bytes / 1e3:.0f}"
        # Rounded down, so that it is 100 % only if nothing is missing.
        served = "" if pd.isna(row.served) else f"{math.floor(row.served * 1000) / 10:.1f}"
        jaccard = "" if pd.isna(row.served) else f"{row.jaccard:.3f}"
        texts.add_row(row.site, str(row.exchanges), megabytes, *counts, largest, served, jaccard)
    console.print(texts)
    if open_sites := list(table.loc[table["served"].isna(), "site"]):
        console.print(f"Nobody has measured yet what the pages of {', '.join(open_sites)} ask for: run 'make close'.")
