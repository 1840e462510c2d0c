"""A page with more requests than a recording may hold: the surplus is reported, and the memory stays bounded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clients.flood import BODIES, BODY_BYTES

from base.namespaces import namespaced
from base.places import PROJECT
from record.recorder.limits import OVERHEAD_BYTES, PROXY_BYTES, RECORDING_BYTES
from record.site import Site

FLOOD = PROJECT / "tests" / "clients" / "flood.py"


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_page_of_more_than_a_recording_may_hold_is_recorded_to_the_limit(tmp_path: Path) -> None:
    command = [*namespaced("net", "mount"), sys.executable, FLOOD, tmp_path]
    command += [sys.executable, "-m", "eyelevel", "record", "http://flood.example:8001/", "--into", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == 0, done.stderr
    assert result["proxy"] < PROXY_BYTES and result["files"] <= RECORDING_BYTES + OVERHEAD_BYTES, result
    site = Site.load(tmp_path / "flood.example")
    bodies = [e for e in site.exchanges if "/body" in e.url]
    fitting = RECORDING_BYTES // BODY_BYTES
    assert len(bodies) == fitting and {e.url for e in site.exchanges} >= {"https://flood.example:8001/done"}
    full = [line for line in site.skipped if line.endswith("the recording is full: it may have 1024 MiB")]
    assert len(full) == BODIES - fitting
