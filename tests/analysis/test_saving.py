"""The runs that RUNS=auto saved in a campaign."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import ROW

from analysis.stopping import saved_line, saving
from base.structure import structured
from dataset.plan import write_plan
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from measure.campaign.plan import plan
from measure.campaign.results import opened


@pytest.mark.parametrize(("lanes", "minutes"), [(1, (10, 40)), (2, (5, 20))])
def test_what_was_saved_is_what_was_planned_and_not_needed(
    tmp_path: Path, lanes: int, minutes: tuple[int, int]
) -> None:
    names: dict[str, dict[str, Any]] = {
        "sites": {"s": {}},
        "networks": {"dsl": {}, "lte": {}},
        "protocols": {"tcp": {}, "quic": {}},
    }
    document = CampaignDocument(
        structured({"seed": 1, "runs": 10, "repeats": 2, "auto": True, "lanes": lanes, **names}, CampaignSettings, "")
    )
    with opened(tmp_path / "c", document) as results:
        write_plan(tmp_path / "c", plan(["s"], ["dsl", "lte"], ["tcp", "quic"], 10, 1))
        for network, runs in (("dsl", 5), ("lte", 10)):
            for number in range(1, runs + 1):
                for protocol in ("tcp", "quic"):
                    place = f"runs/s/{network}/{protocol}/{number}-1"
                    row = replace(ROW, network=network, protocol=protocol, run=number, folder=place, seconds=60.0)
                    results.keep(row)
    saved = saving(tmp_path / "c", [("s", "dsl"), ("s", "lte")])
    saved_min, total_min = minutes
    assert (saved.runs, saved.seconds, saved.made_runs) == (10, 60.0 * saved_min, 30)
    line = f"RUNS=auto saved 10 of 40 runs (25 %), about {saved_min} min of {total_min} min: "
    line += "dsl after 5 runs of each setting"
    assert saved_line(saved) == line
    assert "saved nothing" in saved_line(saving(tmp_path / "c", []))
