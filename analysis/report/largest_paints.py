"""The requests of the largest paints: when they were sent, when their pictures had arrived, and after how much data."""

from typing import Any

import pandas as pd

from analysis.report.section import ReportTable, text_table
from analysis.runs import CampaignTable
from analysis.text import label, ms

# The columns of a run on the request of its largest paint, and the metric itself.
PAINT_COLUMNS = ("lcp_requested", "lcp_arrived", "lcp", "lcp_ahead")


def paints(campaign: CampaignTable, key: tuple[str, ...] = ("network", "protocol")) -> pd.DataFrame:
    """The medians of PAINT_COLUMNS over the valid runs in which the largest paint needed a request: a row for each
    value of `key`, with the number of `sites` and `runs`. Empty if no run has these columns."""
    if not set(PAINT_COLUMNS) <= set(campaign.valid):
        return pd.DataFrame(columns=[*key, "sites", "runs", *PAINT_COLUMNS])
    groups = campaign.valid.dropna(subset=list(PAINT_COLUMNS)).groupby(list(key), sort=False)
    table = groups[list(PAINT_COLUMNS)].median().assign(sites=groups["site"].nunique(), runs=groups.size())
    places = {name: place for place, name in enumerate([*campaign.networks, *campaign.protocols])}
    return table.reset_index().sort_values(
        list(key), key=lambda names: names if names.name == "site" else names.map(places), ignore_index=True
    )


def paint_table(name: str, table: pd.DataFrame) -> ReportTable:
    """The table of `paints`, with this name."""
    columns: dict[Any, Any] = {
        "network": ("network", label), **({"site": "page"} if "site" in table else {}), "protocol": ("protocol", label),
        **({} if "site" in table else {"sites": "sites"}), "runs": "runs",
        "lcp_requested": ("requested [ms]", ms), "lcp_arrived": ("arrived [ms]", ms), "lcp": ("painted [ms]", ms),
        "lcp_ahead": ("other data ahead [kB]", lambda size: f"{size / 1000:,.0f}"),
    }  # fmt: skip
    note = (
        "Medians over the runs whose largest paint needed a picture, which are not the same runs over every protocol. "
        "Ahead: data of other responses that arrived on its connection between its request and its last byte."
    )
    return ReportTable(name, "The request of the largest paint", table, text_table(table, columns), note)
