"""`eyelevel compare` on real campaigns with the same settings, measured one after the other.

It finds no regression, even if it allows no slowdown, and finds one in a third campaign, whose network has a longer
round trip.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.rates import tell

from base.places import PROJECT
from dataset.table import read_rows

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.timing, pytest.mark.timeout(3600)]

RUNS = 10
MEASURED = f"--net tried --proto tcp+,quic --sites demo-light,demo-news --runs {RUNS} --no-validate".split()
# The campaigns by name, with the round trip (ms) of their networks: lte's (tuning/networks.toml), and one that is
# longer by half.
ROUND_TRIPS_MS = {"before": 74, "after": 74, "slower": 111}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaigns, measured one after the other."""
    folder = tmp_path_factory.mktemp("results")
    for name, round_trip_ms in ROUND_TRIPS_MS.items():
        tuning = folder / f"{name}-tuning"
        tuning.mkdir()
        (tuning / "networks.toml").write_text(f'[tried]\nlike = "lte"\nmin_rtt_ms = {round_trip_ms}\n')
        environment = {**os.environ, "EYELEVEL_TUNING": str(tuning)}
        done = eyelevel("campaign", *MEASURED, "--campaign", name, "--results", str(folder), "--plain", env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        valid = Counter((row.site, row.protocol) for row in read_rows(folder / name) if row.valid)
        assert len(valid) == 4 and min(valid.values()) >= RUNS - 1, valid
    return folder


def eyelevel(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eyelevel", *arguments]
    return subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("after", "status"), [("after", 0), ("slower", 3)])
def test_only_what_has_become_slower_is_worse(
    results: Path, after: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = eyelevel("compare", "--a", str(results / "before"), "--b", str(results / after), "--worse-than", "0%")
    tell(capsys, "before and", after, "\n" + done.stdout)
    assert done.returncode == status, done.stdout + done.stderr
