"""Series of comparisons of two settings whose truth is known: files `ab.json` in a folder."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FIRST = datetime(2026, 1, 5, 8, tzinfo=UTC)


def comparison(number: int, changes: dict[tuple[str, str], float], **further: Any) -> dict[str, Any]:
    """A document of week `number` with these `changes` by network and metric, as `analysis.report.ab` writes it."""
    side = {"protocol": "quic", "protocol_settings": {"mtu": 1500}, "browser": "chromium", "sites": {"news": "ab12"}}
    rows = [
        {
            **{"network": network, "metric": metric, "blocks": 30, "worse": False},
            **{"change": change, "low": change - 0.01, "high": change + 0.01},
        }
        for (network, metric), change in changes.items()
    ]
    return {
        **{"format": 1, "campaign": f"week-{number:03}", "sites": ["news"], "loading": {}, "contrasts": rows},
        "machine": {"host": "lab", "cpu": "AMD EPYC", "cpus": 2},
        "begun_at": (FIRST + timedelta(weeks=number)).isoformat(),
        "networks": {network: {"down_mbps": 10} for network, _ in changes},
        **{name: {"setting": f"PROTO=quic BROWSER={name}=chromium:/{number}", **side} for name in ("a", "b")},
        **further,
    }


def write(folder: Path, documents: Sequence[dict[str, Any]]) -> None:
    """Write each of `documents` where its campaign would have it."""
    for document in documents:
        place = folder / document["campaign"] / "ab"
        place.mkdir(parents=True)
        (place / "ab.json").write_text(json.dumps(document))
