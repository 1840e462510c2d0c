"""Random recordings that are imported, replayed over TCP and QUIC, exported and imported again do not change.

EYELEVEL_EXACT_SECONDS sets how long they are drawn, by default an hour.
"""

import os
import subprocess
import sys

import pytest

from base.places import PROJECT

SECONDS = float(os.environ.get("EYELEVEL_EXACT_SECONDS", "3600"))


@pytest.mark.needs_namespaces
@pytest.mark.timeout(SECONDS + 900)
def test_every_exchange_comes_back_from_import_replay_and_export() -> None:
    command = [sys.executable, "-m", "support.generated_recordings", str(SECONDS)]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr[-5000:]
    exchanges, recordings = map(int, completed.stdout.split())
    assert exchanges > recordings > 0
