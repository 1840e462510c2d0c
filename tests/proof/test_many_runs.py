"""After many runs, a campaign uses no more resources than after the first, except for its data about its runs.

EYELEVEL_MANY_RUNS sets the number of runs; 200 take about a quarter of an hour.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest
from support.campaigns import rows
from support.footprint import Footprint

from base.places import PROJECT

RUNS = int(os.environ.get("EYELEVEL_MANY_RUNS", "200"))
PROTOCOLS = 2
# A machine may be too busy for some runs.
VALID_SHARE = 0.9
# This share of the blocks is left out at the beginning: meanwhile programs are looked up, modules loaded, and buffers
# grown.
WARM_UP_SHARE = 0.2
# The memory that a campaign may keep for each run: an attempt is a row of about fifty values. (A run leaves 150 kB on
# the disk.) The second number is the step in which memory is returned.
MEMORY_BYTES_A_RUN = 20_000
MEMORY_STEP_BYTES = 2_000_000
# By how much counts of the whole machine may grow: other programs come and go, and the kernel removes networks some
# time after their last process.
OTHERS = {"cgroups": 5, "kernel_networks": 20}


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.timing
@pytest.mark.timeout(300 + 120 * RUNS)
def test_a_campaign_holds_no_more_after_many_runs(tmp_path: Path) -> None:
    blocks = RUNS // PROTOCOLS
    samples, log = tmp_path / "samples", tmp_path / "log"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "support.footprint", str(tmp_path), str(blocks), str(samples)]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}", "TMPDIR": str(temporary)}
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=PROJECT, env=environment, stdout=output, stderr=output, check=False)
    assert done.returncode == 0, log.read_text()[-3000:]
    valid = [row for row in rows(tmp_path / "controlled") if row["valid"] == "true"]
    assert len(valid) >= VALID_SHARE * blocks * PROTOCOLS

    footprints = [Footprint(**json.loads(line)) for line in samples.read_text().splitlines()]
    assert len(footprints) >= blocks
    begin = round(WARM_UP_SHARE * len(footprints))
    # Use several footprints at each end, since the next run may be prepared in one and not in another.
    first, last = footprints[begin : 2 * begin + 1], footprints[-begin - 1 :]
    runs = PROTOCOLS * (len(footprints) - len(last) - begin)
    growth = {
        field.name: most(last, field.name) - most(first, field.name)
        for field in fields(Footprint)
        if getattr(footprints[0], field.name) is not None
    }
    print(f"first: {first[0]}\nlast: {last[-1]}\ngrowth in {runs} runs: {growth}")
    memory_bytes = growth.pop("memory_bytes")
    assert not {name: change for name, change in growth.items() if change > OTHERS.get(name, 0)}
    assert memory_bytes <= MEMORY_STEP_BYTES + MEMORY_BYTES_A_RUN * runs


def most(footprints: Sequence[Footprint], name: str) -> int:
    return max(int(getattr(footprint, name)) for footprint in footprints)
