"""The recorded sites as a table: size, servers, hosts, and how complete they are."""

import math
from collections.abc import Iterable

import pandas as pd
from publicsuffixlist import PublicSuffixList
from rich import box
from rich.console import Console
from rich.table import Table

from analysis.runs import CampaignTable
from base.places import SITES
from measure import completeness
from record.site import INDEX, Site


def recorded_sites(campaign: CampaignTable, names: Iterable[str]) -> list[Site]:
    """The recordings on this machine of those of the campaign's sites `names` that have not changed since."""
    sites = [Site.load(SITES / name) for name in names if (SITES / name / INDEX).exists()]
    return [site for site in sites if campaign.document.sites.get(site.name, {}).get("url") == site.url]


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
        first_party = suffixes.privatesuffix(_host(site.url)) or _host(site.url)
        hosts = {_host(exchange.url) for exchange in site.exchanges}
        third = [host for host in hosts if (suffixes.privatesuffix(host) or host) != first_party]
        largest = max(site.exchanges, key=lambda exchange: exchange.bytes)
        total = sum(exchange.bytes for exchange in site.exchanges)
        row = (site.name, len(site.exchanges), total, len(site.servers), len(hosts), len(third))
        rows.append((*row, largest.bytes, largest.url, *_completeness(site)))
    columns = ["site", "exchanges", "bytes", "servers", "hosts", "third_party_hosts", "largest_bytes", "largest"]
    columns += ["served", "jaccard", "loads"]
    table = pd.DataFrame(rows, columns=columns).astype({"served": float, "jaccard": float, "loads": "Int64"})
    return table.sort_values("bytes", kind="stable", ignore_index=True)


def _completeness(site: Site) -> tuple[float | None, float | None, int | None]:
    """How complete `site` is, if that was measured: served, jaccard, loads."""
    if (measurement := completeness.read(site)) is None:
        return None, None, None
    return measurement.served, measurement.jaccard, sum(loads.loads for loads in measurement.protocols.values())


def print_sites(table: pd.DataFrame, console: Console) -> None:
    """Print `table` for a person, without the URLs of the largest resources."""
    texts = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    texts.add_column("site", overflow="fold", min_width=15)
    headings = ("ex-\nchanges", "MB", "servers", "hosts", "third\nparty", "largest\nkB", "served\n%", "Jaccard\nindex")
    for name in headings:
        texts.add_column(name, justify="right", no_wrap=True)
    for row in table.itertuples():
        counts = (str(row.servers), str(row.hosts), str(row.third_party_hosts))
        megabytes, largest = f"{row.bytes / 1e6:.2f}", f"{row.largest_bytes / 1e3:.0f}"
        completeness_texts = ("", "") if pd.isna(row.served) else (_percent(row.served), f"{row.jaccard:.3f}")
        texts.add_row(row.site, str(row.exchanges), megabytes, *counts, largest, *completeness_texts)
    console.print(texts)
    if open_sites := list(table.loc[table["served"].isna(), "site"]):
        console.print(f"Nobody has measured yet what the pages of {', '.join(open_sites)} ask for: run 'make close'.")


def _percent(share: float) -> str:
    """A share as a percentage that is 100 only when nothing is missing."""
    return f"{math.floor(share * 1000) / 10:.1f}"


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]
