"""Recorded sites as a table: size, servers, hosts, and how complete they are."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, fields

import pandas as pd

from dataset.site_facts import SiteFacts


def site_table(sites: Mapping[str, SiteFacts], names: Iterable[str] | None = None) -> pd.DataFrame:
    """A row for each of `sites` (name → facts), or for those of them in `names`, ordered by size.

    Columns: site, and the fields of `SiteFacts`. Sites that were not completed lack served, jaccard and loads.
    """
    columns = ["site", *(one.name for one in fields(SiteFacts))]
    rows = [(name, *astuple(sites[name])) for name in (sites if names is None else names) if name in sites]
    table = pd.DataFrame(rows, columns=columns).astype({"served": float, "jaccard": float, "loads": "Int64"})
    return table.sort_values("bytes", kind="stable", ignore_index=True)
