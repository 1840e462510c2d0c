"""What the recorded sites are, as a table and as the paper's Figure 1."""

import math
from collections.abc import Iterable

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from publicsuffixlist import PublicSuffixList
from rich import box
from rich.console import Console
from rich.table import Table

from measure import completeness
from record.site import Site

FORMATS = ("png", "pdf", "svg")
# The first two of Okabe and Ito's colours, told apart by colour-blind readers and in grey.
SIZE_COLOUR, SERVERS_COLOUR = "#0072b2", "#e69f00"


def site_table(sites: Iterable[Site]) -> pd.DataFrame:
    """A row for each site, ordered by size.

    Columns: site, exchanges, bytes (bodies with their content-encoding on), servers (IP addresses), hosts,
    third_party_hosts (under another registrable domain than the start page), largest_bytes and largest (URL);
    and of closed sites (`measure.closing`) served (the share of requested URLs), jaccard (of the sets of
    requested URLs, over all loads) and loads, which are missing for others.
    """
    suffixes = PublicSuffixList()
    rows = []
    for site in sites:
        own = suffixes.privatesuffix(_host(site.url)) or _host(site.url)
        hosts = {_host(exchange.url) for exchange in site.exchanges}
        third = [host for host in hosts if (suffixes.privatesuffix(host) or host) != own]
        largest = max(site.exchanges, key=lambda exchange: exchange.bytes)
        total = sum(exchange.bytes for exchange in site.exchanges)
        row = (site.name, len(site.exchanges), total, len(site.servers), len(hosts), len(third))
        rows.append((*row, largest.bytes, largest.url, *_completeness(site)))
    columns = ["site", "exchanges", "bytes", "servers", "hosts", "third_party_hosts", "largest_bytes", "largest"]
    columns += ["served", "jaccard", "loads"]
    table = pd.DataFrame(rows, columns=columns).astype({"served": float, "jaccard": float, "loads": "Int64"})
    return table.sort_values("bytes", kind="stable", ignore_index=True)


def _completeness(site: Site) -> tuple[float | None, float | None, int | None]:
    """What is known of how complete `site` is: served, jaccard, loads."""
    if (known := completeness.read(site)) is None:
        return None, None, None
    return known.served, known.jaccard, sum(loads.loads for loads in known.protocols.values())


def draw_sites(table: pd.DataFrame) -> Figure:
    """The paper's Figure 1: each site's download size and number of server IP addresses.

    `table` is what `site_table` returns; sites stand side by side in its order.
    """
    with mpl.rc_context({"font.size": 8, "pdf.fonttype": 42, "svg.fonttype": "none", "axes.axisbelow": True}):
        figure = Figure(figsize=(max(3.4, 0.8 + 0.24 * len(table)), 3.2), layout="constrained")
        size, servers = figure.subplots(2, 1, sharex=True)
        places = range(len(table))
        size.bar(places, table["bytes"] / 1e6, color=SIZE_COLOUR, width=0.7)
        size.set_ylabel("download size [MB]")
        servers.bar(places, table["servers"], color=SERVERS_COLOUR, width=0.7)
        servers.set_ylabel("server IPs")
        servers.set_xticks(places, table["site"], rotation=60, ha="right", rotation_mode="anchor")
        for axes in (size, servers):
            axes.grid(axis="y", linewidth=0.4, color="0.8")
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0.01)
        return figure


def print_sites(table: pd.DataFrame, console: Console) -> None:
    """Print `table` for a person; which resource is the largest is left to the file."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    shown.add_column("site", overflow="fold", min_width=15)
    counted = ("ex-\nchanges", "MB", "servers", "hosts", "third\nparty", "largest\nkB", "served\n%", "Jaccard\nindex")
    for name in counted:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in table.itertuples():
        counts = (str(row.servers), str(row.hosts), str(row.third_party_hosts))
        megabytes, largest = f"{row.bytes / 1e6:.2f}", f"{row.largest_bytes / 1e3:.0f}"
        closed = ("", "") if pd.isna(row.served) else (_percent(row.served), f"{row.jaccard:.3f}")
        shown.add_row(row.site, str(row.exchanges), megabytes, *counts, largest, *closed)
    console.print(shown)
    if open_sites := list(table.loc[table["served"].isna(), "site"]):
        console.print(f"What their pages ask for is not known yet of {', '.join(open_sites)}: 'make close' finds out.")


def _percent(share: float) -> str:
    """A share as a percentage that is 100 only when nothing is missing."""
    return f"{math.floor(share * 1000) / 10:.1f}"


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]
