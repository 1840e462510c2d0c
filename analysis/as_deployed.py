"""How much of a page came over HTTP/3 where the browser could choose: the web as deployed (docs/as-deployed.md)."""

import pandas as pd

from analysis.runs import CampaignTable

SHARES = {"requests": "h3_request_share", "bytes": "h3_byte_share"}


def discoveries(campaign: CampaignTable) -> dict[str, str]:
    """Each protocol whose servers speak another one beside it → how the browser finds that one."""
    return {
        name: settings["discovery"]
        for name, settings in campaign.settings.protocols.items()
        if settings.get("alternative")
    }


def http3_shares(campaign: CampaignTable) -> pd.DataFrame:
    """The shares of requests and of their responses' bytes that went over HTTP/3, over the runs that count.

    Columns: network, site, protocol, discovery, runs, and of requests and bytes the mean, least and most share
    (`requests`, `requests_least`, `requests_most`, `bytes`, …). No rows where no protocol of the campaign has two.
    """
    found_by = discoveries(campaign)
    runs = campaign.valid
    if not found_by or not set(SHARES.values()) <= set(runs):
        return pd.DataFrame()
    runs = runs[runs["protocol"].isin(found_by)].astype(dict.fromkeys(SHARES.values(), float))
    aggregated = {
        f"{what}{suffix}": (column, how)
        for what, column in SHARES.items()
        for suffix, how in (("", "mean"), ("_least", "min"), ("_most", "max"))
    }
    keys = ["network", "site", "protocol"]
    table = runs.groupby(keys, sort=False).agg(runs=(SHARES["requests"], "count"), **aggregated)
    table = table.reset_index()
    table.insert(len(keys), "discovery", table["protocol"].map(found_by))
    return table
