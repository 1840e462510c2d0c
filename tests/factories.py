"""Values that many tests begin with."""

from typing import Any

from measure.campaign.results import Row

# A run that counts.
ROW = Row(
    site="s",
    network="lte",
    protocol="tcp",
    run=1,
    attempt=1,
    valid=True,
    reason="",
    fvc=500.0,
    lvc=900.0,
    vc85=700.0,
    si=650.5,
    plt=1234.5,
    requests=3,
    served=2,
    missed=1,
    exchanges=2,
    unrecorded=0,
    started_at="2026-01-01T00:00:00+0000",
    seconds=9.5,
    folder="runs/s/lte/tcp/1-1",
    block=1,
    machine="here",
    canary_cpu_ms=50.0,
    canary_page_ms=800.5,
)


def campaign_document(**settings: Any) -> dict[str, Any]:
    """What campaign.json holds of a campaign with `ROW` in it."""
    base = {"seed": 1, "runs": 3, "sites": {"s": {"sha256": "0"}}, "networks": {"lte": {"up_mbps": 2.8}}}
    return {
        "settings": {**base, "protocols": {"tcp": {"transport": "tcp"}}, **settings},
        "versions": {"chromium": "1"},
        "machine": {"host": "here"},
    }
