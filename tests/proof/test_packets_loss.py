"""Captures of loads with losses both ways: every byte is accounted for, and what was sent again is told as that."""

from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from measure.campaign.campaign import Campaign, measure
from measure.campaign.progress import ProgressDisplay
from measure.run.setting import Loading
from measure.table import require_document, valid_rows
from record import collection
from studies.packets.bytes import AGAIN, KINDS, PAYLOAD, UNREAD
from studies.packets.files import STUDY
from studies.packets.measure import PacketsMethod
from studies.packets.runs import read_run
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_root, pytest.mark.loads(group="packets", lanes=4)]

RUNS = 3


@pytest.mark.parametrize("network", ["da2gc", "mss"])
@pytest.mark.parametrize("site", ["demo-light", "demo-news"])
def test_loads_with_losses_are_accounted_for_to_the_last_byte(site: str, network: str, tmp_path: Path) -> None:
    chosen = {name: protocols.load()[name] for name in ("tcp+", "quic")}
    behind = {network: networks.load()[network]}
    campaign = Campaign(
        folder=tmp_path / "packets",
        sites={site: collection.load_site(site)},
        networks=behind,
        protocols=chosen,
        runs=RUNS,
        seed=1,
        loading=Loading(filmed=False),
        method=PacketsMethod(),
        study={"name": STUDY},
    )
    measure(campaign, partial(ProgressDisplay, Console()))
    payloads_bytes, again_bytes = set(), 0
    rows, document = valid_rows(campaign.folder, STUDY), require_document(campaign.folder)
    assert len(rows) == RUNS * len(chosen)
    for run in rows:
        for row in read_run(campaign.folder, document, run).captures:
            assert sum(row[kind] for kind in KINDS) == row["bytes"]
            assert run.protocol != "quic" or row[UNREAD] == 0
            again_bytes += row[AGAIN]
            if row["direction"] == "down":
                payloads_bytes.add(row[PAYLOAD])
    assert again_bytes
    if site == "demo-light":  # others ask for what depends on time
        assert len(payloads_bytes) == 1
