"""Captures of loads with losses both ways: every byte is accounted for, and what was sent again is told as that."""

from pathlib import Path

import pytest

from record import collection
from studies.packets.attempt import make
from studies.packets.bytes import AGAIN, KINDS, PAYLOAD, UNREAD
from studies.packets.files import STUDY
from studies.packets.runs import read_run
from studies.runs import Study, Watch, make_runs, runs_of
from tuning import networks, protocols

pytestmark = pytest.mark.needs_root

RUNS = 3


@pytest.mark.parametrize("network", ["da2gc", "mss"])
@pytest.mark.parametrize("site", ["demo-light", "demo-news"])
def test_loads_with_losses_are_accounted_for_to_the_last_byte(site: str, network: str, tmp_path: Path) -> None:
    chosen = {name: protocols.load()[name] for name in ("tcp+", "quic")}
    behind = {network: networks.load()[network]}
    study = Study(
        STUDY, tmp_path, {site: collection.load_site(site)}, behind, chosen, RUNS, seed=1, make=make, captures=True
    )
    assert make_runs(study, Watch(lambda *_: None, lambda *_: None, print)) == []
    payloads_bytes, again_bytes = set(), 0
    made = runs_of(tmp_path, STUDY)
    assert len(made) == RUNS * len(chosen)
    for run, folder in made:
        for row in read_run(folder).captures:
            assert sum(row[kind] for kind in KINDS) == row["bytes"]
            assert run.protocol != "quic" or row[UNREAD] == 0
            again_bytes += row[AGAIN]
            if row["direction"] == "down":
                payloads_bytes.add(row[PAYLOAD])
    assert again_bytes
    if site == "demo-light":  # others ask for what depends on time
        assert len(payloads_bytes) == 1
