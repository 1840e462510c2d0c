"""Values from which many tests start."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from base.structure import structured
from dataset.reasons import Reason
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Row

# A valid run.
ROW = Row(
    site="s",
    network="lte",
    protocol="tcp",
    run=1,
    attempt=1,
    valid=True,
    reason=None,
    metrics={"fvc": 500.0, "lvc": 900.0, "vc85": 700.0, "si": 650.5, "plt": 1234.5},
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
    readings={
        "browser_cpu_ms": 90.0,
        "renderer_cpu_ms": 200.0,
        "network_cpu_ms": 60.5,
        "gpu_cpu_ms": 15.0,
        "servers_cpu_ms": 20.0,
        "emulator_cpu_ms": 10.0,
        "film_cpu_ms": 150.0,
        "processor_wait_ms": 120.0,
    },
)


def rejected(reason: str, row: Row = ROW, **changes: Any) -> Row:
    """`row`, rejected for `reason` as in `runs.csv`."""
    return replace(row, valid=False, reason=Reason.parse(reason), **changes)


def with_metrics(row: Row, **metrics: float | None) -> Row:
    """`row` with other values of some metrics."""
    values: Mapping[str, float | None] = {**row.metrics, **metrics}
    return replace(row, metrics=values)


def campaign_document(versions: Mapping[str, str] | None = None, **settings: Any) -> CampaignDocument:
    """The `campaign.json` of a campaign with `ROW` in it."""
    base = {"seed": 1, "runs": 3, "sites": {"s": {"sha256": "0"}}, "networks": {"lte": {"up_mbps": 2.8}}}
    return CampaignDocument(
        settings=structured({**base, "protocols": {"tcp": {"transport": "tcp"}}, **settings}, CampaignSettings, ""),
        versions=dict(versions or {"chromium": "1"}),
        machine={"host": "here"},
    )
