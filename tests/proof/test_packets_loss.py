"""Captures of loads with losses both ways: every byte is accounted for, and what was sent again is told as that."""

import json
from pathlib import Path

import pytest

from analysis.studies.packets.bytes import AGAIN, KINDS, PAYLOAD, UNREAD
from analysis.studies.packets.runs import read_run
from measure.campaign.plan import Run
from measure.studies.packets import RUN
from measure.studies.packets.study import Study, Watch, capture
from record import shelf
from tuning import networks, protocols

RUNS = 3


@pytest.mark.parametrize("network", ["da2gc", "mss"])
@pytest.mark.parametrize("site", ["demo-light", "demo-news"])
def test_loads_with_losses_are_accounted_for_to_the_last_byte(site: str, network: str, tmp_path: Path) -> None:
    chosen = {name: protocols.load()[name] for name in ("tcp+", "quic")}
    study = Study(tmp_path, shelf.take(site), {network: networks.load()[network]}, chosen, RUNS, seed=1)
    assert capture(study, Watch(lambda *_: None, lambda *_: None, print)) == []
    payloads_bytes, again_bytes = set(), 0
    for protocol in chosen:
        for number in range(1, RUNS + 1):
            folder = study.folder(Run(site, network, protocol, number))
            assert json.loads((folder / RUN).read_text())["valid"]
            for row in read_run(folder).captures:
                assert sum(row[kind] for kind in KINDS) == row["bytes"]
                assert protocol != "quic" or row[UNREAD] == 0
                again_bytes += row[AGAIN]
                if row["direction"] == "down":
                    payloads_bytes.add((site, row[PAYLOAD]))
    assert again_bytes
    if site == "demo-light":  # others ask for what depends on time
        assert len(payloads_bytes) == 1
